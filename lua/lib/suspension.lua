-- suspension: how an attempt stops without a lease, and what ends that. The record of the last one
-- stays until the next, so that a claim tells what it was resumed by. Fields:
--   id              of the suspension            name             the handler waits under
--   reason          code; first_reason is the one before it was escalated
--   request_key                                  holder           epoch and attempt
--   created_at  timeout_at  behaviour (at the timeout)  resume_delay  condition
--   waitpoints      ids, by comma                n<i>             satisfied parts of node i
--   signals         how many came                last_signal_at
--   several         1 = each waitpoint asks something of its own, and closes when nothing waits for it any more
--   settled         1 = one has closed so        z<i>             signal of the time limit of waitpoint i
--   question        that people are asked        after           number of the last step that was recorded before
--   matched         how many matched             matched_bytes    has_matched: 1 = those that it took have a key of their own
--   closed_at  close_reason  cause  trigger      closing_signal   the signal that closed it
--   resumed_by      an operator                  why              the reason that the operator gave
--   signal_source, signal_name: of the signal that resumed, the source as sender writes it
--   timeout_signal  the signal of its timeout
--   session, claimed_at: of the holder that suspended, once closed
local suspension = {}

-- memo begins the name of a step that keeps what a wait was answered; names of users never begin so.
suspension.memo = '\31a:'

local US = '\31'

-- codes are the states of the reasons.
suspension.codes = {
  waiting_for_signal = 'S1', step_boundary = 'S1', waiting_for_approval = 'S2', waiting_for_callback = 'S3',
  waiting_for_tool_result = 'S4', waiting_for_operator_review = 'S5', manual_pause = 'S5', paused_by_policy = 'S6',
  paused_by_budget = 'S7', waiting_for_children = 'S8',
}

suspension.behaviours = { fail = true, cancel = true, expire = true, auto_resume = true,
  auto_resume_with_timeout_signal = true, auto_resume_open = true,
  escalate = true }

-- read returns the record of the current suspension or the last one; empty when there never was one. wait_record.set
-- changes it.
function suspension.read(ctx, id) return wait_record.of(ctx, id).u end

-- holder is what a suspension keeps of the fence that it was made under: no epoch is given twice.
function suspension.holder(f) return f.epoch .. ' ' .. f.attempt end

-- held tells whether a suspension was made under a fence. As long as nobody has claimed the execution again, its
-- record tells the rest.
function suspension.held(c, u, f)
  return u.holder == suspension.holder(f)
    and (c.epoch ~= f.epoch or c.session == f.session and c.claim_number == f.claim)
end

-- resumed are the close reasons after which the attempt went on.
local resumed = { resumed = true, resumed_by_operator = true, timed_out_auto_resume = true }

-- sender is who resumed an execution: what kind of source that is, and its name, which have no tab; nil for nobody.
function suspension.sender(kind, name) return (kind ~= '' or name ~= '') and kind .. '\t' .. name or nil end

-- events are what the history tells of a suspension: that it began, and that the attempt went on. While the record is
-- there nothing else tells it.
function suspension.events(c, u)
  local epoch, attempt = string.match(u.holder or '', '^(%d+) (%d+)$')
  if not epoch or not u.created_at or u.cause == 'already_satisfied' then return {} end
  local session = u.session or not u.closed_at and c.session or ''
  local out = { history.entry('suspended', u.created_at, attempt, epoch, session,
    (u.first_reason or u.reason or '') .. ' ' .. (u.name or ''),
    u.claimed_at or not u.closed_at and c.claimed_at or u.created_at) }
  if resumed[u.close_reason] then
    local cause = u.signal_name and u.cause .. ' ' .. u.signal_name or u.cause or ''
    out[2] = history.entry('resumed', u.closed_at, attempt, epoch, session, cause,
      u.resumed_by and suspension.sender(u.trigger or '', u.resumed_by) or u.signal_source or '')
  end
  return out
end

function suspension.list(u)
  if not u.waitpoints or u.waitpoints == '' then return {} end
  if #u.waitpoints == 36 then return { u.waitpoints } end
  return pack.split(u.waitpoints, ',')
end

