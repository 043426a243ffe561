-- ff_read_index: what the catalogue of a partition keeps. A mark is 1 (kept), 0 (not kept), - (not kept, and never
-- set) or ~ (what was there before is not in it yet) of the routes, and +, ~ or - (it is being removed) of a tag. full
-- is since when executions with further values of a tag are not in it.
-- Flags:   no-writes
-- Go:      Engine.ReadIndex
-- Args:    protocol
-- Replies: OK routes:text tags:rows {key:text mark:text values:n full:instant?}
-- Errors:  @root invalid_input
local function ff_read_index(ctx, q)
  local text, tags = ctx.index or '-', {}
  for mark, key in string.gmatch(text, ' ([+~-])(%S+)') do
    tags[#tags + 1], tags[#tags + 2] = key, mark
    tags[#tags + 1] = reply.int(redis.call('SCARD', keys.values(ctx.r, key)))
    tags[#tags + 1] = redis.call('HGET', ctx.r, 'full:' .. key) or ''
  end
  return reply.add(reply.ok(string.sub(text, 1, 1)), tags, 4)
end
