-- ff_mark_worker_dead: an operator gives a worker instance up: its name is free, and its row says dead until it is
-- forgotten. What it holds is its sessions' affair (ff_mark_session_dead). It
-- loses this partition's tick, and another process is asked for it. One that lives registers again.
-- Flags:   allow-oom
-- Go:      Engine.MarkWorkerDead
-- Args:    protocol instance:name(48) reason:bytes(256)
-- Replies: OK "dead"; ALREADY_SATISFIED "dead"
-- Errors:  @root invalid_input worker_not_found
local function ff_mark_worker_dead(ctx, q)
  local instance, reason = q.instance, q.reason
  local w = registry.read(ctx, instance)
  if w.dead then return reply.already('dead') end
  if not w.exp then return reply.err('worker_not_found') end
  local key = keys.worker(ctx.r, instance)
  redis.call('HSET', key, 'dead', '1')
  if reason ~= '' then redis.call('HSET', key, 'why', reason) end
  doorbell.vacate(ctx, instance)
  return reply.ok('dead')
end
