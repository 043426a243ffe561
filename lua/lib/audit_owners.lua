-- audit_owners: whether sessions, waiting workers, schedules, registered workers and gates are in the
-- indexes that they belong to.
local audit_owners = {}

-- looks are by area; each looks at one record.
audit_owners.looks = {}

-- s: a session that lives, holds work or has not been buried yet must come due by its end. One that was given up is due
-- at once, by the clock of then: if that has stepped back since, its entry is later than now.
function audit_owners.looks.s(ctx, id)
  local key = keys.session(ctx.r, id)
  local h = redis.call('HMGET', key, 'exp', 'dead')
  local ends = audit.whole(h[1] or nil)
  if not ends and not h[2] then
    if redis.call('EXISTS', key) == 1 then audit.broken(ctx, 's', id, 'session without expiry') end
    return
  end
  local by = ends or ctx.now
  local at = redis.call('ZSCORE', keys.sessions(ctx.r), id)
  if at and audit.score(at) <= by then return end
  if not at and h[2] and redis.call('EXISTS', keys.held(ctx.r, id)) == 0 and redis.call('PTTL', key) >= 0 then
    return
  end
  if audit.note(ctx, at and 'score' or 'missing', 'sessions',
    id, (at or 'nowhere') .. ', belongs at ' .. reply.int(by)) then
    timers.put(ctx, timers.sessions, by, id)
  end
end

-- l: notices of a session that is gone.
function audit_owners.looks.l(ctx, id)
  local key = keys.lost(ctx.r, id)
  if redis.call('EXISTS', key) == 0 or redis.call('EXISTS', keys.session(ctx.r, id)) == 1 then return end
  if audit.note(ctx, 'orphan', 'l', id, 'notices without session') then redis.call('UNLINK', key) end
end

-- w: a subscription that has waiters is among the digests, or nobody would wake them.
function audit_owners.looks.w(ctx, digest)
  if redis.call('EXISTS', keys.waiters(ctx.r, digest)) == 0
    or redis.call('SISMEMBER', keys.digests(ctx.r), digest) == 1 then return end
  if audit.note(ctx, 'missing', 'digests', digest, 'it has waiters') then
    redis.call('SADD', keys.digests(ctx.r), digest)
    root.need(ctx, ctx.now + 1000)
  end
end

-- sc: a schedule is listed by its name, and comes due at its next instant unless it is paused.
function audit_owners.looks.sc(ctx, name)
  local c = schedule.read(ctx, name)
  if not c then
    if redis.call('EXISTS', keys.schedule(ctx.r, name)) == 1 then
      audit.broken(ctx, 'sc', name, 'schedule without revision')
    end
    return
  end
  if not redis.call('ZSCORE', keys.schedule_names(ctx.r), name)
    and audit.note(ctx, 'missing', 'scnames', name, 'nowhere') then
    redis.call('ZADD', keys.schedule_names(ctx.r), '0', name)
  end
  local at, by = redis.call('ZSCORE', keys.schedules(ctx.r), name), not c.pz and c.nx and audit.whole(c.nx) or nil
  if c.nx and not audit.whole(c.nx) then audit.broken(ctx, 'sc', name, 'next is no time') end
  if by and not (at and audit.score(at) == by) then
    if audit.note(ctx, at and 'score' or 'missing', 'schedules',
      name, (at or 'nowhere') .. ', belongs at ' .. c.nx) then
      timers.put(ctx, timers.schedules, by, name)
    end
  elseif at and not by and audit.note(ctx, 'phantom', 'schedules', name, 'it is paused, or never due') then
    redis.call('ZREM', keys.schedules(ctx.r), name)
  end
end

-- wk: a registered worker is listed until it is forgotten.
function audit_owners.looks.wk(ctx, instance)
  local exp = redis.call('HGET', keys.worker(ctx.r, instance), 'exp')
  local ends = audit.whole(exp or nil)
  if not ends or ends + timers.workers.lag <= ctx.now
    or redis.call('ZSCORE', keys.workers(ctx.r), instance) then return end
  if audit.note(ctx, 'missing', 'workers', instance, 'nowhere') then
    timers.put(ctx, timers.workers, ends, instance)
  end
end

-- ga: a gate is listed by its name, its definition is complete, and what it counted goes with it.
function audit_owners.looks.ga(ctx, name)
  local r, key = ctx.r, keys.gate(ctx.r, name)
  local fields = { 'df', 'md', 'hd', 'sf', 'iv', 'st', 'rf', 'ct', 'up', 'rc', 'ps', 'bc', 'bs', 'rt', 'wn', 'cp',
    'jt' }
  local v = redis.call('HMGET', key, unpack(fields))
  if redis.call('EXISTS', key) == 0 then
    local owned = { keys.usage(r, name), keys.spenders(r, name), keys.gate_log(r, name), keys.amount_waiters(r, name),
      keys.line(r, name), keys.hours(r, name), keys.window(r, name), keys.slots(r, name),
      keys.slot_waiters(r, name), keys.rate_waiters(r, name) }
    if redis.call('EXISTS', unpack(owned)) > 0 and audit.note(ctx, 'orphan', 'ga', name, 'its definition is gone') then
      redis.call('UNLINK', unpack(owned))
    end
    return
  end
  for i = 1, #fields do
    if not v[i] then return audit.broken(ctx, 'ga', name, 'definition without ' .. fields[i]) end
  end
  if not redis.call('ZSCORE', keys.gates(r), name) and audit.note(ctx, 'missing', 'gates', name, 'nowhere') then
    redis.call('ZADD', keys.gates(r), '0', name)
  end
end
