-- ff_poll: the idle fallback. Reads how many routes are ready and whether a tick is overdue, for one root, or
-- off-cluster for all of them in one call (the one exception to the one-key rule). It answers only where there is
-- anything to tell, by place among the keys, and counts the registered workers, by which pollers pace themselves.
-- Flags:   no-writes
-- Go:      Engine.Poll
-- Args:    protocol
-- Replies: OK workers:n partitions:rows {place:n(1..) ready:n overdue:flag}
-- Errors:  invalid_input partition_missing protocol_mismatch
local function ff_poll(k, argv)
  local workers, out, now = 0, { 1, 'OK', '', '' }, clock.now(k[1])
  local after = '(' .. reply.int(now)
  for i = 1, #k do
    local r = k[i]
    local h = redis.pcall('HMGET', r, 'protocol', 'wake', 'ticked')
    if h.err then h = { argv[1] } end -- a root of another type keeps nobody from the others
    if not h[1] then return reply.err('partition_missing', r) end
    local refused = root.mismatch(h[1], argv[1])
    if refused then return refused end
    local ctx, ready, overdue = { r = r, now = now, wake = h[2] and tonumber(h[2]), ticked = h[3] }, 0, '0'
    -- while anything is ready, the wake time is no later than that
    if ctx.wake and (ctx.wake <= now + 1000 or root.stepped(ctx)) then
      ready = redis.call('SCARD', keys.ready(r)) + (redis.call('HGET', r, 'gates') and redis.call('SCARD',
        keys.gready(r)) or 0)
      overdue = root.overdue(ctx)
    end
    if ready > 0 or overdue == '1' then
      out[#out + 1], out[#out + 2] = reply.int(i), reply.int(ready)
      out[#out + 1] = overdue
    end
    -- rows are forgotten by the tick
    if ctx.wake then workers = workers + redis.call('ZCOUNT', keys.workers(r), after, '+inf') end
  end
  out[3], out[4] = reply.int(workers), reply.int((#out - 4) / 3)
  return out
end
