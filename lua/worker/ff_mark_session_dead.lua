-- ff_mark_session_dead: declares a worker's session dead before it expires, so that the tick requeues what it holds
-- at once. If the worker owns the tick, it loses it, and another process is asked for it. The worker, if it lives, is
-- woken and finds every write refused.
-- Flags:   allow-oom
-- Go:      Engine.MarkSessionDead
-- Args:    protocol session:bytes(1..64) reason:bytes(256)
-- Replies: OK "dead" held:n; ALREADY_SATISFIED "dead"
-- Errors:  @root invalid_input session_not_found
local function ff_mark_session_dead(ctx, q)
  local id, reason = q.session, q.reason
  local s = session.read(ctx, id)
  if s.dead then return reply.already('dead') end
  if not s.exp then return reply.err('session_not_found') end
  redis.call('HSET', keys.session(ctx.r, id), 'dead', '1', 'why', reason)
  timers.put(ctx, timers.sessions, math.min(s.exp, ctx.now), id)
  local bell = session.bell(id)
  doorbell.vacate(ctx, bell)
  publish.to(keys.doorbell(ctx.r, bell), 'l')
  return reply.ok('dead', reply.int(redis.call('ZCARD', keys.held(ctx.r, id))))
end
