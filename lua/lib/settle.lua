-- settle: the ways an attempt or an execution ends or pauses. Callers have checked everything; nothing here can
-- fail on its arguments. The core is written first, indexes through lib/indexes.lua.
local settle = {}

-- open tells whether the last attempt is still to be finished.
function settle.open(c)
  return c.state == 'A1' or c.state == 'A3' or c.state == 'R1i' or c.state == 'R2ai' or c.state == 'R2c' or
      c.state == 'R4i' or c.state == 'G1i' or
      core.suspended(c)
end

-- fold keeps the record of an attempt that did not end in success, or that a replay is about to follow. ended is
-- when it ended, now unless given. The first end of an attempt stays, as readers were told of it: what was revoked was
-- folded then.
function settle.fold(ctx, c, id, state, category, reason, ended)
  if c.state == 'A3' then return end
  local key, attempt = keys.attempts(ctx.r, id), core.attempt(c)
  local folded = table.concat({ c.attempt_type or '', c.claimed_at or '', ended or ctx.t, state, category,
    c.session or '', c.epoch or '',
    c.claim_number or '', core.began(c) or '' }, '\31')
  if reason ~= '' then
    redis.call('HSET', key, attempt, folded, attempt .. 'r', reason)
  else
    redis.call('HSET', key, attempt, folded)
  end
end

-- finish ends an execution for good, whatever state it is in. code is T1, T2, T3, T4 or T5; an execution that
-- never ran gets the n form. extra are further core fields.
function settle.finish(ctx, c, id, code, reason, extra)
  if not c.attempt and code ~= 'T1' then code = code .. 'n' end
  if extra then
    record.set(ctx, id, 'state', code, 'ended_at', ctx.t, unpack(extra))
  else
    record.set(ctx, id, 'state', code, 'ended_at', ctx.t)
  end
  if c.attempt_deadline or c.attempt_left or c.suspension_deadline or c.delay_until or c.grant_deadline then
    record.clear(ctx, id, 'attempt_deadline', 'attempt_left', 'suspension_deadline', 'delay_until', 'grant_deadline',
      'grant_session', 'grant_number')
  end
  talk.ended(ctx, c, id)
  home.leave(ctx, c, id)
  if c.deadline or c.attempt_deadline or c.suspension_deadline or c.grant_deadline or c.state == 'A3' then
    indexes.alarm(ctx, nil, id)
  end
  if ctx.gates and c.attempt then gate.ended(ctx, c, id, code) end
  indexes.done(ctx, id, c.route, c.retention, code, c.key)
  if code ~= 'T1' then indexes.unsuccessful(ctx, id) end
  wait_others.ended(ctx, c, id, code)
  suspension.finish(ctx, c, id, reason)
  stream.close(ctx, c, id, reason)
  core.announce(ctx, c, id, code)
end

