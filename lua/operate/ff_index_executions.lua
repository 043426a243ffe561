-- ff_index_executions: lists executions in the catalogue that were there before what it keeps was said. One that is
-- listed stays as it is, one that does not exist is passed over.
-- Flags:   none
-- Go:      Engine.IndexExecutions
-- Args:    protocol executions:rows(1..100) {id:id}
-- Replies: OK count:n
-- Errors:  @root invalid_input
local function ff_index_executions(ctx, q)
  local count = 0
  for i = 1, #q.executions do
    local id = q.executions[i]
    local c = core.read(ctx, id)
    if c.state and c.route and not c.purged_until then
      local tags = c.has_tags and redis.call('HGETALL', keys.tags(ctx.r, id)) or {}
      catalogue.add(ctx, c.route, c.created_at, id, tags)
      count = count + 1
    end
  end
  catalogue.apply(ctx)
  return reply.ok(reply.int(count))
end
