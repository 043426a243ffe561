-- ff_list_versions: versions of applications whose workers registered in a partition, the newest 256 of them, and when
-- such a worker was last heard of.
-- Flags:   no-writes
-- Go:      Engine.Versions
-- Args:    protocol
-- Replies: OK versions:rows {version:text seen:instant}
-- Errors:  @root invalid_input
local function ff_list_versions(ctx, q)
  local list = redis.call('ZREVRANGE', keys.versions(ctx.r), 0, 255, 'WITHSCORES')
  return reply.add({ 1, 'OK' }, list, 2)
end
