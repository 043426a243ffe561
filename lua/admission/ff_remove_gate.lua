-- ff_remove_gate: forgets a gate with all it counted and admitted. Executions that have it as a gate do not run any
-- more until it is made again.
-- Flags:   allow-oom
-- Go:      Engine.RemoveGate
-- Args:    protocol name:service
-- Replies: OK revision:n; ALREADY_SATISFIED 0
-- Errors:  @root invalid_input
local function ff_remove_gate(ctx, q)
  local name, r = q.name, ctx.r
  local revision = redis.call('HGET', keys.gate(r, name), 'up')
  redis.call('ZREM', keys.gates(r), name)
  redis.call('UNLINK', keys.gate(r, name), keys.gate_log(r, name), keys.usage(r, name), keys.spenders(r, name),
    keys.amount_waiters(r, name), keys.line(r, name), keys.window(r, name), keys.slots(r, name),
    keys.slot_waiters(r, name), keys.rate_waiters(r, name), keys.hours(r, name))
  service.purge(ctx, name)
  if not revision then return reply.already('0') end
  return reply.ok(revision)
end
