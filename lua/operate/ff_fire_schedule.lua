-- ff_fire_schedule: moves a schedule from the due time its caller saw on to the next one ('' for never): counts the instants between that
-- are missed, and submits one, at, unless that is '' . The item is one of ff_create_execution whose input is the schedule's. With solo it is not submitted
-- while the schedule's last execution has not ended. What is refused or not submitted is counted as missed, with the
-- reason. If the schedule is not as its caller saw it any more, nothing happens: so every instant is dealt with once.
-- Flags:   none
-- Go:      Engine.FireSchedule
-- Args:    protocol name revision seen next missed first last why at solo [namespace lane kind capabilities priority delay deadline policy timeout creator tags {key value} count {id digest payload}]
-- Replies: OK outcome detail; ALREADY_SATISFIED revision next
-- Errors:  invalid_input schedule_not_found partition_missing partition_frozen protocol_mismatch
local ff_fire = {}

-- judge returns what is wrong with the arguments before the item, or nil.
function ff_fire.judge(ctx, q, argv)
  local most = 9007199254740991
  if not args.name(q.name, 64) then return 'name' end
  if not args.int(q.revision, 1, most) then return 'revision' end
  local seen = args.int(q.seen, 0, most)
  if not seen then return 'seen' end
  if q.next ~= '' and not args.int(q.next, seen + 1, most) then return 'next: later than seen' end
  local missed = schedule.missed(argv, 6)
  if not missed then return 'missed: count, first, last, reason' end
  if q.at == '' then
    if missed.count == 0 then return 'at: nothing is fired, and nothing missed' end
    if argv[12] then return 'item: nothing is fired' end
  else
    if not args.int(q.at, seen, ctx.now) then return 'at: from seen to now' end
    if q.next ~= '' and tonumber(q.next) <= tonumber(q.at) then return 'next: later than at' end
  end
  if q.solo ~= '0' and q.solo ~= '1' then return 'solo: 0 or 1' end
  return nil
end

-- running tells whether the schedule's last execution has not ended.
function ff_fire.running(ctx, c)
  if not c.lx then return false end
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

local function ff_fire_schedule(ctx, argv)
  local q = args.named(argv, 2, { 'name', 'revision', 'seen', 'next', 'missed', 'first', 'last', 'why', 'at', 'solo' })
  local wrong = ff_fire.judge(ctx, q, argv)
  if wrong then return reply.err('invalid_input', wrong) end
  local name, at, item = q.name, q.at, nil
  if at ~= '' then
    local items, bad = create.parse(argv, 12)
    if not items then return bad end
    if #items > 1 then return reply.err('invalid_input', 'item: one') end
    item = items[1]
  end
  local c = schedule.read(ctx, name)
  if not c then return reply.err('schedule_not_found', name) end
  if c.rv ~= q.revision or c.nx ~= q.seen or c.pz then return reply.already(c.rv, c.nx or '0') end
  local key, outcome, detail, why = keys.schedule(ctx.r, name), 'missed', '', nil
  if at ~= '' then
    item.payload = redis.call('HGET', key, 'in') or ''
    outcome, detail, why = ff_fire.decide(ctx, c, item, q.solo == '1')
  end

  schedule.miss(ctx, name, c, schedule.missed(argv, 6))
  if why then
    schedule.miss(ctx, name, c, { count = 1, first = at, last = at, why = why })
  elseif outcome == 'created' or outcome == 'known' then
    redis.call('HSET', key, 'lf', at, 'lx', item.id)
  end
  if outcome == 'created' then
    redis.call('HINCRBY', key, 'fc', 1)
    create.write(ctx, item)
    indexes.apply(ctx)
    create.close(ctx)
  end
  schedule.file(ctx, name, c, q.next)
  return reply.ok(outcome, detail)
end
