-- ff_suspend_execution: the holder gives up its lease until a condition over waitpoints is met, an operator resumes it,
-- or a timeout passes; the attempt stays. Waitpoints are fresh (mode f) or were pending (mode p, of which only id and
-- key are given). When signals that came early suffice, the lease is kept and the answer brings them. question is
-- what people are asked, a JSON object whose fields only its readers know; '' for none. With several each waitpoint
-- asks something of its own: it closes when the condition wants nothing more of it, or when its own time, within, is
-- over, which meets what the condition wants of it. What came is told whatever ends the suspension. With the part K in
-- the condition it waits for the children that ff_make_children made before, under the same name: when the suspension
-- is over, however, their outcomes are recorded as a step. events is how many entries its history has now.
-- Flags:   none
-- Go:      Engine.SuspendExecution
-- Args:    protocol fence suspension:uuid request:bytes(256) name:line(128) reason:enum(suspension.codes)
--          timeout:ms(1..315360000000)? behaviour:enum(suspension.behaviours) delay:ms(0..2592000000) condition:text
--          question:object(98304)? several:flag waitpoints:rows(0..16) {waitpoint:id key:line(1..256) mode:f|p
--          kid:kid? digest:hex(0..64) nonce:hex(0..32) within:ms(1..315360000000)?}
-- Replies: OK what:suspended|satisfied suspension:uuid timeout:instant outcome:text kid:kid? events:n waitpoints:rows
--          {waitpoint:uuid key:text kid:kid? nonce:hex(0..32)}; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input invalid_resume_condition waitpoint_not_found waitpoint_not_pending
--          waitpoint_already_exists waitpoint_key_mismatch pending_waitpoint_expired signal_limit_exceeded
--          step_limit_exceeded hmac_secret_not_initialized kid_not_current
local ff_suspend = {}

-- judge makes waitpoints of what the call says of them, or returns what is wrong.
function ff_suspend.judge(q)
  local ids, names = {}, {}
  q.id, q.count, q.list, q.bound = q.suspension, #q.waitpoints, {}, {}
  for n = 1, q.count do
    local x = q.waitpoints[n]
    local wid = x.waitpoint
    local wrong = x.mode == 'f' and waitpoint.judge(x) or
      (ids[wid] or names[x.key]) and 'waitpoints: the same one twice'
    if wrong then return wrong end
    ids[wid], names[x.key], q.list[n] = true, true, wid
    q.bound[n] = { key = x.key, mode = x.mode, kid = x.kid, digest = x.digest, nonce = x.nonce, state = 'a',
      created = '', activated = '', expires = '', suspension = '', signals = '0', matched = '0', bytes = '0' }
  end
  return nil
end

-- limit is when the time of a waitpoint is over: its own, else that of the suspension; nil for never.
function ff_suspend.limit(ctx, q, n)
  local own = q.several and q.waitpoints[n].within
  if own and (not q.timeout or own < q.timeout) then return reply.int(ctx.now + own) end
  return q.timeout and reply.int(ctx.now + q.timeout)
end

-- bind reads the pending waitpoints and makes the fresh ones, in memory. Returns an error reply, or nil.
function ff_suspend.bind(ctx, c, id, q)
  for n = 1, q.count do
    local wid, b = q.list[n], q.bound[n]
    local w = c.had_waits and waitpoint.read(ctx, id, wid) -- else it never had any
    if b.mode == 'p' then
      if not w then return reply.err('waitpoint_not_found', b.key) end
      local expired = w.state == 'x' or (w.state == 'p' and tonumber(w.expires) <= ctx.now)
      if expired and w.signals == '0' then return reply.err('pending_waitpoint_expired', b.key) end
      if expired then q.expired = b.key end -- what was accepted in time counts, if it suffices
      if w.state ~= 'p' and w.state ~= 'x' then return reply.err('waitpoint_not_pending', b.key) end
      if w.key ~= b.key then return reply.err('waitpoint_key_mismatch', b.key) end
      q.bound[n] = w
    else
      if w then return reply.err('waitpoint_already_exists', b.key) end
      local limit = ff_suspend.limit(ctx, q, n)
      local answer = token.mintable(ctx, b.kid, limit and tonumber(limit))
      if answer then return answer end
      b.created = ctx.t
    end
  end
  return nil
