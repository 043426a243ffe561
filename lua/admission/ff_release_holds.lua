-- ff_release_holds: quotas are told that holds run no more; one that never ran (ran 0) did not start either.
-- Repeating it changes nothing. Those who wait are answered, as many as there is room for, to be woken; at most 256.
-- Flags:   allow-oom
-- Go:      Engine.ReleaseHolds
-- Args:    protocol holds:rows(1..100) {name:quota hold:text ran:flag}
-- Replies: OK released:n waiters:rows {waiter:text}
-- Errors:  @root invalid_input
local function ff_release_holds(ctx, q)
  local items = q.holds
  local seen, order, released, waiters = {}, {}, 0, {}
  for i = 1, #items do
    local name, hold = items[i].name, items[i].hold
    local freed = redis.call('ZREM', keys.slots(ctx.r, name), hold)
    if not seen[name] then
      seen[name], order[#order + 1] = true, name
    end
    if not items[i].ran then
      local back = redis.call('ZREM', keys.window(ctx.r, name), hold)
      freed = math.max(freed, back)
    end
    released = released + freed
  end
  for i = 1, #order do
    local q = quota.read(ctx, order[i])
    if q then quota.wake(ctx, q, waiters) end
  end
  return quota.woken(reply.int(released), waiters)
end
