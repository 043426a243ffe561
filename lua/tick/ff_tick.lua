-- ff_tick: everything that happens because time passed, for one partition: dead sessions are marked, their work
-- and what was revoked is requeued, delays come due, attempt and suspension timeouts and deadlines fire, pending
-- waitpoints expire, what ended is purged when its time is over, lost wake-ups are repeated, what calls
-- about flows left behind goes on, routes that gates closed open. At most about 100 executions a
-- call. Schedules that are due are counted for the caller, which alone can reckon with calendars, and so are entries
-- of the outbox, which it delivers. Only the owner ticks; a process that hears that a tick is overdue may take over.
-- With release 1 the owner gives the tick up. With release 2 another process asks: the owner is woken and has to tick
-- within two seconds; if nobody listens under its name, the caller takes over in this call.
-- Flags:   allow-oom
-- Go:      Engine.Tick
-- Args:    protocol owner:name(64) release:0|1|2
-- Replies: OK owner:flag more:flag next:ms idle:flag requeued:n exhausted:n promoted:n timed_out:n expired:n rung:n
--          suspensions:n waitpoints:n purged:n schedules:n outbox:n; ALREADY_SATISFIED other:text
-- Errors:  @root invalid_input
local ff_tick_do = {}

-- A function that bears the name of a timer fires one of its entries: id. n counts what the tick did; what it touched
-- is to stay below most.

-- sessions makes the death of one that expired sticky, and requeues what it held.
function ff_tick_do.sessions(ctx, id, n, most)
  local s = session.read(ctx, id)
  if s.alive then
    redis.call('ZADD', keys.sessions(ctx.r), reply.int(session.cut(ctx, id, s)), id)
    return
  end
  local key, held = keys.session(ctx.r, id), keys.held(ctx.r, id)
  redis.call('HSET', key, 'dead', '1')
  local members = redis.call('ZRANGE', held, 0, most - n.touched)
  for m = 1, #members do
    local c = core.read(ctx, members[m])
    if c.state and core.granted(c) and c.grant_session == id then
      settle.ungrant(ctx, c, members[m])
    elseif c.state == 'A1' and c.session == id then
      ff_tick_do.requeue(ctx, c, members[m], n)
    else
      indexes.unhold(ctx, id, members[m])
    end
    n.touched = n.touched + 1
  end
  flow.apply(ctx)
  if redis.call('EXISTS', held) == 0 then
    redis.call('ZREM', keys.sessions(ctx.r), id)
    redis.call('DEL', keys.lost(ctx.r, id))
    redis.call('EXPIRE', key, 600)
  else
    n.more = true
  end
end

function ff_tick_do.requeue(ctx, c, id, n)
  local what = settle.requeue(ctx, c, id)
  n[what] = n[what] + 1
end

-- delayed promotes what came due.
function ff_tick_do.delayed(ctx, id, n)
  local c = core.read(ctx, id)
  local to = c.state and core.promoted[c.state]
  if not to then return end
  if c.delay_until and tonumber(c.delay_until) > ctx.now then
    redis.call('ZADD', keys.delayed(ctx.r), c.delay_until, id)
    return
  end
  record.set(ctx, id, 'state', to)
  record.clear(ctx, id, 'delay_until')
  if c.flow then graph.moved(ctx, c, id, to) end
  indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  n.promoted = n.promoted + 1
end

-- alarms decides what one means by re-reading the core.
function ff_tick_do.alarms(ctx, id, n)
  local c = core.read(ctx, id)
  local deadline, timeout = c.deadline and tonumber(c.deadline), c.attempt_deadline and tonumber(c.attempt_deadline)
  if not c.state or core.terminal(c) then
    redis.call('ZREM', keys.alarms(ctx.r), id)
  elseif deadline and deadline <= ctx.now then
    if settle.open(c) then settle.fold(ctx, c, id, 'ended_failure', 'execution_deadline', '') end
    history.add(ctx, c, id, 'expired', 'execution_deadline')
    settle.finish(ctx, c, id, 'T4', 'expired', { 'failure_category', 'execution_deadline' })
    if c.state == 'A1' then session.lost(ctx, c.session, id, c.epoch, 'expired') end
    n.expired = n.expired + 1
  elseif core.granted(c) and tonumber(c.grant_deadline or '0') <= ctx.now then
    settle.ungrant(ctx, c, id)
  elseif c.state == 'A3' then
    ff_tick_do.requeue(ctx, c, id, n)
  elseif c.state == 'A1' and timeout and timeout <= ctx.now then
    if session.read(ctx, c.session).alive then
      settle.fail(ctx, c, id, { category = 'attempt_timeout', reason = '', timeout = true })
      session.lost(ctx, c.session, id, c.epoch, 'attempt_timeout')
      n.timedout = n.timedout + 1
    else
      ff_tick_do.requeue(ctx, c, id, n)
    end
  elseif core.suspended(c) and c.suspension_deadline and tonumber(c.suspension_deadline) <= ctx.now then
    settle.timeout(ctx, c, id)
    n.suspensions = n.suspensions + 1
  else
    local next_due = deadline
    if core.suspended(c) then timeout = c.suspension_deadline and tonumber(c.suspension_deadline) end
    if core.granted(c) then timeout = tonumber(c.grant_deadline or '0') end
    local timed = c.state == 'A1' or core.granted(c) or core.suspended(c)
    if timed and timeout and (not next_due or timeout < next_due) then next_due = timeout end
    indexes.alarm(ctx, next_due, id)
  end
