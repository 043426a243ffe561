-- rewind: how an execution that has not ended goes on again from a recorded step on: that step and all that was
-- recorded after it are forgotten, as for a replay, and the next claim makes an attempt of type replay. One that has
-- ended is replayed. Whoever holds it loses it, and no retry is used up. One that an operator holds, or that waits for
-- others in its flow, goes on doing so.
local rewind = {}

local most = 1000 -- of a link, before it ends

-- attempt is the number of the attempt that an execution is in: that of the next one if it waits for a replay.
function rewind.attempt(c) return core.started(c) + (string.sub(c.state, 3) == 'p' and 1 or 0) end

-- answer says in which attempt it goes on, and which steps are forgotten.
function rewind.answer(make, c, gone)
  local out = make(reply.int(rewind.attempt(c)), reply.int(#gone))
  for i = 1, #gone do out[#out + 1] = gone[i] end
  return out
end

-- refuse returns why an execution is not rewound, or that this request has rewound it before; nil when it may be.
function rewind.refuse(ctx, c, id, q)
  if not c.state or c.purged_until then return reply.err('execution_not_found') end
  if c.replay_request == q.request then return rewind.answer(reply.already, c, {}) end
  local now = rewind.attempt(c)
  if q.attempt > 0 and q.attempt ~= now then return reply.err('attempt_changed', reply.int(now)) end
  if q.encoding ~= '' and tonumber(c.step_bytes or '0') + #q.payload + 512 > 8388608 then
    return reply.err('step_limit_exceeded', 'bytes: at most 8388608')
  end
  if core.terminal(c) then return replay.refuse(ctx, c, id, q) end
  if c.flow and graph.barred(ctx, c.flow) then return reply.err('flow_cancelled', c.flow) end
  if not (c.step_bytes and steps.order(ctx, id, q.from)) then return reply.err('step_not_found', q.from) end
  if tonumber(c.rewinds or '0') >= most then return reply.err('max_replays_exhausted', reply.int(most)) end
  return nil
end

-- orphan cancels the children of a wait that is not over, if the end of their parent would do that, and takes back
-- that it waits for others.
local function orphan(ctx, c, id)
  wait_others.leave(ctx, c, id)
  if not string.find(c.children_wait or '', ' [pm] cancel$') then return end
  local open = wait_children.open(ctx, redis.call('HGETALL', keys.children(ctx.r, id)), c.flow)
  if open == '' then return end
  -- the next number, so that this work has a name that no other wait of it has
  graph.push(ctx, 'o', id .. ':' .. steps.next(ctx, c, id), c.flow, '0 ' .. open)
end

-- leave ends the attempt, if it is open, and the wait that it is in.
local function leave(ctx, c, id)
  local by, why = trail.by(ctx), trail.why(ctx, 1024)
  if settle.open(c) and c.state ~= 'A3' then
    settle.fold(ctx, c, id, 'rewound', '', why)
    if by ~= '' then redis.call('HSET', keys.attempts(ctx.r, id), core.attempt(c) .. 'w', by) end
    stream.close(ctx, c, id, 'rewound')
  end
  orphan(ctx, c, id)
  if core.suspended(c) then
    local closed = suspension.shut(ctx, c, id, suspension.read(ctx, id),
      { reason = 'rewound', cause = 'rewound', trigger = 'rewound', open = true })
    waitpoint.count(ctx, c, id, -closed)
  end
end

-- close closes the waitpoints that no step records any more.
local function close(ctx, c, id)
  local closed = 0
  for wid, w in pairs(waitpoint.all(ctx, id)) do
    if waitpoint.open(w) and not w.step then
      waitpoint.close(ctx, id, wid, w, 'c', 'rewound')
      closed = closed + 1
    end
  end
  if closed > 0 then waitpoint.count(ctx, c, id, -closed) end
end

-- spent forgets the waitpoints that a step records and a wait has closed whose answer is forgotten: the next run could
-- not wait on them again, and opens others.
local function spent(ctx, c, id, told)
  local known, gone, names = {}, {}, redis.call('HKEYS', keys.steps(ctx.r, id))
  if record.read(ctx, id).resume_bytes then known[suspension.read(ctx, id).id or ''] = true end
  for i = 1, #names do
    if string.sub(names[i], 1, 3) == suspension.memo then
      known[string.match(redis.call('HGET', keys.steps(ctx.r, id), names[i]), suspension.whose) or ''] = true
    end
  end
  for wid, w in pairs(waitpoint.all(ctx, id)) do
    if w.step and not waitpoint.open(w) and w.suspension ~= '' and not known[w.suspension] then
      gone[#gone + 1] = waitpoint.step(wid, w)
    end
  end
  table.sort(gone)
  replay.forget(ctx, c, id, gone, told)
end

-- live rewinds an execution that has not ended and that refuse let pass.
local function live(ctx, c, id, q)
  local code = (core.paused(c) and 'R4' or core.blocked(c) and 'R3' or 'R1') .. 'p'
  history.add(ctx, c, id, 'rewound', trail.by(ctx), reply.int(#q.from) .. ' ' .. q.from .. trail.why(ctx, 1024))
  leave(ctx, c, id)
  record.set(ctx, id, 'state', code, 'rewinds', reply.int(tonumber(c.rewinds or '0') + 1), 'replay_request', q.request)
  record.clear(ctx, id, 'suspension_deadline', 'grant_deadline', 'grant_session', 'grant_number')
  replay.clear(ctx, c, id, q)
  if c.had_waits then
    close(ctx, c, id)
    spent(ctx, c, id, q.gone)
  end
  if c.attempt_deadline or c.suspension_deadline or c.grant_deadline or c.state == 'A3' then
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  if code == 'R1p' then home.ready(ctx, c, id) end
  core.announce(ctx, c, id, code)
  if c.state == 'A1' then session.lost(ctx, c.session, id, c.epoch, 'rewound') end
end

-- say records what is said in the place of what was said before a step, as the receipt of a message.
local function say(ctx, id, q)
  local c, name = record.read(ctx, id), mailbox.step('edit ' .. q.from)
  local text = table.concat({ '0', 'edit', ctx.t, trail.by(ctx), q.encoding, q.payload }, '\31')
  local value = mailbox.value('', { text })
  local old = c.step_bytes and redis.call('HGET', keys.steps(ctx.r, id), name)
  local bytes = tonumber(c.step_bytes or '0') + #value + (old and -#old or #name)
  record.set(ctx, id, 'step_bytes', reply.int(bytes))
  steps.put(ctx, record.read(ctx, id), id, name, value, core.attempt(c), ctx.t, '0')
end

-- run rewinds an execution that refuse let pass, and returns the answer.
function rewind.run(ctx, c, id, q)
  q.gone = {}
  if core.terminal(c) then
    replay.run(ctx, c, id, q)
    keyed.retake(ctx, c, id)
  else
    live(ctx, c, id, q)
  end
  if q.encoding ~= '' then say(ctx, id, q) end
  return rewind.answer(reply.ok, record.read(ctx, id), q.gone)
end