-- outcome is what a resumption tells the handler: eight parts and the number of signals, then each signal with its
-- length.
function suspension.outcome(ctx, id, u)
  local taken = signals.taken(ctx, id, u)
  local out = { table.concat({ u.name or '', u.cause or '', u.id or '', u.closed_at or '', u.timeout_at or '',
    u.closing_signal or '', u.resumed_by or '', u.why or '',
    reply.int(#taken) }, US) }
  for i = 1, #taken do
    out[#out + 1], out[#out + 2] = US, reply.int(#taken[i])
    out[#out + 1], out[#out + 2] = ':', taken[i]
  end
  return table.concat(out)
end

-- whose finds the id of the suspension in an outcome.
suspension.whose = '^[^\31]*\31[^\31]*\31([^\31]*)'

-- remember plans to keep the outcome of the last suspension as a step, before its record is replaced. It returns name,
-- value and the step bytes after that; nil when it told nobody anything; or nil and an error when it does not fit.
function suspension.remember(ctx, c, id, u)
  if not u.name or not c.resume_bytes then return nil end
  local name, value = suspension.memo .. u.name, suspension.outcome(ctx, id, u)
  local key = keys.steps(ctx.r, id)
  if redis.call('HEXISTS', key, name) == 1 then return nil end
  -- the receipt says all
  if condition.of_mailbox(u.condition) and redis.call('HEXISTS', key, mailbox.step(u.name)) == 1 then return nil end
  local total = tonumber(c.step_bytes or '0') + #name + #value
  if total > 8388608 then return nil, reply.err('step_limit_exceeded', 'bytes: at most 8388608') end
  if steps.full(ctx, id) then return nil, reply.err('step_limit_exceeded', 'steps: at most 1000') end
  return { name = name, value = value, total = reply.int(total) }
end

-- span is what the log of steps tells of the answer of a suspension: its attempt, when it ended, and how long it
-- waited.
function suspension.span(ctx, u)
  local at = u.closed_at or ctx.t
  return string.match(u.holder or '', ' (%d+)$') or '0', at,
    reply.int(math.max(0, tonumber(at) - tonumber(u.created_at or at)))
end

-- replace stores a new record. What the last one told becomes a step, that it was becomes history, and its waitpoints
-- no longer share anything with it.
function suspension.replace(ctx, c, id, u, kept)
  local all, points = wait_record.of(ctx, id), {}
  if kept then
    record.set(ctx, id, 'step_bytes', kept.total)
    local attempt, at, took = suspension.span(ctx, all.u)
    steps.put(ctx, c, id, kept.name, kept.value, attempt, at, took, all.u.after or '0')
  end
  if all.u.id then
    local list = suspension.list(all.u)
    for i = 1, #list do points[list[i]] = waitpoint.read(ctx, id, list[i]) end
    history.push(ctx, id, suspension.events(c, all.u))
    redis.call('UNLINK', keys.satisfied(ctx.r, id), keys.matched(ctx.r, id))
    signals.fade(ctx, id)
  end
  all.u = u
  for wid, w in pairs(points) do waitpoint.save(ctx, id, wid, w) end
  wait_record.touch(ctx, id)
end

-- reopen makes the waitpoints of a suspension that the handler had opened, and knows by a step, pending again, for at
-- most seven days, with what they were sent: it counts for the next wait.
local function reopen(ctx, id, u)
  local open, list = {}, suspension.list(u)
  for i = 1, #list do
    local w = waitpoint.read(ctx, id, list[i])
    if w and w.step and w.state == 'a' then open[list[i]] = w end
  end
  local bytes = signals.unread(ctx, id, u, open)
  for wid, w in pairs(open) do waitpoint.reopen(ctx, id, wid, w, bytes[wid]) end
end

-- shut closes the record and every waitpoint of it, the one way in which a suspension ends, and returns how many
-- waitpoints those were. The caller counts. e: reason (close reason), cause, and maybe trigger, closer, who and what
-- (source and name of a signal), by, open (waitpoints that the handler opened stay so); and known, waitpoints
-- that were read and changed but not yet saved.
function suspension.shut(ctx, c, id, u, e)
  if e.open then reopen(ctx, id, u) end
  local list = suspension.list(u)
  u.closed_at, u.close_reason, u.cause, u.trigger, u.closing_signal, u.signal_source = ctx.t, e.reason, e.cause,
    e.trigger, e.closer, e.who
  u.signal_name = e.what
  if e.by and e.by ~= '' then u.resumed_by = e.by end
  if e.cause ~= 'already_satisfied' then u.session, u.claimed_at = c.session, c.claimed_at end
  if u.matched and (u.matched ~= '1' or e.cause ~= 'signal') then -- earlier signals met parts of the condition
    redis.call('UNLINK', keys.satisfied(ctx.r, id))
  end
  if e.cause ~= 'signal' and e.cause ~= 'already_satisfied' and not u.settled then
    -- what came before did not resume it
    if u.has_matched then redis.call('UNLINK', keys.matched(ctx.r, id)) end
    u.has_matched, u.timeout_signal = nil, e.signal
    signals.fade(ctx, id)
    u.matched, u.matched_bytes = e.signal and '1' or '0', e.signal and reply.int(#e.signal) or '0'
  end
  wait_record.touch(ctx, id)
  local closed = 0
  for i = 1, #list do
    local w = e.known and e.known[list[i]] or waitpoint.read(ctx, id, list[i])
    if w and w.state == 'a' then -- else it stays open
      waitpoint.close(ctx, id, list[i], w, 'c', e.reason)
      closed = closed + 1
    end
  end
  return closed
end

-- settle closes the waitpoints of a suspension that asks several things of which its condition, whose nodes are met as
-- state says, wants nothing more. known are waitpoints that were read and changed but not yet saved.
function suspension.settle(ctx, id, u, nodes, state, known)
  local list, open, closed = suspension.list(u), condition.open(state, nodes), 0
  for n = 1, #list do
    local w = not open[n] and (known[list[n]] or waitpoint.read(ctx, id, list[n]))
    if w and w.state == 'a' then
      waitpoint.close(ctx, id, list[n], w, 'c', 'answered')
      u.settled, closed = '1', closed + 1
    end
  end
  if closed > 0 then waitpoint.count(ctx, record.read(ctx, id), id, -closed) end
end

-- due is when the next time limit of a suspension is over, of its own and of its waitpoints; nil for never.
local function due(ctx, id, u)
  local first, list = u.timeout_at and tonumber(u.timeout_at), suspension.list(u)
  for n = 1, #list do
    local w = waitpoint.read(ctx, id, list[n])
    local at = w and w.state == 'a' and tonumber(w.expires)
    if at and (not first or at < first) then first = at end
  end
  return first
end

-- lapse ends what waitpoints of a suspension ask whose own time limit is over; the others go on. It returns whether
-- that is all that is due.
function suspension.lapse(ctx, c, id, u)
  local list = suspension.list(u)
  local nodes = condition.parse(u.condition, #list)
  if not nodes or u.timeout_at and tonumber(u.timeout_at) <= ctx.now then return false end
  local state, over = { counts = {} }, 0
  for i = 1, #nodes do state.counts[i] = tonumber(u['n' .. reply.int(i)]) end
  for n = 1, #list do
    local w = waitpoint.read(ctx, id, list[n])
    if w and w.state == 'a' and w.expires ~= '' and tonumber(w.expires) <= ctx.now then
      waitpoint.close(ctx, id, list[n], w, 'c', 'timed_out')
      local text = signals.overdue(ctx, list[n], list[n], w)
      u['z' .. reply.int(n)], u.settled, over = text, '1', over + 1
      u.matched_bytes = reply.int(tonumber(u.matched_bytes or '0') + #text)
      for i = 1, #nodes do
        if nodes[i].wp == n and (state.counts[i] or 0) < nodes[i].need then
          state.counts[i] = nodes[i].need
          u['n' .. reply.int(i)] = reply.int(nodes[i].need)
        end
      end
    end
  end
  if over > 0 then waitpoint.count(ctx, record.read(ctx, id), id, -over) end
  wait_record.touch(ctx, id)
  c = record.read(ctx, id)
  if condition.complete(state, nodes) then
    suspension.resume(ctx, c, id, u, { reason = 'timed_out_auto_resume', cause = 'timeout', trigger = 'timeout' })
    return true
  end
  local first, deadline = due(ctx, id, u), c.deadline and tonumber(c.deadline)
  if first then
    record.set(ctx, id, 'suspension_deadline', reply.int(first))
  else
    record.clear(ctx, id, 'suspension_deadline')
  end
  indexes.alarm(ctx, first and deadline and math.min(first, deadline) or first or deadline, id)
  return true
end

-- decided tells a decision of people, which the answer page makes under this key, from other signals.
local function decided(key) return key == 'page' or string.sub(key, 1, 5) == 'page:' end

-- remembered finds a signal, by its id, in what an outcome told that was kept as a step.
local two = '[^\31]*\31[^\31]*\31'
local behind_parts = '^' .. two .. two .. two .. two .. '%d+()'

local function remembered(text, sid)
  local at = string.match(text or '', behind_parts)
  while at do
    local size, from = string.match(text, '^\31(%d+):()', at)
    if not size then return nil end
    at = from + tonumber(size)
    if string.sub(text, from, from + 35) == sid then return string.sub(text, from, at - 1) end
  end
  return nil
end

-- answer is the signal that stands as the answer to a waitpoint, as it is stored, '' if there is none yet: the first
-- one that was taken; while the waitpoint is open only a decision of the answer page counts, because others may
-- follow. The payload comes from where it is kept: with the signal, with the suspension that took it, or with the
-- step that remembers what that told.
function suspension.answer(ctx, id, wid, w)
  if w.signals == '0' then return '' end
  local log, text, person = signals.log(ctx, id, wid, 0, 1000), nil, false
  for i = 1, #log do
    local g = signals.decode(log[i])
    local page = decided(g.key)
    if (page or not waitpoint.open(w)) and signals.stood(g.effect) and (not text or page and not person) then
      text, person = log[i], page
    end
  end
  if not text or signals.decode(text).payload ~= '' then return text or '' end
  local u, sid = suspension.read(ctx, id), string.sub(text, 1, 36)
  if w.suspension ~= u.id then
    return remembered(redis.call('HGET', keys.steps(ctx.r, id), suspension.memo .. w.key), sid) or text
  end
  local taken = signals.taken(ctx, id, u)
  for i = 1, #taken do
    if string.sub(taken[i], 1, 36) == sid then return taken[i] end
  end
  return text
end

-- told is how many bytes the next claim brings along; an execution that ended needs none.
function suspension.told(u)
  return reply.int(512 + tonumber(u.matched_bytes or '0') + #(u.why or '') + #(u.name or ''))
end

-- over ends a wait for children that goes on no longer.
function suspension.over(ctx, id, u)
  local w = condition.of_children(u.condition) and wait_children.parse(record.read(ctx, id).children_wait)
  if w then wait_children.over(ctx, id, w) end
end

-- resume makes a suspended execution claimable, at once or after the delay of its policy. The attempt goes on. e is
-- as in shut, and may have delay, and core: fields of the execution that change, too.
function suspension.resume(ctx, c, id, u, e)
  local delay, fields = e.delay or tonumber(u.resume_delay or '0'), e.core or {}
  suspension.over(ctx, id, u)
  local code = delay > 0 and 'R2c' or 'R1i'
  u.why = e.why ~= '' and e.why or nil
  local open = tonumber(c.open_waitpoints or '0') - suspension.shut(ctx, c, id, u, e)
  fields.resume_bytes, fields.open_waitpoints = suspension.told(u), open > 0 and reply.int(open) or false
  if delay > 0 then fields.delay_until = reply.int(ctx.now + delay) end
  if c.suspension_deadline then
    fields.suspension_deadline = false
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  record.move(ctx, id, code, fields)
  home.ready(ctx, c, id, delay > 0 and ctx.now + delay)
  core.announce(ctx, c, id, code)
end

-- finish closes the suspension of an execution that ends while it waits; without one it closes what waitpoints are
-- open.
function suspension.finish(ctx, c, id, reason)
  if core.suspended(c) then
    local cause = { attempt_cancelled = 'cancelled', expired = 'deadline' }
    local u = suspension.read(ctx, id)
    suspension.shut(ctx, c, id, u, { cause = cause[reason] or 'timeout', trigger = cause[reason] or 'timeout',
      reason = suspension.reasons[reason] or 'timed_out_' .. (u.behaviour or 'fail') })
  end
  waitpoint.abandon(ctx, c, id, 'attempt_ended') -- none is open then, whatever was counted
end

-- reasons are the close reasons by how the stream of the attempt ends.
suspension.reasons = { attempt_cancelled = 'cancelled', expired = 'expired:execution_deadline' }

-- What meets a part of a condition without being a signal is a message (M), and that enough children have ended (K).
-- Such a part stays met: a message waits until the handler takes it, and a wait for children is decided once.

-- early meets the parts that are there already when a suspension begins; plan is what early signals made of it. It
-- returns the plan.
function suspension.early(ctx, c, id, nodes, plan, decided)
  local state = nil
  for i = 1, #nodes do
    local n = nodes[i]
    if n.op == 'K' and decided or n.op == 'M' and mailbox.waiting(ctx, c, id, n.box) then
      state = state or plan.state or { counts = {}, tokens = {}, changed = {} }
      state.counts[i], state.changed[i] = 1, true
    end
  end
  if not state or plan.satisfied then return plan end
  if not plan.state then plan = { bytes = 0, signals = 0 } end
  plan.state, plan.satisfied = state, condition.complete(state, nodes)
  return plan
end

-- came meets the parts of an open suspension that an arrival is for: op and, of a mailbox, its name. If that was the
-- last part, the execution goes on; e says why, as for suspension.resume.
function suspension.came(ctx, c, id, op, box, e)
  local u = suspension.read(ctx, id)
  if u.closed_at then return end
  local nodes = condition.parse(u.condition, #suspension.list(u))
  if not nodes then return end -- an audit tells
  local state, met = { counts = {} }, false
  for i = 1, #nodes do
    local field = 'n' .. reply.int(i)
    if nodes[i].op == op and nodes[i].box == box and not u[field] then u[field], met = '1', true end
    state.counts[i] = tonumber(u[field])
  end
  if not met then return end
  if condition.complete(state, nodes) then
    suspension.resume(ctx, c, id, u, e)
  else
    wait_record.touch(ctx, id)
  end
end

-- enough meets the part that waits for enough children.
function suspension.enough(ctx, c, id)
  suspension.came(ctx, c, id, 'K', nil, { reason = 'resumed', cause = 'children', trigger = 'children' })
end
