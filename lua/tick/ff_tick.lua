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

-- stepped has this tick and those that follow at once look at every session and at every route that gates closed,
-- after the clock stepped back: their times are those of another clock. A live session stays for one ttl
-- (session.cut), and a gate is asked again. Everything else keeps its time.
function ff_tick_do.stepped(ctx)
  if not root.stepped(ctx) then return end
  local again = { keys.sessions(ctx.r), keys.closed(ctx.r) }
  for i = 1, 2 do redis.call('ZUNIONSTORE', again[i], '1', again[i], 'WEIGHTS', '0') end
end

-- sessions finds expired sessions, makes their death sticky, and requeues what they held, up to budget.
function ff_tick_do.sessions(ctx, budget, n)
  local due = redis.call('ZRANGEBYSCORE', keys.sessions(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', 0, budget)
  for i = 1, #due do
    if n.touched >= budget then
      n.more = true
      return
    end
    local id = due[i]
    local s = session.read(ctx, id)
    n.touched = n.touched + 1
    if s.alive then
      redis.call('ZADD', keys.sessions(ctx.r), reply.int(session.cut(ctx, id, s)), id)
    else
      local key, held = keys.session(ctx.r, id), keys.held(ctx.r, id)
      redis.call('HSET', key, 'dead', '1')
      local members = redis.call('ZRANGE', held, 0, budget - n.touched)
      for m = 1, #members do
        local c = core.read(ctx, members[m])
        if c.state and core.granted(c) and c.grant_session == id then
          settle.ungrant(ctx, c, members[m])
        elseif c.state == 'A1' and c.session == id then
          local what = settle.requeue(ctx, c, members[m])
          n[what] = n[what] + 1
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
  end
  if #due == budget then n.more = true end
end

-- delays promotes what came due.
function ff_tick_do.delays(ctx, budget, n)
  local due = redis.call('ZRANGEBYSCORE', keys.delayed(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', 0, budget)
  if #due == budget then n.more = true end
  if #due == 0 then return end
  redis.call('ZREM', keys.delayed(ctx.r), unpack(due))
  local to = core.promoted
  for i = 1, #due do
    local c = core.read(ctx, due[i])
    if c.state and to[c.state] then
      if c.delay_until and tonumber(c.delay_until) > ctx.now then
        redis.call('ZADD', keys.delayed(ctx.r), c.delay_until, due[i])
      else
        record.set(ctx, due[i], 'state', to[c.state])
        record.clear(ctx, due[i], 'delay_until')
        if c.flow then graph.moved(ctx, c, due[i], to[c.state]) end
        indexes.enqueue(ctx, c.route, lane.score(ctx, c), due[i])
        n.promoted = n.promoted + 1
      end
    end
    n.touched = n.touched + 1
  end
  flow.apply(ctx)
end

-- fire decides what one alarm means by re-reading the core.
function ff_tick_do.fire(ctx, id, n)
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
    local what = settle.requeue(ctx, c, id)
    n[what] = n[what] + 1
  elseif c.state == 'A1' and timeout and timeout <= ctx.now then
    if session.read(ctx, c.session).alive then
      settle.fail(ctx, c, id, { category = 'attempt_timeout', reason = '', timeout = true })
      session.lost(ctx, c.session, id, c.epoch, 'attempt_timeout')
      n.timedout = n.timedout + 1
    else
      local what = settle.requeue(ctx, c, id)
      n[what] = n[what] + 1
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

function ff_tick_do.alarms(ctx, budget, n)
  local due = redis.call('ZRANGEBYSCORE', keys.alarms(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', 0, budget)
  if #due == budget then n.more = true end
  for i = 1, #due do
    ff_tick_do.fire(ctx, due[i], n)
    n.touched = n.touched + 1
  end
  flow.apply(ctx)
end

-- waitpoints closes pending ones whose time is over.
function ff_tick_do.waitpoints(ctx, budget, n)
  local due = redis.call('ZRANGEBYSCORE', keys.pending(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', 0, budget)
  if #due == budget then n.more = true end
  for i = 1, #due do
    local id, wid = string.sub(due[i], 1, 36), string.sub(due[i], 38)
    local w = waitpoint.read(ctx, id, wid)
    if w and w.state == 'p' and tonumber(w.expires) <= ctx.now then
      waitpoint.close(ctx, id, wid, w, 'x', 'pending_expired')
      waitpoint.count(ctx, { open_waitpoints = record.read(ctx, id).open_waitpoints }, id, -1)
      n.waitpoints = n.waitpoints + 1
    else
      redis.call('ZREM', keys.pending(ctx.r), due[i])
    end
    n.touched = n.touched + 1
  end
end

-- retention purges what ended and was kept long enough. One that was given more time since is filed anew.
function ff_tick_do.retention(ctx, budget, n)
  local due = redis.call('ZRANGEBYSCORE', keys.done(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', 0, budget)
  if #due == budget then n.more = true end
  local most = n.touched + budget
  for i = 1, #due do
    if n.touched >= most then
      n.more = true
      break
    end
    local c = core.read(ctx, due[i])
    n.touched = n.touched + 1 + math.floor(math.min(200, core.started(c)) / 4)
    if c.flow then n.touched = n.touched + 1 end
    if c.had_waits then n.touched = n.touched + math.floor(#waits.ids(ctx, due[i]) / 4) end
    if not c.state or not core.terminal(c) then
      redis.call('ZREM', keys.done(ctx.r), due[i])
      redis.call('ZREM', keys.unsuccessful(ctx.r), due[i])
    else
      -- a damaged record must not stop the others: it is looked at again in a day
      local ended = tonumber(c.ended_at or '')
      local at = ended and indexes.over(ctx, c, ended) or ctx.now + 86400000
      local h = c.flow and graph.head(ctx, c.flow)
      if h then -- nobody needs a member before its flow has ended, and somebody may until then
        -- one that must stay is looked at again after as long as it has stayed
        local since = math.max(tonumber(h.en) or 0, ended or 0)
        local again = purge.pinned(ctx, c, due[i]) and ctx.now + math.min(3600000, math.max(1000, ctx.now - since))
        at = math.max(at, again or (tonumber(h.en) or 0) + indexes.kept(ctx, c.route, c.retention, c.state))
      end
      if at > ctx.now and not c.purged_until then
        redis.call('ZADD', keys.done(ctx.r), reply.int(at), due[i])
      elseif purge.run(ctx, c, due[i], purge.keep(due[i])) then
        n.purged = n.purged + 1
      else
        n.more = true
      end
    end
  end
  flow.apply(ctx)
end

-- flows gives up what was staged and not released for a day, and forgets the headers of flows without members.
function ff_tick_do.flows(ctx, n)
  local due = redis.call('ZRANGEBYSCORE', keys.flow_due(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT', '0', '20')
  for i = 1, #due do
    local h = graph.head(ctx, due[i])
    redis.call('ZREM', keys.flow_due(ctx.r), due[i])
    if h and h.st == 'F0' then
      flow.stop(ctx, h, 'cancel_all', 'tick', 'flow_abandoned')
    elseif h and h.en and graph.count(h, 'pu') >= graph.count(h, 'nn') then
      purge.flow(ctx, h)
    end
    n.touched = n.touched + 1
  end
  flow.apply(ctx)
end

-- backlog goes on with what calls about flows left behind.
function ff_tick_do.backlog(ctx, budget, n)
  if redis.call('EXISTS', keys.backlog(ctx.r)) == 0 then return end
  if flow.drain(ctx, budget) then n.more = true end
  n.touched = n.touched + budget - ctx.moves.nodes
  flow.apply(ctx)
  n.drained = 1
end

-- gates opens routes whose time has come: the next claim there asks the gate again.
function ff_tick_do.gates(ctx, n)
  if not ctx.gates then return end
  local due = redis.call('ZRANGEBYSCORE', keys.closed(ctx.r), '-inf', ctx.t, 'LIMIT', '0', '32')
  for i = 1, #due do
    gate.forget(ctx, due[i])
    indexes.reopen(ctx, due[i])
    n.touched = n.touched + 1
  end
  if #due == 32 then n.more = true end
end

-- workers forgets instances that have not been heard of for an hour.
function ff_tick_do.workers(ctx)
  redis.call('ZREMRANGEBYSCORE', keys.workers(ctx.r), '-inf', reply.int(ctx.now - 3600000))
end

-- rering repeats wake-ups that may have been lost: ready routes and waiters coexist.
function ff_tick_do.rering(ctx, n)
  if ctx.ring then doorbell.table_changed(ctx, ctx.ring) end
  if ff_tick_do.quiet(ctx) and not ff_tick_do.some(ctx, n) then return end -- nothing is ready
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

-- some tells whether there may be anything in the sets that mostly are empty. What was worked on may have put
-- something there.
function ff_tick_do.some(ctx, n)
  if ctx.some == nil then
    local r = ctx.r
    ctx.some = redis.call('EXISTS', keys.delayed(r), keys.alarms(r), keys.pending(r), keys.backlog(r), keys.ready(r),
      keys.gready(r)) > 0
  end
  return ctx.some or n.touched > 0
end

-- quiet tells that nothing comes due within a second of what is kept for hours (root.filed).
function ff_tick_do.quiet(ctx)
  return ctx.quiet and ctx.quiet > ctx.now + 1000 and ctx.quiet <= ctx.now + root.span
end

-- is_due looks at the head of a timer set and remembers it for next_due.
function ff_tick_do.is_due(ctx, key)
  local head = redis.call('ZRANGE', key, '0', '0', 'WITHSCORES')
  local at = head[2] and args.score(head[2])
  ctx.heads[key] = at
  return at and at <= ctx.now
end

-- until_when nothing comes due of what is kept for hours, at most root.span ahead; nil when something is left to do.
function ff_tick_do.until_when(ctx)
  if ctx.crowd then return nil end
  local first = ctx.now + root.span
  local sets = { keys.done(ctx.r), keys.schedules(ctx.r), keys.flow_due(ctx.r), keys.workers(ctx.r) }
  for i = 1, 4 do
    local head = redis.call('ZRANGEBYSCORE', sets[i], '-inf', reply.int(first - (i == 4 and 3600000 or 0)),
      'WITHSCORES', 'LIMIT', '0', '1')
    if head[2] then first = math.min(first, args.score(head[2]) + (i == 4 and 3600000 or 0)) end
  end
  return first > ctx.now and reply.int(first) or nil
end

-- later is the head of those sets that only need a tick when their time comes; nil when they are empty. It is a
-- second from now at least, but for a schedule, which is to be fired on time: when a tick is wanted in a second
-- anyway, that alone counts.
function ff_tick_do.later(ctx, soon)
  if soon and ff_tick_do.quiet(ctx) then return nil end
  local least, sets = nil, { keys.schedules(ctx.r), keys.done(ctx.r), keys.workers(ctx.r), keys.flow_due(ctx.r) }
  for i = 1, soon and 1 or 4 do
    local head = redis.call('ZRANGE', sets[i], '0', '0', 'WITHSCORES')
    local at = head[2] and args.score(head[2]) + (i == 3 and 3600000 or 0)
    if at and (i ~= 1 or at <= ctx.now) then at = math.max(at, ctx.now + 1000) end
    if at and (not least or at < least) then least = at end
  end
  if soon then return least end
  local _, recorded = feed.wanted(ctx) -- a day later the feed goes
  if recorded then
    local at = math.max(recorded + 86400000, ctx.now + 1000)
    if not least or at < least then least = at end
  end
  return least
end

-- next_due is the earliest thing a tick waits for, nil when nothing exists. A schedule that is due waits for the
-- caller.
function ff_tick_do.next_due(ctx, n, outbox)
  local least = nil
  local sets = { keys.sessions(ctx.r), keys.delayed(ctx.r), keys.alarms(ctx.r), keys.pending(ctx.r), keys.done(ctx.r) }
  for i = 1, 5 do
    local at = ctx.heads[sets[i]]
    -- what was worked on may have moved from one set to another
    if n.touched > 0 and (i < 5 or not ff_tick_do.quiet(ctx)) then
      ff_tick_do.is_due(ctx, sets[i])
      at = ctx.heads[sets[i]]
    end
    if at and i < 5 then at = math.min(at, ctx.now + root.span) end
    if at and (not least or at < least) then least = at end
  end
  if least and least <= ctx.now then return least end
  if (not least or least > ctx.now + 1000) and (outbox > 0 or
      ff_tick_do.some(ctx, n) and redis.call('EXISTS', keys.ready(ctx.r), keys.gready(ctx.r)) > 0) then
    least = ctx.now + 1000
  end
  local at = ff_tick_do.later(ctx, least and least <= ctx.now + 1000)
  if ctx.gates then
    local head = redis.call('ZRANGE', keys.closed(ctx.r), '0', '0', 'WITHSCORES')
    local opens = head[2] and args.score(head[2])
    if opens and (not at or opens < at) then at = opens end
  end
  return least and at and math.min(least, at) or least or at
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
  if current and current ~= owner and root.overdue(ctx) == '0' and (q.release ~= '2' or ff_tick_do.ask(ctx, current)) then
    return reply.already(current)
  end

  ff_tick_do.stepped(ctx)
  ctx.wake = 0 -- nobody needs to be rung for an earlier wake: this call sets it
  local n = { touched = 0, requeued = 0, exhausted = 0, promoted = 0, timedout = 0, expired = 0, rung = 0,
    suspensions = 0, waitpoints = 0, purged = 0, more = false }
  ctx.heads = {}
  if ff_tick_do.is_due(ctx, keys.sessions(ctx.r)) then ff_tick_do.sessions(ctx, 60, n) end
  if ff_tick_do.some(ctx, n) then
    if ff_tick_do.is_due(ctx, keys.delayed(ctx.r)) then
      ff_tick_do.delays(ctx, math.max(20, math.floor((100 - n.touched) / 2)), n)
    end
    if ff_tick_do.is_due(ctx, keys.alarms(ctx.r)) then ff_tick_do.alarms(ctx, math.max(20, 100 - n.touched), n) end
    if ff_tick_do.is_due(ctx, keys.pending(ctx.r)) then ff_tick_do.waitpoints(ctx, math.max(20, 100 - n.touched), n) end
  end
  local quiet = ff_tick_do.quiet(ctx)
  if not quiet then
    if ff_tick_do.is_due(ctx, keys.done(ctx.r)) then ff_tick_do.retention(ctx, math.max(20, 100 - n.touched), n) end
    if ff_tick_do.is_due(ctx, keys.flow_due(ctx.r)) then ff_tick_do.flows(ctx, n) end
    ff_tick_do.workers(ctx)
    feed.trim(ctx)
  end
  ff_tick_do.gates(ctx, n)
  if ff_tick_do.some(ctx, n) then ff_tick_do.backlog(ctx, math.max(20, math.min(64, 100 - n.touched)), n) end
  ff_tick_do.rering(ctx, n)
  local schedules = quiet and 0 or redis.call('ZCOUNT', keys.schedules(ctx.r), '-inf', ctx.t)
  local outbox = (ctx.gates or ctx.told) and redis.call('XLEN', keys.outbox(ctx.r)) or 0
  if ctx.told and outbox == 0 then redis.call('HDEL', ctx.r, 'told') end
  local due = ff_tick_do.next_due(ctx, n, outbox)
  if n.more then due = ctx.now end
  if due then
    redis.call('HSET', ctx.r, 'owner', owner, 'ticked', ctx.t, 'wake', reply.int(due))
  else
    redis.call('HSET', ctx.r, 'owner', owner, 'ticked', ctx.t)
    redis.call('HDEL', ctx.r, 'wake')
  end
  if not quiet then
    local upto = ff_tick_do.until_when(ctx)
    if upto then redis.call('HSET', ctx.r, 'quiet', upto) else redis.call('HDEL', ctx.r, 'quiet') end
  end
  return reply.ok('1', n.more and '1' or '0', reply.int(due and math.max(0, due - ctx.now) or 0), due and '0' or '1',
    reply.int(n.requeued), reply.int(n.exhausted), reply.int(n.promoted), reply.int(n.timedout), reply.int(n.expired),
    reply.int(n.rung), reply.int(n.suspensions), reply.int(n.waitpoints), reply.int(n.purged), reply.int(schedules),
    reply.int(outbox))
end
