-- ff_read_gates: what is attached to scopes in a partition, which routes gates have closed, when they open again and
-- why, and how many entries wait in the outbox.
-- Flags:   no-writes
-- Go:      Engine.ReadGates
-- Args:    protocol
-- Replies: OK now:instant outbox:n attached:rows {scope:text gates:text} closed:rows {route:n(1..) row:text
--          until:instant why:text waiting:n}
-- Errors:  @root invalid_input
local function ff_read_gates(ctx, argv)
  local r = ctx.r
  local all, closed = redis.call('HGETALL', keys.attached(r)),
    redis.call('ZRANGE', keys.closed(r), '0', '1023', 'WITHSCORES')
  local out = { 1, 'OK', ctx.t, reply.int(redis.call('XLEN', keys.outbox(r))), reply.int(#all / 2) }
  for i = 1, #all do out[#out + 1] = all[i] end
  out[#out + 1] = reply.int(#closed / 2)
  for i = 1, #closed, 2 do
    local slots = { closed[i], redis.call('HGET', keys.routes(r), closed[i]) or '',
      reply.int(args.score(closed[i + 1])), redis.call('HGET', keys.closings(r), closed[i]) or '',
      reply.int(redis.call('ZCARD', keys.queue(r, closed[i]))) }
    for s = 1, 5 do out[#out + 1] = slots[s] end
  end
  return out
end
