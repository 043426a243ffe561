-- ff_list_gates: the names of the gates of a partition, in order, a page at a time.
-- Flags:   no-writes
-- Go:      Engine.GateNames
-- Args:    protocol after:bytes(64) limit:n(1..1000)
-- Replies: OK more:flag names:rows {name:text}
-- Errors:  @root invalid_input
local function ff_list_gates(ctx, q)
  local limit, from = q.limit, q.after == '' and '-' or '(' .. q.after
  local names = redis.call('ZRANGEBYLEX', keys.gates(ctx.r), from, '+', 'LIMIT', '0', reply.int(limit + 1))
  local count = math.min(limit, #names)
  return reply.ok(#names > limit and '1' or '0', reply.int(count), unpack(names, 1, count))
end
