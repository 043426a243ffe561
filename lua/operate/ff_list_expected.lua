-- ff_list_expected: the waitpoints that take events of subjects of this partition (lib/expect.lua), those that were
-- registered first first: at most limit behind the number of those that were read before.
-- Flags:   no-writes
-- Go:      Engine.Expected
-- Args:    protocol skip:n limit:n(1..100)
-- Replies: OK expected:rows {subject:uuid waiter:ref waitpoint:uuid}
-- Errors:  @root invalid_input
local function ff_list_expected(ctx, q)
  local list = redis.call('ZRANGE', keys.expected(ctx.r), reply.int(q.skip), reply.int(q.skip + q.limit - 1))
  local out = { 1, 'OK', reply.int(#list) }
  for i = 1, #list do
    out[#out + 1], out[#out + 2], out[#out + 3] = string.match(list[i], '^([^:]*):([^:]*):(.*)$')
  end
  return out
end
