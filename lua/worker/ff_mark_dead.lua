-- ff_mark_dead: an operator gives a worker instance up, or one session. The name of an instance is free, and its row
-- says dead until it is forgotten; what it holds is its sessions' affair. A session ends before it expires: the tick
-- requeues what it holds at once, and the worker, if it lives, is woken and finds every write refused. Either loses
-- this partition's tick, and another process is asked for it. An instance that lives registers again.
-- Flags:   allow-oom
-- Go:      Engine.markDead
-- Args:    protocol what:worker|session name:bytes(1..64)
-- Replies: OK held:n; ALREADY_SATISFIED
-- Errors:  @root invalid_input worker_not_found session_not_found
local function ff_mark_dead(ctx, q)
  local id, session_dies = q.name, q.what == 'session'
  local x = session_dies and session.read(ctx, id) or registry.read(ctx, id)
  if x.dead then return reply.already() end
  if not x.exp then return reply.err(session_dies and 'session_not_found' or 'worker_not_found') end
  redis.call('HSET', session_dies and keys.session(ctx.r, id) or keys.worker(ctx.r, id), 'dead', '1', 'why',
    trail.words(ctx, 256))
  local bell = session_dies and session.bell(id) or id
  doorbell.vacate(ctx, bell)
  if not session_dies then return reply.ok('0') end
  timers.put(ctx, timers.sessions, math.min(x.exp, ctx.now), id)
  publish.to(keys.doorbell(ctx.r, bell), 'l')
  return reply.ok(reply.int(redis.call('ZCARD', keys.held(ctx.r, id))))
end
