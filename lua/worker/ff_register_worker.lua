-- ff_register_worker: says that a worker instance is there, for a ttl, and what it is; made again before the ttl is
-- over it says that it still is. token is the process: while the row of another lives, the name is taken. A row that
-- ran out, was left or was given up is anybody's. Leases do not depend on it. revision is this library's, so that a
-- process which has a newer one notices. inflight are its handlers at work, stuck those of them that ignore the end
-- of their context. version is that of its application, '' for none: the newest 256 of a partition are remembered, so
-- that what a worker claimed can be told from its session when its row is gone.
-- Flags:   allow-oom
-- Go:      Engine.RegisterWorker
-- Args:    protocol instance:name(48) token:name(64) ttl:ms(1000..3600000) inflight:n(0..1000000)
--          stuck:n(0..1000000) info:bytes(1..131072) version:bytes(64)
-- Replies: OK outcome:registered|renewed expiry:instant revision:n
-- Errors:  @root invalid_input instance_in_use
local function ff_register_worker(ctx, q)
  local instance, token, ttl, inflight, stuck, info = q.instance, q.token, q.ttl, q.inflight, q.stuck, q.info
  if stuck > inflight then return reply.err('invalid_input', 'stuck: at most as many as inflight') end
  local w = registry.read(ctx, instance)
  if w.alive and w.token ~= token then
    return reply.err('instance_in_use', reply.int(w.exp), reply.int(w.exp - ctx.now))
  end
  local key, ends = keys.worker(ctx.r, instance), ctx.now + ttl
  local expiry = reply.int(ends)

  redis.call('HDEL', key, 'dead', 'why')
  redis.call('HSET', key, 'token', token, 'exp', expiry, 'seen', ctx.t, 'reg', w.token == token and w.reg or ctx.t,
    'in', q.inflight, 'stuck', q.stuck, 'info', info)
  redis.call('PEXPIRE', key, reply.int(ttl + timers.workers.lag))
  timers.put(ctx, timers.workers, ends, instance)
  if q.version ~= '' then
    redis.call('ZADD', keys.versions(ctx.r), ctx.t, q.version)
    if not w.alive then redis.call('ZREMRANGEBYRANK', keys.versions(ctx.r), 0, -257) end
  end
  return reply.ok(w.alive and 'renewed' or 'registered', expiry, '@REVISION@')
end
