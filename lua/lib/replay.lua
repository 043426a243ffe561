-- replay: how an ended execution runs again, for the functions that replay.
local replay = {}

-- clear removes what the last run left on the core and beside it.
local function clear(ctx, c, id, drop)
  record.clear(ctx, id, 'ended_at', 'retries', 'reclaims', 'failure_category', 'cancelled_by', 'last_release', 'delay_until',
    'attempt_deadline', 'attempt_left')
  redis.call('HDEL', keys.attempts(ctx.r, id), 'cancel', 'progress')
  if drop then
    if c.attempt then record.set(ctx, id, 'dropped_attempts', reply.int(core.started(c))) end
    if c.step_bytes then
      record.clear(ctx, id, 'step_bytes')
      steps.clear(ctx, id)
    end
    if c.resume_bytes then record.clear(ctx, id, 'resume_bytes') end
  elseif c.step_bytes and (c.had_waits or c.flow) then
    replay.reopen(ctx, c, id)
  end
  if c.flow then -- who is asked for again is looked at anew
    redis.call('UNLINK', keys.children(ctx.r, id))
    record.clear(ctx, id, 'children_wait')
  end
end

-- stale tells whether the next run cannot use a step: it holds a waitpoint, which the end has closed, or outcomes of children
-- of which one did not succeed, and may have been replayed since.
local function stale(ctx, id, name)
  local prefix = string.sub(name, 1, 3)
  if prefix == '\31w:' then return true end
  if prefix ~= '\31c:' then return false end
  local outcomes = pack.split(redis.call('HGET', keys.steps(ctx.r, id), name) or '', '\31')
  for i = 1, #outcomes do
    if not string.find(outcomes[i], '^[^,]*,s,') then return true end
  end
  return false
end

-- reopen forgets the steps that the next run cannot use.
function replay.reopen(ctx, c, id)
  local all, gone, bytes = redis.call('HKEYS', keys.steps(ctx.r, id)), {}, tonumber(c.step_bytes)
  for i = 1, #all do
    if stale(ctx, id, all[i]) then
      gone[#gone + 1] = all[i]
      bytes = bytes - #all[i] - redis.call('HSTRLEN', keys.steps(ctx.r, id), all[i])
    end
  end
  if #gone == 0 then return end
  steps.drop(ctx, id, gone)
  if #gone == #all then
    record.clear(ctx, id, 'step_bytes')
  else
    record.set(ctx, id, 'step_bytes', reply.int(bytes))
  end
end

-- rearm gives the deadline its original span again (spec README, settled questions).
local function rearm(ctx, c, id)
  if not c.deadline then return end
  local span = c.deadline_span or reply.int(math.max(1, tonumber(c.deadline) - tonumber(c.created_at)))
  local due = ctx.now + tonumber(span)
  record.set(ctx, id, 'deadline', reply.int(due), 'deadline_span', span)
  indexes.alarm(ctx, due, id)
end

-- parse reads request, steps, force, by and reason from position i; it returns them, or nil and an error reply.
function replay.parse(argv, i)
  local q = { request = args.id(argv[i]), steps = argv[i + 1], force = argv[i + 2], by = argv[i + 3], reason = argv[i + 4] }
  if not q.request then return nil, reply.err('invalid_input', 'request id') end
  if q.steps ~= 'keep' and q.steps ~= 'drop' then return nil, reply.err('invalid_input', 'steps: keep or drop') end
  if q.force ~= '0' and q.force ~= '1' then return nil, reply.err('invalid_input', 'force: 0 or 1') end
  if not q.by or #q.by > 64 then return nil, reply.err('invalid_input', 'by: at most 64 bytes') end
  if not q.reason or #q.reason > 1024 then return nil, reply.err('invalid_input', 'reason: at most 1024 bytes') end
  return q
end

-- refuse returns why an execution is not replayed, or that this request has replayed it before; nil when it may be.
function replay.refuse(ctx, c, q)
  if not c.state or c.purged_until then return reply.err('execution_not_found') end
  if c.replay_request == q.request then return reply.already(c.state, c.replays) end
  if not core.terminal(c) then return reply.err('execution_not_terminal', c.state) end
  local h = c.flow and graph.head(ctx, c.flow)
  if h and graph.barred(ctx, c.flow) then return reply.err('flow_cancelled', c.flow) end
  if h and graph.count(h, 'bl') > 0 then return reply.err('resolution_pending', c.flow) end
  if c.state == 'T1' and q.force == '0' then
    return reply.err('replay_not_allowed', 'it succeeded; a success is replayed only if forced')
  end
  local cap = policy.read(c.policy).replays
  if tonumber(c.replays or '0') >= cap then return reply.err('max_replays_exhausted', reply.int(cap)) end
  return nil
end

-- regroup makes the group of a member ready for another run: what did not succeed is open again. It returns the code of
-- the state that follows. Nothing of a flow that is not released may run; the release comes to a member without a group.
local function regroup(ctx, c, id)
  local g, h = c.flow and links.group(ctx, id), c.flow and graph.head(ctx, c.flow)
  local free = h and h.st == 'F0' and 'R3p' or 'R1p'
  if not g then return free end
  local v = links.edges(ctx, id)
  for i = 1, #v, 2 do
    local mark = string.byte(v[i + 1], 1)
    if mark == 108 or mark ~= 115 and mark ~= 46 and g.state == 'i' then -- l, and what is neither s nor open
      local _, attempt, input = group.record(v[i + 1])
      links.tell(ctx, id, v[i], mark == 108 and 's,' .. (attempt or '') .. ',' .. (input or '') or '.,,' .. (input or ''))
    end
  end
  if g.state == 'i' then
    g.failed, g.skipped, g.state = 0, 0, 'p'
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
  history.add(ctx, c, id, 'replayed', q.by, table.concat({ c.state, c.ended_at or '', c.failure_category or '', q.steps, q.reason }, ' '))
  clear(ctx, c, id, q.steps == 'drop')
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
