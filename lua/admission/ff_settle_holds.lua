-- ff_settle_holds: quotas are told what became of holds, by executions' partitions: 1 it is held, which is good for
-- quota.vouched ms more; 0 it is not; 2 it is not, and never ran, so it did not start either. A quota that is gone
-- holds nothing. Those who wait are answered, as many as there is room for, to be woken; at most 256.
-- Flags:   allow-oom
-- Go:      Engine.SettleHolds
-- Args:    protocol holds:rows(1..100) {name:quota hold:text verdict:0|1|2}
-- Replies: OK freed:n waiters:rows {waiter:text}
-- Errors:  @root invalid_input
local function ff_settle_holds(ctx, q)
  local seen, order, freed, waiters = {}, {}, 0, {}
  for i = 1, #q.holds do
    local name, hold, verdict = q.holds[i].name, q.holds[i].hold, q.holds[i].verdict
    local slots, gone = keys.slots(ctx.r, name), 0
    if not seen[name] then seen[name], order[#order + 1] = true, name end
    if verdict == '1' then
      redis.call('ZADD', slots, 'XX', reply.int(ctx.now + quota.vouched), hold)
    else
      gone = redis.call('ZREM', slots, hold)
    end
    if verdict == '2' then gone = math.max(gone, redis.call('ZREM', keys.window(ctx.r, name), hold)) end
    freed = freed + gone
  end
  for i = 1, #order do
    local told = quota.read(ctx, order[i])
    if told then quota.wake(ctx, told, waiters) end
  end
  return reply.add(reply.ok(reply.int(freed)), waiters)
end
