-- schedule: the record of a schedule, a hash. Calendars are reckoned in Go; here is only what must be atomic. Fields:
--   df definition (opaque)    in input, il its bytes   rv revision            ic revision of its creation
--   nx next due, ms           lf last instant fired    lx last execution      fc fired   mc missed
--   mf mt mn mr  the last run of missed instants: first, last, how many, why; m:<why> how many in all
--   pz 1 = paused             pa paused at             pb by whom             ra resumed at   rb by whom
--   ct created at             up updated at            by who updated it
--   lw the last flow; lx is a flow if it is the same
-- Revisions grow over all schedules of a partition, removed ones too, and are times, so that a failover repeats none.
local schedule = {}

-- read returns all fields but the definition and the input, nil when there is none.
function schedule.read(ctx, name)
  local fields = { 'rv', 'ic', 'nx', 'lf', 'lx', 'fc', 'mc', 'mf', 'mt', 'mn', 'mr', 'pz', 'pa', 'pb', 'ra', 'rb', 'ct',
    'up', 'by', 'lw' }
  local v = redis.call('HMGET', keys.schedule(ctx.r, name), unpack(fields))
  if not v[1] then return nil end
  local c = {}
  for i = 1, #fields do c[fields[i]] = v[i] or nil end
  return c
end

-- revise returns the next revision of the partition.
function schedule.revise(ctx)
  local last = redis.call('HGET', ctx.r, 'revision')
  local rv = reply.int(math.max(last and tonumber(last) + 1 or 0, ctx.now))
  redis.call('HSET', ctx.r, 'revision', rv)
  return rv
end

-- missed is what four arguments say of instants that were missed: how many, the first, the last, why. nil when they do
-- not go together; a count of 0 has no others.
function schedule.missed(q)
  local first, last, why = q.first, q.last, q.why
  if q.missed == 0 then return first == '' and last == '' and why == '' and { count = 0 } or nil end
  if first == '' or last == '' or tonumber(first) > tonumber(last) or not string.find(why, '^%l[%l_]*$') then
    return nil
  end
  return { count = q.missed, first = first, last = last, why = why }
end

-- reasons is how many reasons a record counts one by one; the others are counted together. A count stops at most, the
-- largest number that is exact.
local reasons, most = 32, 9007199254740991

-- miss counts instants that are not submitted. What was missed for the same reason with nothing fired between is one
-- run.
function schedule.miss(ctx, name, c, m)
  if m.count == 0 then return end
  local key, first, run = keys.schedule(ctx.r, name), m.first, m.count
  if c.mr == m.why and (not c.lf or tonumber(c.lf) < tonumber(c.mf)) then
    first, run = c.mf, run + tonumber(c.mn)
  end
  c.mf, c.mt, c.mn, c.mr = first, m.last, reply.int(math.min(run, most)), m.why
  c.mc = reply.int(math.min(tonumber(c.mc or '0') + m.count, most))
  redis.call('HSET', key, 'mf', c.mf, 'mt', c.mt, 'mn', c.mn, 'mr', c.mr, 'mc', c.mc)
  local field = 'm:' .. m.why
  if redis.call('HEXISTS', key, field) == 0 and redis.call('HLEN', key) > 24 + reasons then field = 'm:other' end
  redis.call('HSET', key, field, reply.int(math.min(tonumber(redis.call('HGET', key, field) or '0') + m.count, most)))
end

-- file sets when a schedule is due next, '' for never, and whether the tick looks for it. One that has fired as often
-- as limit ('' without end) is never due again. It returns what was set.
function schedule.file(ctx, name, c, at, limit)
  local key = keys.schedule(ctx.r, name)
  if limit ~= '' and tonumber(c.fc or '0') >= tonumber(limit) then at = '' end
  if at == '' then
    redis.call('HDEL', key, 'nx')
  else
    redis.call('HSET', key, 'nx', at)
  end
  if at == '' or c.pz then
    redis.call('ZREM', keys.schedules(ctx.r), name)
  else
    timers.put(ctx, timers.schedules, tonumber(at), name)
  end
  return at
end
