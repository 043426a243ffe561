-- ff_list_quotas: the names of the quotas of a partition, in order, a page at a time.
-- Flags:   no-writes
-- Go:      Engine.QuotaNames
-- Args:    protocol after:bytes(64) limit:n(1..1000)
-- Replies: OK more:flag names:rows {name:name(192)}
-- Errors:  @root invalid_input
local function ff_list_quotas(ctx, q)
  local limit, from = q.limit, q.after == '' and '-' or '(' .. q.after
  local names = redis.call('ZRANGEBYLEX', keys.quotas(ctx.r), from, '+', 'LIMIT', '0', reply.int(limit + 1))
  local count = math.min(limit, #names)
  return reply.ok(#names > limit and '1' or '0', reply.int(count), unpack(names, 1, count))
end
