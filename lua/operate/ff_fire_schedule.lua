-- ff_fire_schedule: moves a schedule from the due time its caller saw on to the next one ('' for never): counts the
-- instants between that are missed, and submits one, at, unless that is '' . The item is one of ff_create_execution
-- whose input is the schedule's. Or it is a flow that was staged with so many members and edges: it is released as by
-- ff_flow_seal, so that it runs if the schedule moves on and not otherwise. Without a mode, or while it lacks some,
-- the outcome is wanted, and nothing happens. With solo nothing is submitted while the schedule's last execution or
-- flow has not ended. What is refused or not submitted is counted as missed, with the reason. A schedule that has
-- fired as often as limit ('' without end) is not due any more: the next of the reply is when it is due now, 0 for
-- never. If the schedule is not as its caller saw it any more, nothing happens: so every instant is dealt with once.
-- Flags:   none
-- Go:      Engine.FireSchedule
-- Args:    protocol name:name(64) revision:n(1..) seen:instant next:instant? missed:n first:instant? last:instant?
--          why:bytes(32) limit:n(1..)? at:instant? solo:flag flow:uuid? members:n(0..10000) edges:n(0..60000)
--          mode:text [start executions:rows(1..1) {id:uuid digest:bytes(64) payload:bytes(1048576)}]
-- Replies: OK outcome:text detail:text next:instant; ALREADY_SATISFIED revision:n next:instant
-- Errors:  @root invalid_input schedule_not_found
local ff_fire = {}

-- judge returns what is wrong with the arguments before the item, or nil.
function ff_fire.judge(ctx, q, item)
  local seen, at, later = tonumber(q.seen), tonumber(q.at), tonumber(q.next)
  if later and later <= seen then return 'next: later than seen' end
  if not q.gone then return 'missed: with first, last and why, or 0' end
  if not at then
    if q.gone.count == 0 then return 'at: nothing is fired, and nothing missed' end
    return (item or q.flow ~= '') and 'executions: nothing is fired' or nil
  end
  if at < seen or at > ctx.now then return 'at: from seen to now' end
  if later and later <= at then return 'next: later than at' end
  return q.flow ~= '' and ff_fire.judge_flow(q, item) or nil
end

-- judge_flow returns what is wrong with the arguments of a flow, or nil.
function ff_fire.judge_flow(q, item)
  if q.members < 1 then return 'members: 1..10000' end
  if q.mode ~= '' and not flow.modes[q.mode] then return 'mode: seal, grow, open or nothing' end
  return item and 'executions: a flow is fired' or nil
end

-- running tells whether the schedule's last execution, or flow, has not ended.
function ff_fire.running(ctx, c)
  if not c.lx then return false end
  if c.lw == c.lx then
    local h = graph.head(ctx, c.lx)
    return h and not h.en
  end
  local s = record.read(ctx, c.lx).state
  return s and string.sub(s, 1, 1) ~= 'T'
end

-- decide answers what becomes of the item: outcome, detail, and for a refusal its code.
function ff_fire.decide(ctx, c, item, solo)
  if solo and c.lx ~= item.id and ff_fire.running(ctx, c) then return 'overlap', c.lx, 'overlap' end
  local answer = create.refuse(ctx, item) or create.known(ctx, item)
  if answer and (string.byte(answer, 1) == 61 or string.find(answer, '-idempotency_conflict', 1, true)) then
    return 'known', item.id
  end
  answer = answer or create.admit(ctx, item)
  if answer then return 'refused', string.sub(answer, 2), string.match(answer, '^%-([%l_]+)') end
  return 'created', item.id
end

-- staged answers what becomes of a flow, as decide does of an item: wanted when it is not there as a whole, or was
-- only asked about.
function ff_fire.staged(ctx, c, q)
  if q.solo and c.lx ~= q.flow and ff_fire.running(ctx, c) then return 'overlap', c.lx, 'overlap' end
  local h = graph.head(ctx, q.flow)
  if not h then return 'wanted', q.flow end
  if h.rl then return 'known', q.flow end
  if h.st ~= 'F0' then return 'refused', 'flow_already_terminal ' .. h.st, 'flow_already_terminal' end
  if q.mode == '' or graph.count(h, 'nn') < q.members or graph.count(h, 'ne') < q.edges then
    return 'wanted', q.flow
  end
  return 'created', q.flow
end

-- submit writes what is fired: the item, or the flow that is released.
function ff_fire.submit(ctx, q, item)
  if item then
    create.write(ctx, item)
    indexes.apply(ctx)
  else
    flow.release(ctx, graph.head(ctx, q.flow), q.mode)
    flow.apply(ctx)
  end
  create.close(ctx)
end

local function ff_fire_schedule(ctx, argv)
  local q, bad = decode.ff_fire_schedule(argv)
  if not q then return bad end
  q.gone = schedule.missed(q)
  local wrong = ff_fire.judge(ctx, q, argv[17])
  if wrong then return reply.err('invalid_input', wrong) end
  local name, at, item = q.name, q.at, nil
  if at ~= '' and q.flow == '' then
    local items
    items, bad = create.parse(argv, 17)
    if not items then return bad end
    if #items > 1 then return reply.err('invalid_input', 'executions: one') end
    item = items[1]
  end
  local c = schedule.read(ctx, name)
  if not c then return reply.err('schedule_not_found', name) end
  if c.rv ~= reply.int(q.revision) or c.nx ~= q.seen or c.pz then return reply.already(c.rv, c.nx or '0') end
  local key, outcome, detail, why = keys.schedule(ctx.r, name), 'missed', '', nil
  if item then
    item.payload = redis.call('HGET', key, 'in') or ''
    outcome, detail, why = ff_fire.decide(ctx, c, item, q.solo)
  elseif at ~= '' then
    outcome, detail, why = ff_fire.staged(ctx, c, q)
    if outcome == 'wanted' then return reply.ok(outcome, detail, c.nx) end
  end

  schedule.miss(ctx, name, c, q.gone)
  if why then
    schedule.miss(ctx, name, c, { count = 1, first = at, last = at, why = why })
  elseif outcome == 'created' or outcome == 'known' then
    redis.call('HSET', key, 'lf', at, 'lx', detail)
    if not item then redis.call('HSET', key, 'lw', detail) end
  end
  if outcome == 'created' then
    c.fc = redis.call('HINCRBY', key, 'fc', 1)
    ff_fire.submit(ctx, q, item)
  end
  local due = schedule.file(ctx, name, c, q.next, q.limit and reply.int(q.limit) or '')
  return reply.ok(outcome, detail, due ~= '' and due or '0')
end
