-- timers: all that happens in a partition because its time has come: one sorted set each, of entries by when they are
-- due. The tick goes through timers.all in its order (lua/tick/ff_tick.lua). A timer has these fields:
--   key    names the sorted set
--   lag    ms after its score that an entry is due
--   most   how many entries one tick fires, of its budget of 100
--   part   the divisor: a tick fires at most the budget that is left, divided by it, but never less than 20
--   take   the tick takes entries out before it fires them; each counts as one
--   rare   one of those that mostly are all empty: the tick asks once whether any has an entry
--   gates  the set exists only where routes have gates
--   clock  after the clock stepped back, the tick looks at every entry again
--   quiet  entries stay for hours: the tick looks at the set only when the root's field quiet is over (root.filed)
local timers = {
  sessions = { name = 'sessions', key = keys.sessions, most = 60, clock = true },
  delayed = { name = 'delayed', key = keys.delayed, part = 2, take = true, rare = true },
  alarms = { name = 'alarms', key = keys.alarms, rare = true },
  pending = { name = 'pending', key = keys.pending, rare = true },
  closed = { name = 'closed', key = keys.closed, most = 32, gates = true, clock = true },
  backlog = { name = 'backlog', key = keys.backlog, most = 64, rare = true },
  done = { name = 'done', key = keys.done, quiet = true },
  flow_due = { name = 'flow_due', key = keys.flow_due, most = 20, take = true, quiet = true },
  workers = { name = 'workers', key = keys.workers, lag = 3600000, take = true, quiet = true },
  streams = { name = 'streams', key = keys.streams_due, most = 50, take = true, quiet = true },
  schedules = { name = 'schedules', key = keys.schedules, quiet = true }, -- the caller fires them
}
timers.all = { timers.sessions, timers.delayed, timers.alarms, timers.pending, timers.closed, timers.backlog,
  timers.done, timers.flow_due, timers.workers, timers.streams, timers.schedules }

-- head is when the first entry of a timer is due; nil when it has none.
function timers.head(ctx, timer)
  local first = redis.call('ZRANGE', timer.key(ctx.r), '0', '0', 'WITHSCORES')
  return first[2] and args.score(first[2]) + (timer.lag or 0)
end

-- need makes sure that a tick comes when an entry of a timer is due. For what is kept for hours a tick that is to come
-- anyhow will do, also if it is later than root.span.
function timers.need(ctx, timer, at)
  if not (timer.quiet and ctx.wake and ctx.wake <= at) then root.need(ctx, at) end
  if timer.quiet then root.filed(ctx, at) end
end

-- put files an entry under its time, ms.
function timers.put(ctx, timer, at, member)
  redis.call('ZADD', timer.key(ctx.r), reply.int(at), member)
  timers.need(ctx, timer, at + (timer.lag or 0))
end
