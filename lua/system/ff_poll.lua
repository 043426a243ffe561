-- ff_poll: the idle fallback. Reads how many routes are ready and whether a tick is overdue, for one root, or
-- off-cluster for all of them in one call (the one exception to the one-key rule).
-- Flags:   no-writes
-- Go:      Engine.Poll
-- Args:    protocol
-- Replies: OK count {ready overdue}
-- Errors:  invalid_input partition_missing protocol_mismatch
local function ff_poll(k, argv)
  local protocol = args.int(argv[1], 1, 1000000)
  if not protocol then return reply.err('invalid_input', 'protocol') end
  local now = clock.now(k[1])
  local out = { 1, 'OK', reply.int(#k) }
  for i = 1, #k do
    local h = redis.call('HMGET', k[i], 'protocol', 'wake', 'owner', 'gates')
    if not h[1] then return reply.err('partition_missing', k[i]) end
    if tonumber(h[1]) > protocol then return reply.err('protocol_mismatch', h[1], argv[1]) end
    if h[2] then
      out[#out + 1] = reply.int(redis.call('SCARD', keys.ready(k[i])) + (h[4] and redis.call('SCARD', keys.gready(k[i])) or 0))
      out[#out + 1] = root.overdue({ now = now, wake = tonumber(h[2]), owner = h[3] })
    else -- whatever is ready has a wake time
      out[#out + 1] = '0'
      out[#out + 1] = '0'
    end
  end
  return out
end