end

-- answer tells what was done; also when it was done before and the reply was lost.
function ff_suspend.answer(ctx, make, id, u, what, known)
  local list, outcome = suspension.list(u), ''
  if what == 'satisfied' then outcome = suspension.outcome(ctx, id, u) end
  local events = reply.int(redis.call('LLEN', keys.history(ctx.r, id)))
  local out = make(what, u.id, u.timeout_at or '0', outcome, token.current(ctx) or '', events, reply.int(#list))
  for i = 1, #list do
    local w = known[list[i]] or waitpoint.read(ctx, id, list[i]) or { key = '', kid = '', nonce = '' }
    out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4] = list[i], w.key, w.kid, w.nonce
  end
  return out
end

-- repeated recognises a call that was made before under the same fence, as long as its suspension is the last one.
function ff_suspend.repeated(ctx, c, f, q)
  if not c.had_waits then return nil end
  local u = suspension.read(ctx, f.id)
  if not suspension.held(c, u, f) or (u.id ~= q.id and (q.request == '' or u.request_key ~= q.request)) then
    return nil
  end
  return ff_suspend.answer(ctx, reply.already, f.id, u, u.cause == 'already_satisfied' and 'satisfied' or 'suspended',
    {})
end

-- record writes the new record, and its waitpoints as they are now.
function ff_suspend.record(ctx, c, f, q, plan, kept)
  local id = f.id
  local u = { id = q.id, reason = q.reason, holder = suspension.holder(f), created_at = ctx.t, behaviour = q.behaviour,
    condition = q.condition, timeout_at = q.timeout and reply.int(ctx.now + q.timeout),
    name = q.name ~= '' and q.name or nil, request_key = q.request ~= '' and q.request or nil,
    resume_delay = q.delay > 0 and reply.int(q.delay) or nil,
    waitpoints = q.count > 0 and table.concat(q.list, ',') or nil, question = q.question ~= '' and q.question or nil,
    several = q.several and '1' or nil, after = c.step_order }
  if plan.signals > 0 then u.signals, u.last_signal_at = reply.int(plan.signals), ctx.t end
  if plan.bytes > 0 then u.matched, u.matched_bytes = reply.int(plan.taken), reply.int(plan.bytes) end
  if plan.state and not plan.satisfied then
    for i in pairs(plan.state.changed) do u['n' .. reply.int(i)] = reply.int(plan.state.counts[i]) end
  end
  suspension.replace(ctx, c, id, u, kept)
  delivery.apply(ctx, id, u, q.list, q.bound, plan)
  local known = {}
  for n = 1, q.count do
    local wid, w = q.list[n], q.bound[n]
    if w.state == 'p' then redis.call('ZREM', keys.pending(ctx.r), id .. ':' .. wid) end
    w.state, w.activated, w.suspension, known[wid] = 'a', ctx.t, q.id, w
    w.expires = ff_suspend.limit(ctx, q, n) or ''
    waitpoint.save(ctx, id, wid, w)
    waitpoint.index(ctx, id, wid, w)
  end
  if c.had_waits then waitpoint.prune(ctx, id, known) end
  return u, known
end

-- children is the wait for children of a condition that has it as a part, as they are now; nil without one. The
-- second result is an error.
function ff_suspend.children(ctx, c, f, q, kept)
  if not condition.of_children(q.condition) then return nil end
  local w = wait_children.parse(c.children_wait)
  if not w or w.state == 'd' or redis.call('HGET', keys.children(ctx.r, f.id), 'name') ~= q.name then
    return nil, reply.err('invalid_resume_condition', 'children: none were made for a wait of this name')
  end
  local full = wait_children.room(ctx, c, f.id, q.name, w.children, kept and 1 or 0)
  if full then return nil, full end
  return wait_children.tally(ctx, f.id, w)
end

-- fresh is how many waitpoints a call makes, or takes up again.
function ff_suspend.fresh(q)
  local fresh = 0
  for n = 1, q.count do
    if q.bound[n].mode == 'f' or q.bound[n].state == 'x' then fresh = fresh + 1 end
  end
  return fresh
end

-- park gives up the lease. What is left of the attempt timeout is remembered.
function ff_suspend.park(ctx, c, f, q)
  local code = suspension.codes[q.reason]
  local due = q.timeout and ctx.now + q.timeout
  for n = 1, q.count do
    local own = tonumber(ff_suspend.limit(ctx, q, n) or nil)
    if own and (not due or own < due) then due = own end
  end
  local fields = { had_waits = '1', last_release = fence.release('u', '', '', '') }
  local open = tonumber(c.open_waitpoints or '0') + ff_suspend.fresh(q)
  if open > 0 then fields.open_waitpoints = reply.int(open) end
  if due then fields.suspension_deadline = reply.int(due) end
  if c.attempt_deadline then
    fields.attempt_left, fields.attempt_deadline = reply.int(math.max(1, tonumber(c.attempt_deadline) - ctx.now)), false
  end
  if c.resume_bytes then fields.resume_bytes = false end
  record.move(ctx, f.id, code, fields)
  local deadline = c.deadline and tonumber(c.deadline)
  local first = due and deadline and math.min(due, deadline) or due or deadline
  if first or c.attempt_deadline then indexes.alarm(ctx, first, f.id) end
end

local function ff_suspend_execution(ctx, q)
  local f, wrong, nodes = q.fence, ff_suspend.judge(q), nil
  if wrong then return reply.err('invalid_input', wrong) end
  nodes, wrong = condition.parse(q.condition, q.count)
  if not nodes then return reply.err('invalid_resume_condition', wrong) end
  if nodes[1].op == 'T' and not q.timeout then
    return reply.err('invalid_resume_condition', 'timeout_only_without_deadline')
  end
  local c = core.read(ctx, f.id)
  local answer = ff_suspend.repeated(ctx, c, f, q) or fence.check(ctx, c, f) or ff_suspend.bind(ctx, c, f.id, q)
  if answer then return answer end
  if not c.had_waits then wait_record.none(ctx, f.id) end
  local plan, kept, last, kids
  if c.had_waits then
    last = suspension.read(ctx, f.id)
    kept, answer = suspension.remember(ctx, c, f.id, last)
    if answer then return answer end
  end
  kids, answer = ff_suspend.children(ctx, c, f, q, kept)
  if answer then return answer end
  plan = suspension.early(ctx, c, f.id, nodes, delivery.replay(ctx, f.id, nodes, q.list, q.bound),
    kids and kids.state == 'd')
  if plan.bytes > delivery.most_taken then
    return reply.err('signal_limit_exceeded',
      'bytes of the signals that came before the wait and that it takes: at most 262144')
  end
  if q.expired and not plan.satisfied then return reply.err('pending_waitpoint_expired', q.expired) end

  if kids then record.set(ctx, f.id, 'children_wait', wait_children.text(kids)) end
  if not plan.satisfied then ff_suspend.park(ctx, c, f, q) end
  local fresh = ff_suspend.fresh(q)
  local u, known = ff_suspend.record(ctx, c, f, q, plan, kept)
  if plan.satisfied then
    if fresh > 0 then waitpoint.count(ctx, c, f.id, fresh) end
    local closed = suspension.shut(ctx, c, f.id, u,
      { reason = 'resumed', cause = 'already_satisfied', trigger = 'signal',
      closer = plan.closer })
    waitpoint.count(ctx, c, f.id, -closed)
    suspension.over(ctx, f.id, u)
    record.set(ctx, f.id, 'had_waits', '1', 'resume_bytes', suspension.told(u))
    stream.again(ctx, c, f)
    flow.apply(ctx)
    return ff_suspend.answer(ctx, reply.ok, f.id, u, 'satisfied', known)
  end
  if u.several and plan.state then suspension.settle(ctx, f.id, u, nodes, plan.state, known) end
  home.leave(ctx, c, f.id)
  redis.call('ZADD', keys.parked(ctx.r), ctx.t, f.id)
  core.announce(ctx, c, f.id, suspension.codes[q.reason])
  talk.parked(ctx, f.id, q.condition)
  flow.apply(ctx)
  return ff_suspend.answer(ctx, reply.ok, f.id, u, 'suspended', known)
end
