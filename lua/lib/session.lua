-- session: one worker instance's lease in one partition. Fields: exp expiry, ttl how long a renewal is good for, cl
-- last claim number, dead, lg generation of the newest lost notice, lb generation before the oldest kept one. Dead is
-- sticky: a session that expired or was closed is never revived.
local session = {}

function session.read(ctx, id)
  ctx.cache.sessions = ctx.cache.sessions or {}
  local s = ctx.cache.sessions[id]
  if not s then
    local v = redis.call('HMGET', keys.session(ctx.r, id), 'exp', 'dead', 'cl', 'lg', 'lb', 'ttl')
    s = { exp = v[1] and tonumber(v[1]), dead = v[2], cl = v[3] and tonumber(v[3]) or 0,
      lg = v[4] and tonumber(v[4]) or 0, lb = v[5] and tonumber(v[5]) or 0, ttl = v[6] and tonumber(v[6]) or 3600000 }
    s.alive = s.exp and not s.dead and s.exp > ctx.now
    ctx.cache.sessions[id] = s
  end
  return s
end

-- alive tells no more of one than that.
function session.alive(ctx, id)
  local v = redis.call('HMGET', keys.session(ctx.r, id), 'exp', 'dead')
  return v[1] and not v[2] and tonumber(v[1]) > ctx.now
end

-- shorten keeps the index right when a session now ends earlier than it did. One that ends later is found, and
-- indexed again, when its old entry comes due.
function session.shorten(ctx, id, s, exp)
  if s.exp and exp < s.exp then
    timers.put(ctx, timers.sessions, exp, id)
  end
end

-- cut returns when a session that lives ends, at most its ttl from now: one that ends later was renewed before the
-- clock stepped back, and gets as long as a renewal gives. It is told apart from one that is renewed by now, so
-- calling it again and again prolongs nothing.
function session.cut(ctx, id, s)
  if s.exp > ctx.now + s.ttl then
    s.exp = ctx.now + s.ttl
    redis.call('HSET', keys.session(ctx.r, id), 'exp', reply.int(s.exp))
  end
  return s.exp
end

-- bell is who is woken for a session: its id is "<instance>~<random>", or "<bell>~<instance>~<random>" where one
-- process listens for many instances.
function session.bell(id)
  return string.match(id, '^([^~]*)~') or id
end

-- instance is the worker instance of a session.
function session.instance(id)
  return string.match(id, '^[^~]*~([^~]*)~') or session.bell(id)
end

-- valid: 3..64 printable bytes of two or three parts. Checked where a session is opened; elsewhere
-- an id that was never opened simply has no record.
function session.valid(id)
  return args.name(id, 64) and (string.find(id, '^[^~]+~[^~]+$') or string.find(id, '^[^~]+~[^~]+~[^~]+$')) and true
    or nil
end

-- lost tells a holder that an execution was taken from it: a notice that the next renewal carries, and a wake-up.
function session.lost(ctx, id, execution, epoch, cause)
  local s = session.read(ctx, id)
  if not s.alive then return end
  s.lg = redis.call('HINCRBY', keys.session(ctx.r, id), 'lg', 1)
  redis.call('RPUSH', keys.lost(ctx.r, id), execution .. ' ' .. epoch .. ' ' .. cause)
  publish.to(keys.doorbell(ctx.r, session.bell(id)), 'l')
end