-- complete is finish for the hottest transition, an active execution that succeeded. c are its fields.
function settle.complete(ctx, c, id, result)
  local attempt = core.attempt(c)
  record.set(ctx, id, 'state', 'T1', 'ended_at', ctx.t)
  if #result > 0 then
    record.set(ctx, id, 'result_size', reply.int(#result))
    if #result <= record.inline then
      record.set(ctx, id, 'result', result)
    else
      record.write(ctx, keys.result(ctx.r, id, attempt), result)
    end
  end
  if c.attempt_deadline then record.clear(ctx, id, 'attempt_deadline', 'attempt_left') end
  talk.ended(ctx, c, id)
  if c.deadline or c.attempt_deadline then indexes.alarm(ctx, nil, id) end
  if c.frames_attempt == attempt then stream.finish(ctx, id, attempt, 'attempt_success') end
  waitpoint.abandon(ctx, c, id, 'attempt_ended')
  indexes.unhold(ctx, c.session, id)
  if ctx.gates then gate.leave(ctx, c.route, id, c.epoch, '1') end
  indexes.done(ctx, id, c.route, c.retention, 'T1', c.key)
  wait_others.ended(ctx, c, id, 'T1')
  publish.to(keys.events(ctx.r, id), 'T1 ' .. attempt)
  if c.flow then
    ctx.moves.members = (ctx.moves.members or 0) + 1
    graph.moved(ctx, c, id, 'T1', attempt)
  end
  if ctx.feed then feed.state(ctx, id, 'T1', attempt, c.route, c.epoch, c.session) end
end

-- splice is complete for an execution with a plain record. f is its fence, with the token that the record begins
-- with, its route, the flow if it is a member, and the result.
function settle.splice(ctx, f)
  local result, route_id, flow_id = f.result, f.route, f.flow
  record.splice(ctx, f.id,
    record.completed(ctx.cache.texts[f.id], f.token, record.ended(f.token, ctx.t, #result), result))
  if #result > record.inline then record.write(ctx, keys.result(ctx.r, f.id, f.attempt), result) end
  indexes.unhold(ctx, f.session, f.id)
  if ctx.gates then gate.leave(ctx, route_id, f.id, f.epoch, '1') end
  indexes.done(ctx, f.id, route_id, nil, 'T1')
  publish.to(keys.events(ctx.r, f.id), 'T1 ' .. f.attempt)
  if flow_id then
    ctx.moves.members = (ctx.moves.members or 0) + 1
    graph.moved(ctx, { state = 'A1', flow = flow_id }, f.id, 'T1', f.attempt)
  end
  if ctx.feed then feed.state(ctx, f.id, 'T1', f.attempt, route_id, f.epoch, f.session) end
end

-- leftover remembers what is left of the attempt timeout, for an attempt that goes on later.
function settle.leftover(ctx, c, id)
  if not c.attempt_deadline then return end
  record.set(ctx, id, 'attempt_left', reply.int(math.max(1, tonumber(c.attempt_deadline) - ctx.now)))
  record.clear(ctx, id, 'attempt_deadline')
  indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
end

-- pause gives up the lease but not the attempt: code R2ai until an instant, or R1i at once. What is left of the
-- attempt timeout is remembered.
function settle.pause(ctx, c, id, at, release)
  if at then
    record.set(ctx, id, 'state', 'R2ai', 'delay_until', reply.int(at), 'last_release', release)
  else
    record.set(ctx, id, 'state', 'R1i', 'last_release', release)
  end
  settle.leftover(ctx, c, id)
  history.add(ctx, c, id, at and 'delayed' or 'released', at and reply.int(at) or '', c.claimed_at)
  home.ready(ctx, c, id, at)
  core.announce(ctx, c, id, at and 'R2ai' or 'R1i')
end

-- fail ends the attempt and decides between a retry and the end. f: category, reason, permanent, after (pause in
-- ms, or nil), timeout (the end is expired instead of failed), release (prefix for the repeat record, or nil).
-- Returns 'retry', instant or 'failed', ''.
function settle.fail(ctx, c, id, f)
  local p, k = policy.read(c.policy), tonumber(c.retries or '0')
  local listed = true
  if c.has_categories then
    local categories = redis.call('HGET', keys.attempts(ctx.r, id), 'categories') or ''
    listed = string.find(',' .. categories .. ',', ',' .. f.category .. ',', 1, true) and true or false
  end
  local retry = not f.permanent and f.category ~= 'permanent' and listed and k < p.retries
  local release, closed = nil, f.category == 'attempt_timeout' and 'expired' or 'attempt_failure'
  settle.fold(ctx, c, id, 'ended_failure', f.category, f.reason)
  if not retry then
    if f.release then release = fence.release('f', f.release.epoch, f.release.attempt, 'failed') end
    local extra = { 'failure_category', f.category }
    if release then extra[3], extra[4] = 'last_release', release end
    settle.finish(ctx, c, id, f.timeout and 'T4' or 'T2', closed, extra)
    return 'failed', ''
  end
  local at = ctx.now + (f.after or policy.pause(p, id, k))
  if at > ctx.now and talk.hurries(ctx, id) then at = ctx.now end -- it is to heed a stop
  local code = at > ctx.now and 'R2b' or 'R1t'
  if f.release then release = fence.release('f', f.release.epoch, f.release.attempt, reply.int(at)) end
  local fields = { 'state', code, 'retries', reply.int(k + 1), 'failure_category', f.category }
  if release then fields[7], fields[8] = 'last_release', release end
  if code == 'R2b' then
    fields[#fields + 1] = 'delay_until'
    fields[#fields + 1] = reply.int(at)
  end
  record.set(ctx, id, unpack(fields))
  if c.attempt_deadline or c.attempt_left then
    record.clear(ctx, id, 'attempt_deadline', 'attempt_left')
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  home.ready(ctx, c, id, code == 'R2b' and at)
  stream.close(ctx, c, id, closed)
  core.announce(ctx, c, id, code)
  return 'retry', reply.int(at)
end

-- requeue takes an execution from a dead session, or one whose lease was revoked: R1r, or R2r until a pause is over,
-- or the end when the reclaim cap is reached. A reclaim is not a retry. An operator who revokes a lease has lost no
-- worker, so that has no pause. Returns 'requeued' or 'exhausted'.
function settle.requeue(ctx, c, id)
  local why = c.state == 'A3' and 'lease_revoked' or 'lease_expired'
  local count = tonumber(c.reclaims or '0')
  -- by who declared it dead
  local said = c.state == 'A1' and redis.call('HGET', keys.session(ctx.r, c.session), 'why') or ''
  local last = count >= policy.read(c.policy).reclaims
  if last and c.state == 'A1' and said == '' then -- name the suspect
    said = 'worker ' .. session.instance(c.session) .. ' was lost while it ran this, loss ' .. reply.int(count + 1) ..
        ' of a worker: its handler may be the cause'
  end
  settle.fold(ctx, c, id, 'interrupted_reclaimed', why, said)
  if last then
    settle.finish(ctx, c, id, 'T2', why, { 'failure_category', 'max_reclaims_exceeded' })
    return 'exhausted'
  end
  local pause = c.state == 'A1' and policy.respite(count) or 0
  if pause > 0 and talk.hurries(ctx, id) then pause = 0 end -- it is to heed a stop
  local code = pause > 0 and 'R2r' or 'R1r'
  record.set(ctx, id, 'state', code, 'reclaims', reply.int(count + 1))
  if pause > 0 then record.set(ctx, id, 'delay_until', reply.int(ctx.now + pause)) end
  if c.attempt_deadline or c.attempt_left then record.clear(ctx, id, 'attempt_deadline', 'attempt_left') end
  if c.attempt_deadline or c.attempt_left or c.state == 'A3' then
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  home.ready(ctx, c, id, pause > 0 and ctx.now + pause)
  stream.close(ctx, c, id, why)
  core.announce(ctx, c, id, code)
  return 'requeued'
end

-- ungrant returns a granted execution to its queue; it was not claimed, so nothing else has happened to it. With
-- quiet, no gate has a slot for it.
function settle.ungrant(ctx, c, id, quiet)
  home.leave(ctx, c, id, quiet)
  c.state = 'R1' .. string.sub(c.state, 3)
  record.set(ctx, id, 'state', c.state)
  record.clear(ctx, id, 'grant_deadline', 'grant_session', 'grant_number') -- ge stays: the next grant has a later one
  indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
end

-- escalate leaves a suspension that ran into its timeout to an operator; signals still resume it.
local function escalate(ctx, c, id, u)
  record.set(ctx, id, 'state', 'S5')
  record.clear(ctx, id, 'suspension_deadline')
  local was = u.reason
  u.timeout_at, u.behaviour = nil, nil
  wait_record.set(ctx, id, { 'reason', 'waiting_for_operator_review', 'first_reason', was })
  local list = suspension.list(u)
  for i = 1, #list do
    local w = waitpoint.read(ctx, id, list[i])
    if w then
      w.expires = ''
      waitpoint.save(ctx, id, list[i], w)
      waitpoint.index(ctx, id, list[i], w)
    end
  end
  indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  history.add(ctx, c, id, 'escalated', was)
  core.announce(ctx, c, id, 'S5')
end

-- timeout does what a suspension asked for in case it lasted too long. No retry policy applies.
function settle.timeout(ctx, c, id)
  local u = suspension.read(ctx, id)
  if u.several and suspension.lapse(ctx, c, id, u) then return end
  u.behaviour = u.behaviour or 'fail' -- a record that somebody removed must not stop the clock for the others
  if u.behaviour == 'escalate' then return escalate(ctx, c, id, u) end
  history.add(ctx, c, id, 'suspension_timeout', u.behaviour)
  if string.sub(u.behaviour, 1, 11) == 'auto_resume' then
    local g = nil
    if u.behaviour == 'auto_resume_with_timeout_signal' then
      g = signals.overdue(ctx, u.id, '')
    end
    suspension.resume(ctx, c, id, u, { reason = 'timed_out_auto_resume', cause = 'timeout', trigger = 'timeout',
      delay = 0,
      open = u.behaviour == 'auto_resume_open',
      signal = g })
    return
  end
  local cancel = u.behaviour == 'cancel'
  settle.fold(ctx, c, id, cancel and 'ended_cancelled' or 'ended_failure', 'suspension_timeout',
    'no answer within the time limit (on timeout: ' .. u.behaviour .. ')')
  local extra = { 'failure_category', 'suspension_timeout' }
  if cancel then extra[3], extra[4] = 'cancel_source', 'system_timeout_policy' end
  settle.finish(ctx, c, id, cancel and 'T3' or (u.behaviour == 'expire' and 'T4' or 'T2'), 'suspension_timeout', extra)
end
