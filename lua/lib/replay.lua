-- replay: how an ended execution runs again, for the functions that replay.
local replay = {}

-- clear removes what the last run left on the core and beside it. q.gone gets the names of the steps that it forgets.
function replay.clear(ctx, c, id, q)
  local drop = q.steps == 'drop'
  record.clear(ctx, id, 'ended_at', 'retries', 'reclaims', 'failure_category', 'cancelled_by', 'cancel_source',
    'last_release', 'delay_until', 'attempt_deadline', 'attempt_left')
  redis.call('HDEL', keys.attempts(ctx.r, id), 'cancel', 'progress')
  if drop then
    if c.attempt then record.set(ctx, id, 'dropped_attempts', reply.int(core.started(c))) end
    if c.step_bytes then
      record.clear(ctx, id, 'step_bytes')
      steps.clear(ctx, id)
    end
    if c.resume_bytes then record.clear(ctx, id, 'resume_bytes') end
  elseif c.step_bytes then
    local from = q.from and steps.order(ctx, id, q.from) or c.had_waits and replay.asked(ctx, id)
    if from then
      talk.back(ctx, c, id, from)
      replay.since(ctx, c, id, from, q.gone)
    end
    if c.step_bytes and core.terminal(c) and (c.had_waits or c.flow) then replay.reopen(ctx, c, id, q.gone) end
  end
  if c.flow or c.children_wait then -- who is asked for again is looked at anew
    redis.call('UNLINK', keys.children(ctx.r, id))
    record.clear(ctx, id, 'children_wait')
  end
end

-- stale tells whether the next run cannot use a step: it holds a waitpoint, which the end has closed, or outcomes of
-- children of which one did not succeed, and may have been replayed since.
local function stale(ctx, id, name)
  local prefix = string.sub(name, 1, 3)
  if prefix == waitpoint.prefix then return true end
  if prefix ~= '\31c:' then return false end
  local outcomes = pack.split(redis.call('HGET', keys.steps(ctx.r, id), name) or '', '\31')
  for i = 1, #outcomes do
    if not string.find(outcomes[i], '^[^,]*,s,') then return true end
  end
  return false
end

-- set says up to which place an attempt is recorded (steps.told); nil: nothing of it is.
local function set(ctx, c, id, attempt, place)
  local b = base.of(ctx, c, id, tonumber(attempt))
  if b then
    redis.call('HSET', keys.attempts(ctx.r, id), attempt .. 'b',
      base.measure(ctx, b.owner, attempt, place or steps.place('0 0-0')))
  elseif place then
    redis.call('HSET', keys.meta(ctx.r, id, attempt), 'r', place.text)
  else
    redis.call('HDEL', keys.meta(ctx.r, id, attempt), 'r')
  end
end

-- uncover sets back which frames are recorded, of attempts of which steps are about to be dropped: up to the last one
-- of a step that stays.
local function uncover(ctx, c, id, names)
  local key, last, gone, some = keys.step_log(ctx.r, id), {}, {}, false
  local told = redis.call('HMGET', key, unpack(names))
  for i = 1, #names do
    gone[names[i]] = true
    local attempt, _, _, place = steps.told(told[i] or nil)
    if place then last[attempt], some = false, true end
  end
  if not some then return end
  local log = redis.call('HGETALL', key)
  for i = 1, #log, 2 do
    local attempt, _, _, place = steps.told(log[i + 1])
    local before = place and last[attempt]
    if place and before ~= nil and not gone[log[i]]
      and (not before or tonumber(place.sequence) > tonumber(before.sequence)) then
      last[attempt] = place
    end
  end
  for attempt, place in pairs(last) do set(ctx, c, id, attempt, place or nil) end
end

-- forget drops some of the steps, and adds their names to what was told, if it is given.
function replay.forget(ctx, c, id, gone, told)
  if #gone == 0 then return end
  for i = 1, told and #gone or 0 do told[#told + 1] = gone[i] end
  uncover(ctx, c, id, gone)
  local bytes = tonumber(c.step_bytes) - steps.drop(ctx, id, gone)
  if steps.count(ctx, id) == 0 then
    record.clear(ctx, id, 'step_bytes')
    c.step_bytes = nil
  else
    c.step_bytes = reply.int(bytes)
    record.set(ctx, id, 'step_bytes', c.step_bytes)
  end
