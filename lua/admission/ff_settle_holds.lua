-- ff_settle_holds: what executions' partitions said of holds that were suspect: 1 it is held, which is good for ttl
-- ms; 0 it is not; 2 it is not, and never ran. Those who wait are answered, as many as there is room for, to be
-- woken; at most 256.
-- Flags:   allow-oom
-- Go:      Engine.SettleHolds
-- Args:    protocol name:quota ttl:ms(1000..600000) holds:rows(1..100) {hold:text verdict:0|1|2}
-- Replies: OK freed:n waiters:rows {waiter:text}
-- Errors:  @root invalid_input quota_policy_not_found
local function ff_settle_holds(ctx, argv)
  local a, bad = decode.ff_settle_holds(argv)
  if not a then return bad end
  local name, ttl, holds = a.name, a.ttl, a.holds
  local q, freed, waiters = quota.read(ctx, name), 0, {}
  if not q then return reply.err('quota_policy_not_found', name) end

  local slots = keys.slots(ctx.r, name)
  for i = 1, #holds do
    local hold, verdict = holds[i].hold, holds[i].verdict
    if verdict == '1' then
      redis.call('ZADD', slots, 'XX', reply.int(ctx.now + ttl), hold)
    else
      freed = freed + redis.call('ZREM', slots, hold)
      if verdict == '2' then redis.call('ZREM', keys.window(ctx.r, name), hold) end
    end
  end
  quota.wake(ctx, q, waiters)
  return quota.woken(reply.int(freed), waiters)
end
