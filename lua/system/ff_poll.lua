-- ff_poll: the idle fallback. Reads how many routes are ready and whether a tick is overdue, for one root, or
-- off-cluster for all of them in one call (the one exception to the one-key rule). With brief 1 it answers only where
-- there is anything to tell, by place among the keys, and counts the registered workers, by which pollers pace themselves.
-- Flags:   no-writes
-- Go:      Engine.Poll
-- Args:    protocol [brief]
-- Replies: OK count {ready overdue}; OK 0 workers count {place ready overdue}
-- Errors:  invalid_input partition_missing protocol_mismatch
local function ff_poll(k, argv)
  local protocol = args.int(argv[1], 1, 1000000)
  if not protocol then return reply.err('invalid_input', 'protocol') end
  local brief, workers = argv[2] == '1', 0
  local out = brief and { 1, 'OK', '0', '', '' } or { 1, 'OK', reply.int(#k) }
  local now = clock.now(k[1])
  local after, header = '(' .. reply.int(now), #out
  for i = 1, #k do
    local r = k[i]
    local h = redis.call('HMGET', r, 'protocol', 'wake')
    if not h[1] then return reply.err('partition_missing', r) end
    if h[1] ~= argv[1] and tonumber(h[1]) > protocol then return reply.err('protocol_mismatch', h[1], argv[1]) end
    local wake, ready, overdue = h[2] and tonumber(h[2]), 0, '0'
    if wake and wake <= now + 1000 then -- while anything is ready, the wake time is no later than that
      ready = redis.call('SCARD', keys.ready(r)) + (redis.call('HGET', r, 'gates') and redis.call('SCARD', keys.gready(r)) or 0)
      overdue = root.overdue({ r = r, now = now, wake = wake })
    end
    if not brief or ready > 0 or overdue == '1' then
      if brief then out[#out + 1] = reply.int(i) end
      out[#out + 1] = reply.int(ready)
      out[#out + 1] = overdue
    end
    if brief then workers = workers + redis.call('ZCOUNT', keys.workers(r), after, '+inf') end
  end
  if brief then
    out[5] = reply.int((#out - header) / 3)
    out[4] = reply.int(workers)
  end
  return out
end