end

-- reopen forgets the steps that the next run cannot use, and what ended a wait for children that is forgotten.
function replay.reopen(ctx, c, id, told)
  local all, gone, had = steps.names(ctx, id), {}, {}
  for i = 1, #all do had[all[i]] = true end
  for i = 1, #all do
    if stale(ctx, id, all[i]) then
      gone[#gone + 1] = all[i]
      local name = string.match(all[i], '^\31c:(.*)$')
      if name and had[suspension.memo .. name] then gone[#gone + 1] = suspension.memo .. name end
      if name and c.resume_bytes and suspension.read(ctx, id).name == name then
        record.clear(ctx, id, 'resume_bytes')
      end
    end
  end
  replay.forget(ctx, c, id, gone, told)
end

-- since forgets the steps that were recorded from a number on, and what a wait was answered that began behind it.
function replay.since(ctx, c, id, from, told)
  replay.forget(ctx, c, id, steps.since(ctx, id, from), told)
  if c.resume_bytes and tonumber(suspension.read(ctx, id).after or '0') >= from then
    record.clear(ctx, id, 'resume_bytes')
  end
end

-- asked is the number of the step that opened the first waitpoint of a wait whose time was over, which ended the
-- execution. What was recorded behind it told somebody of a link that is dead, and is done again, so that they are
-- asked again. nil if there is none.
function replay.asked(ctx, id)
  local u, first = suspension.read(ctx, id), nil
  if u.cause ~= 'timeout' or u.close_reason == 'timed_out_auto_resume' then return nil end
  local list = suspension.list(u)
  for i = 1, #list do
    local w = waitpoint.read(ctx, id, list[i])
    local _, _, _, order = waitpoint.step(list[i], w or {})
    if order and (not first or order < first) then first = order end
  end
  return first
end

-- rearm gives the deadline its original span again (spec README, settled questions).
local function rearm(ctx, c, id)
  if not c.deadline then return end
  local span = c.deadline_span or reply.int(math.max(1, tonumber(c.deadline) - tonumber(c.created_at)))
  local due = ctx.now + tonumber(span)
  record.set(ctx, id, 'deadline', reply.int(due), 'deadline_span', span)
  indexes.alarm(ctx, due, id)
end

-- judge notes the step from which steps are dropped, or returns an error reply.
function replay.judge(q)
  q.from = string.match(q.steps, '^from (.+)$')
  if q.steps ~= 'keep' and q.steps ~= 'drop' and not steps.name(q.from) then
    return reply.err('invalid_input', 'steps: keep, drop, or from and the name of a step')
  end
  return nil
end

-- refuse returns why an execution is not replayed, or that this request has replayed it before; nil when it may be.
function replay.refuse(ctx, c, id, q)
  if not c.state or c.purged_until then return reply.err('execution_not_found') end
  if c.replay_request == q.request then return reply.already(c.state, c.replays) end
  if not core.terminal(c) then return reply.err('execution_not_terminal', c.state) end
  local h = c.flow and graph.head(ctx, c.flow)
  if h and graph.barred(ctx, c.flow) then return reply.err('flow_cancelled', c.flow) end
  if h and graph.count(h, 'bl') > 0 then return reply.err('resolution_pending', c.flow) end
  local rival = h and h.uk and h.en and graph.rival(ctx, h.uk, h.id)
  if rival then return reply.err('key_taken', rival.id) end
  if c.state == 'T1' and not q.force then
    return reply.err('replay_not_allowed', 'it succeeded; a success is replayed only if forced')
  end
  if q.from and not (c.step_bytes and steps.order(ctx, id, q.from)) then return reply.err('step_not_found', q.from) end
  local cap = policy.read(c.policy).replays
  if tonumber(c.replays or '0') >= cap then return reply.err('max_replays_exhausted', reply.int(cap)) end
  return nil
end

-- again decides a group anew by what its upstreams are now, for another run of its member: it waits for those that
-- have not ended, and counts a success no more that was replayed and skipped since.
local function again(ctx, h, id, g, free)
  local v, ups = links.edges(ctx, id), {}
  for i = 1, #v, 2 do ups[#ups + 1] = v[i] end
  record.load(ctx, ups)
  for i = 1, #v, 2 do
    local mark, attempt, input = group.record(v[i + 1])
    local up = core.read(ctx, v[i])
    local now = mark == 'l' and 's' or mark
    if up.state and not core.terminal(up) then
      now = '.'
    elseif up.state and now == 's' and graph.class(up.state) == 'k' then
      now = graph.outcome(up)
    end
    if now ~= mark then
      links.tell(ctx, id, v[i], now .. ',' .. (now == '.' and '' or attempt) .. ',' .. input)
      group.count(g, mark, -1)
      group.count(g, now, 1)
    end
  end
  g.state = 'p'
  group.decide(g)
  links.touch(ctx, id)
  if g.state == 'i' then graph.push(ctx, 'k', id, h.id) end -- nothing is left that it needs
  if g.state == 's' and h.st == 'F0' then redis.call('RPUSH', keys.roots(ctx.r, h.id), id) end
  return g.state == 's' and free or 'R3p'
end

-- regroup makes the group of a member ready for another run: what a member that watches, or that has run, waited for is
-- judged anew, and of one that was skipped what did not succeed is open again. It returns the code of the state that
-- follows. Nothing of a flow that is not released may run; the release comes to a member without a group.
local function regroup(ctx, c, id)
  local g, h = c.flow and links.group(ctx, id), c.flow and graph.head(ctx, c.flow)
  local free = h and h.st == 'F0' and 'R3p' or 'R1p'
  if not g then return free end
  if group.watches(g) or g.state == 's' then return again(ctx, h, id, g, free) end
  local v = links.edges(ctx, id)
  for i = 1, #v, 2 do
    local mark = string.byte(v[i + 1], 1)
    if mark == 108 or mark ~= 115 and mark ~= 46 and g.state == 'i' then -- l, and what is neither s nor open
      local _, attempt, input = group.record(v[i + 1])
      links.tell(ctx, id, v[i],
        mark == 108 and 's,' .. (attempt or '') .. ',' .. (input or '') or '.,,' .. (input or ''))
    end
  end
  if g.state == 'i' then
    g.failed, g.skipped, g.unneeded, g.state = 0, 0, g.unneeded and 0, 'p'
    group.decide(g)
    links.touch(ctx, id)
  end
  return g.state == 's' and free or 'R3p'
end

-- run replays an execution that refuse let pass. It returns its code and how often it was replayed.
function replay.run(ctx, c, id, q)
  local count, code = tonumber(c.replays or '0') + 1, regroup(ctx, c, id)
  record.set(ctx, id, 'state', code, 'replays', reply.int(count), 'replay_request', q.request)
  if c.state == 'T1' then settle.fold(ctx, c, id, 'ended_success', '', '', c.ended_at) end
  if c.result_size then -- the result of that attempt stays readable
    if c.result then record.write(ctx, keys.result(ctx.r, id, core.attempt(c)), c.result) end
    record.clear(ctx, id, 'result_size', 'result')
  end
  local told = { c.state, c.ended_at or '', c.failure_category or '', q.from and 'from' or q.steps,
    trail.why(ctx, 1024) }
  history.add(ctx, c, id, 'replayed', trail.by(ctx), table.concat(told, ' '))
  replay.clear(ctx, c, id, q)
  rearm(ctx, c, id)
  redis.call('ZREM', keys.done(ctx.r), id)
  redis.call('HINCRBY', ctx.r, 'tally:again', '1') -- it ended once more than what is kept and what was purged tell
  if core.unsuccessful(c) then redis.call('ZREM', keys.unsuccessful(ctx.r), id) end
  if code == 'R1p' then
    indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  else
    indexes.block(ctx, id, c.created_at)
  end
  core.announce(ctx, c, id, code)
  return code, reply.int(count)
end