end

-- pending closes a waitpoint whose time is over.
function ff_tick_do.pending(ctx, member, n)
  local id, wid = string.sub(member, 1, 36), string.sub(member, 38)
  local w = waitpoint.read(ctx, id, wid)
  if w and w.state == 'p' and tonumber(w.expires) <= ctx.now then
    waitpoint.close(ctx, id, wid, w, 'x', 'pending_expired')
    waitpoint.count(ctx, { open_waitpoints = record.read(ctx, id).open_waitpoints }, id, -1)
    n.waitpoints = n.waitpoints + 1
  else
    redis.call('ZREM', keys.pending(ctx.r), member)
  end
end

-- closed opens a route whose time has come: the next claim there asks the gate again.
function ff_tick_do.closed(ctx, route_id)
  gate.forget(ctx, route_id)
  indexes.reopen(ctx, route_id)
end

-- done purges what ended and was kept long enough. One that was given more time since is filed anew.
function ff_tick_do.done(ctx, id, n)
  local c = core.read(ctx, id)
  n.touched = n.touched + math.floor(math.min(200, core.started(c)) / 4)
  if c.flow then n.touched = n.touched + 1 end
  if c.had_waits then n.touched = n.touched + math.floor(#wait_record.ids(ctx, id) / 4) end
  if not c.state or not core.terminal(c) then
    redis.call('ZREM', keys.done(ctx.r), id)
    redis.call('ZREM', keys.unsuccessful(ctx.r), id)
    return
  end
  -- a damaged record must not stop the others: it is looked at again in a day
  local ended = tonumber(c.ended_at or '')
  local at = ended and indexes.over(ctx, c, ended) or ctx.now + 86400000
  local h = c.flow and graph.head(ctx, c.flow)
  if h then -- nobody needs a member before its flow has ended, and somebody may until then
    -- one that must stay is looked at again after as long as it has stayed
    local since = math.max(tonumber(h.en) or 0, ended or 0)
    local again = purge.pinned(ctx, c, id) and ctx.now + math.min(3600000, math.max(1000, ctx.now - since))
    at = math.max(at, again or (tonumber(h.en) or 0) + indexes.kept(ctx, c.route, c.retention, c.state))
  end
  if at > ctx.now and not c.purged_until then
    redis.call('ZADD', keys.done(ctx.r), reply.int(at), id)
  elseif purge.run(ctx, c, id, purge.keep(id)) then
    n.purged = n.purged + 1
  else
    n.more = true
  end
end

-- flow_due gives up a flow that was staged and not released for a day, and forgets the header of one without members.
function ff_tick_do.flow_due(ctx, id)
  local h = graph.head(ctx, id)
  if h and h.st == 'F0' then
    flow.stop(ctx, h, 'cancel_all', 'tick', 'flow_abandoned')
  elseif h and h.en and graph.count(h, 'pu') >= graph.count(h, 'nn') then
    purge.flow(ctx, h)
  end
end

-- streams deletes a written stream that has expired. One that was read or written since is filed anew.
function ff_tick_do.streams(ctx, id)
  local c = written.read(ctx, id)
  if not c or c.g or not c.du then return end
  if tonumber(c.du) > ctx.now then
    timers.put(ctx, timers.streams, tonumber(c.du), id)
  else
    written.drop(ctx, c)
  end
end

-- pass fires what is due of a timer, as far as the budget reaches.
function ff_tick_do.pass(ctx, timer, n)
  local budget = math.max(20, math.min(timer.most or 100, math.floor((100 - n.touched) / (timer.part or 1))))
  if timer == timers.backlog then -- goes on with what calls about flows left behind
    if flow.drain(ctx, budget) then n.more = true end
    n.touched = n.touched + budget - ctx.moves.nodes
  else
    local fire, most = ff_tick_do[timer.name], n.touched + budget
    local due = redis.call('ZRANGEBYSCORE', timer.key(ctx.r), '-inf', reply.int(ctx.now - (timer.lag or 0)), 'LIMIT',
      '0', reply.int(budget))
    if timer.take then redis.call('ZREM', timer.key(ctx.r), unpack(due)) end
    if #due == budget then n.more = true end
    for i = 1, fire and #due or 0 do
      if n.touched >= most then
        n.more = true
        break
      end
      n.touched = n.touched + 1
      fire(ctx, due[i], n, most)
    end
  end
  flow.apply(ctx)
  ctx.heads, ctx.ready, n.passed = {}, nil, true -- entries may have moved from one timer to another
end

-- walk looks at the timers that need it and, if asked to, fires what is due of each. It returns when the first entry
-- is due of those that are not kept for hours, as they are then; nil when there is none.
function ff_tick_do.walk(ctx, n, fires)
  local least, calm = nil, ff_tick_do.quiet(ctx)
  n.passed = false
  for i = 1, #timers.all do
    local timer, looks = timers.all[i], true
    if timer.quiet then
      looks = fires and not calm
    elseif timer.rare then
      looks = ff_tick_do.some(ctx, n)
    elseif timer.gates then
      looks = ctx.gates
    end
    local at = looks and timers.head(ctx, timer)
    if at and fires and at <= ctx.now and timer ~= timers.schedules then
      ff_tick_do.pass(ctx, timer, n)
      calm = ff_tick_do.quiet(ctx)
    elseif timer.quiet then
      if looks then ctx.heads[timer] = at or false end
    elseif at and (not least or at < least) then
      least = at
    end
  end
  if n.passed and fires then return ff_tick_do.walk(ctx, n, false) end
  return least
end

-- rering repeats wake-ups that may have been lost: ready routes and waiters coexist.
function ff_tick_do.rering(ctx, n)
  if ctx.ring then doorbell.table_changed(ctx, ctx.ring) end
  if ff_tick_do.quiet(ctx) and not ff_tick_do.ready(ctx) then return end
  ctx.cache.digests, ctx.cache.deaf = nil, 0
  local all = redis.call('SMEMBERS', keys.digests(ctx.r))
  local left = {}
  ctx.crowd = #all > 64 -- the next tick looks at others
  for i = 1, math.min(#all, 64) do
    local zset = keys.waiters(ctx.r, all[i])
    local head = redis.call('ZRANGE', zset, '0', '0', 'WITHSCORES')
    local over = not head[2]
    if not over and args.score(head[2]) <= ctx.now then
      redis.call('ZREMRANGEBYSCORE', zset, '-inf', ctx.t)
      over = redis.call('EXISTS', zset) == 0
    end
    if over then
      redis.call('SREM', keys.digests(ctx.r), all[i])
    else
      n.rung = n.rung + doorbell.again(ctx, all[i], left)
    end
  end
end

-- ready tells whether work waits for a claim.
function ff_tick_do.ready(ctx)
  if ctx.ready == nil then ctx.ready = redis.call('EXISTS', keys.ready(ctx.r), keys.gready(ctx.r)) end
  return ctx.ready > 0
end

-- some tells whether there may be anything in the timers that mostly are empty. What was worked on may have put
-- something there. Mostly no work waits either, so that one command tells both.
function ff_tick_do.some(ctx, n)
  if ctx.some == nil then
    local r = ctx.r
    local all = redis.call('EXISTS', keys.delayed(r), keys.alarms(r), keys.pending(r), keys.backlog(r), keys.ready(r),
      keys.gready(r))
    if all == 0 then ctx.ready = 0 end
    ctx.some = all > 0 and (not ff_tick_do.ready(ctx) or all > ctx.ready)
  end
  return ctx.some or n.touched > 0
end

-- quiet tells that nothing comes due within a second of what is kept for hours (root.filed).
function ff_tick_do.quiet(ctx)
  return ctx.quiet and ctx.quiet > ctx.now + 1000 and ctx.quiet <= ctx.now + root.span
end

-- upcoming is when a tick is wanted next, nil when nothing waits for one; least is when something is due that is not
-- kept for hours. The second result is until when nothing of what is comes due: 0 when something does, nil when that
-- stays as it is. What is overdue of it after this call (a schedule that waits for the caller) waits for a second.
function ff_tick_do.upcoming(ctx, least, outbox)
  local upto = ctx.now + root.span
  if least and least > upto then least = upto end
  if (not least or least > ctx.now + 1000) and (outbox > 0 or ff_tick_do.ready(ctx)) then least = ctx.now + 1000 end
  if least and least <= ctx.now + 1000 and ff_tick_do.quiet(ctx) then return least, nil end
  for i = 1, #timers.all do
    local timer = timers.all[i]
    local at = timer.quiet and ctx.heads[timer]
    if timer.quiet and at == nil then at = timers.head(ctx, timer) end
    if at then
      upto = math.min(upto, at)
      if at <= ctx.now then at = ctx.now + 1000 end
      least = math.min(least or at, at)
    end
  end
  local _, recorded = feed.wanted(ctx) -- a day later the feed goes
  if recorded then
    local at = math.max(recorded + 86400000, ctx.now + 1000)
    least = math.min(least or at, at)
  end
  return least, upto > ctx.now and not ctx.crowd and upto or 0
end

-- ask wakes the owner for a tick, and tells whether somebody heard it. An owner that hears it and does not tick is
-- late from now on.
function ff_tick_do.ask(ctx, owner)
  if publish.to(keys.doorbell(ctx.r, owner), 't') == 0 then return false end
  if not ctx.wake or ctx.wake > ctx.now then redis.call('HSET', ctx.r, 'wake', ctx.t) end
  return true
end

local function ff_tick(k, argv)
  local ctx, refused = root.enter(k, argv, false, true)
  if not ctx then return refused end
  local q, bad = decode.ff_tick(argv)
  if not q then return bad end
  local owner = q.owner
  if q.release == '1' then
    if root.owner(ctx) ~= owner then return reply.already(root.owner(ctx) or '') end
    doorbell.vacate(ctx, owner)
    return reply.ok('0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0')
  end
  local current = root.owner(ctx)
  if current and current ~= owner and root.overdue(ctx) == '0' and
      (q.release ~= '2' or ff_tick_do.ask(ctx, current)) then
    return reply.already(current)
  end

  if root.stepped(ctx) then
    for i = 1, #timers.all do
      local key = timers.all[i].clock and timers.all[i].key(ctx.r)
      if key then redis.call('ZUNIONSTORE', key, '1', key, 'WEIGHTS', '0') end
    end
  end
  ctx.wake = 0 -- nobody needs to be rung for an earlier wake: this call sets it
  local n = { touched = 0, requeued = 0, exhausted = 0, promoted = 0, timedout = 0, expired = 0, rung = 0,
    suspensions = 0, waitpoints = 0, purged = 0, more = false, passed = false }
  ctx.heads = {}
  local least = ff_tick_do.walk(ctx, n, true)
  local quiet = ff_tick_do.quiet(ctx)
  if not quiet then feed.trim(ctx) end
  ff_tick_do.rering(ctx, n)
  local due = ctx.heads[timers.schedules]
  local schedules = due and due <= ctx.now and redis.call('ZCOUNT', keys.schedules(ctx.r), '-inf', ctx.t) or 0
  local outbox = (ctx.gates or ctx.told) and redis.call('XLEN', keys.outbox(ctx.r)) or 0
  if ctx.told and outbox == 0 then redis.call('HDEL', ctx.r, 'told') end
  local wake, upto = ff_tick_do.upcoming(ctx, least, outbox)
  if n.more then wake = ctx.now end
  upto = upto or ctx.quiet or 0
  redis.call('HSET', ctx.r, 'owner', owner, 'ticked', ctx.t, 'wake', reply.int(wake or 0), 'quiet', reply.int(upto))
  if not wake then redis.call('HDEL', ctx.r, 'wake') end
  if upto == 0 then redis.call('HDEL', ctx.r, 'quiet') end
  return reply.ok('1', n.more and '1' or '0', reply.int(wake and math.max(0, wake - ctx.now) or 0), wake and '0' or '1',
    reply.int(n.requeued), reply.int(n.exhausted), reply.int(n.promoted), reply.int(n.timedout), reply.int(n.expired),
    reply.int(n.rung), reply.int(n.suspensions), reply.int(n.waitpoints), reply.int(n.purged), reply.int(schedules),
    reply.int(outbox))
end
