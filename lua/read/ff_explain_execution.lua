-- ff_explain_execution: one consistent look at everything that decides why an execution is where it is: its core, its
-- place in the queue, its lane, who waits for its route, its holder, what it is suspended on, its flow and those it
-- waits for there, whether a gate has closed its route, until when and why, who paused it, and whether anybody ticks.
-- Of the subscriptions that have waiters, and of those it waits for, it looks at 64. A purged one answers its code and
-- until when that is known.
-- Flags:   no-writes
-- Go:      Engine.Explain
-- Args:    protocol id:id
-- Replies: OK now:instant row:text alive:flag expiry:instant why:text lane:text keep:text since:instant lane_by:text
--          ahead:int queued:n ready:flag waiters:n subscriptions:n owner:text wake:instant overdue:flag purge:instant
--          core attempts suspension:rows {field:text value:text} waitpoints:rows {waitpoint:id record:text} flow:rows
--          {field:text value:text} open:n others:rows {id:id node:text code:text} closed:instant closed_why:text
--          outbox:n held:instant held_by:text hold_reason:text
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local ff_explain = {}

-- queue tells how many are ahead of a waiting execution (-1: it is not in its queue), how many wait there, and whether
-- claims look at it.
function ff_explain.queue(ctx, c, id)
  if not core.waiting(c) then return '-1', '0', '0' end
  local key = keys.queue(ctx.r, c.route)
  local rank = redis.call('ZRANK', key, id)
  return rank and reply.int(rank) or '-1', reply.int(redis.call('ZCARD', key)),
    ready.lists(ctx, c.route) and '1' or '0'
end

-- gates tells of one with gates until when its route is closed (0: it is open), why, and how many entries gates have
-- not been told of; of one that an operator paused, or whose delay one changed, when, who, and why.
function ff_explain.gates(ctx, c, id)
  local closed, why, outbox, paused, by, reason = '0', '', '0', '0', '', ''
  if gate.of(ctx, c.route) ~= '' then
    local at = core.waiting(c) and redis.call('ZSCORE', keys.closed(ctx.r), c.route)
    if at then
      closed = reply.int(args.score(at))
      why = redis.call('HGET', keys.closings(ctx.r), c.route) or ''
    end
    outbox = reply.int(redis.call('XLEN', keys.outbox(ctx.r)))
  end
  if core.paused(c) then
    local at, told = redis.call('ZSCORE', keys.paused(ctx.r), id), history.last(ctx, id, 'paused')
    paused = at and reply.int(args.score(at)) or '0'
    if told then
      by = told[6]
      reason = told[7]
    end
  end
  local changed = core.delayed(c) and history.last(ctx, id, 'delay_changed')
  if changed and string.match(changed[6], '^%d+') == c.delay_until then
    paused, by, reason = changed[2], string.match(changed[6], '^%S+ %S+ (.*)$') or '', changed[7]
  end
  return { closed, why, outbox, paused, by, reason }
end

-- listeners counts the instances that are registered to be woken for a route, and their subscriptions.
function ff_explain.listeners(ctx, c)
  if not core.waiting(c) then return '0', '0' end
  local all, waiters, subscriptions = redis.call('SMEMBERS', keys.digests(ctx.r)), 0, 0
  local member, namespace = ready.member(c.route), not route.plain(c.route) and route.namespace(ctx, c.route) or nil
  for i = 1, math.min(#all, 64) do
    if redis.call('SISMEMBER', keys.subscription(ctx.r, all[i]), member) == 1
      and doorbell.wants(ctx, all[i], namespace) then
      local n = redis.call('ZCOUNT', keys.waiters(ctx.r, all[i]), '(' .. ctx.t, '+inf')
      if n > 0 then waiters, subscriptions = waiters + n, subscriptions + 1 end
    end
  end
  return reply.int(waiters), reply.int(subscriptions)
end

-- purge is when a tick looks whether to purge what ended, as it is filed; 0 when it is not.
function ff_explain.purge(ctx, c, id)
  local score = core.terminal(c) and redis.call('ZSCORE', keys.done(ctx.r), id)
  return score and reply.int(args.score(score)) or '0'
end

-- attempts are the texts beside the core, and the records of the last two attempts.
function ff_explain.attempts(ctx, c, id)
  local names, out = { 'progress', 'cancel', 'categories' }, {}
  local n = core.started(c)
  for a = math.max(1, n - 1), n do names[#names + 1], names[#names + 2] = reply.int(a), reply.int(a) .. 'r' end
  local values = redis.call('HMGET', keys.attempts(ctx.r, id), unpack(names))
  for i = 1, #names do
    if values[i] then out[#out + 1], out[#out + 2] = names[i], values[i] end
  end
  return out
end

-- suspension is the record of what it waits for, or of what it was resumed from, and the waitpoints of that in the
-- order in which the condition numbers them.
function ff_explain.suspension(ctx, c, id)
  if not core.suspended(c) and not c.resume_bytes then return {}, {} end
  local u, points = suspension.read(ctx, id), {}
  local list = suspension.list(u)
  for i = 1, #list do
    local record = wait_record.of(ctx, id).points[list[i]]
    if record then points[#points + 1], points[#points + 2] = list[i], waitpoint.whole(record, u) end
  end
  return u, points
end

-- fields are those of the record, with what it waits for in place of how many that are.
function ff_explain.fields(ctx, c, id)
  local list, g = record.list(c), links.group(ctx, id)
  for i = 1, #list, 2 do
    if list[i] == 'upstreams' then list[i + 1] = g and group.text(g) or '' end
  end
  return list
end

-- others counts the upstreams or children that have not told an execution that waits for them how they ended, and
-- reads up to 64 of them.
function ff_explain.others(ctx, c, id)
  local suspended = core.suspended(c) and condition.of_children(suspension.read(ctx, id).condition)
  if not core.blocked(c) and not suspended then return '0', {} end
  local v, ids, out = suspended and redis.call('HGETALL', keys.children(ctx.r, id))
    or links.edges(ctx, id), {}, {}
  for i = 1, #v, 2 do
    local mark, _, node = nil, nil, nil
    if #v[i] >= 36 then mark, _, node = group.record(v[i + 1]) end
    if mark == '.' or mark == '~' then ids[#ids + 1] = { v[i], node } end
  end
  table.sort(ids, function(a, b) return a[1] < b[1] end)
  for i = 1, math.min(#ids, 64) do
    -- else its partition knows the state
    local x = #ids[i][1] == 36 and core.read(ctx, ids[i][1]) or { node = ids[i][2] }
    out[#out + 1], out[#out + 2], out[#out + 3] = ids[i][1], x.node or '', x.state or ''
  end
  return reply.int(#ids), out
end

local function ff_explain_execution(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then
    if refused[2] == 'partition_frozen' then refused[4] = redis.call('HGET', k[1], 'frozen') end
    return refused
  end
  local q, bad = decode.ff_explain_execution(argv)
  if not q then return bad end
  local id = q.id
  local c = core.read(ctx, id)
  if c.damaged then return reply.err('corrupt', c.damaged) end
  if not c.state then
    local code, _, expiry = purge.read(ctx, id)
    if code then return reply.err('result_purged', code, reply.int(expiry)) end
    return reply.err('execution_not_found')
  end
  local alive, expiry, why = '0', '0', ''
  if c.state == 'A1' then
    local s = session.read(ctx, c.session)
    alive, expiry = s.alive and '1' or '0', reply.int(s.exp or 0)
    why = not s.alive and redis.call('HGET', keys.session(ctx.r, c.session), 'why') or ''
  end
  local row, l = route.read(ctx, c.route), lane.of(ctx, c.route)
  local ahead, queued, listed = ff_explain.queue(ctx, c, id)
  local waiters, subscriptions = ff_explain.listeners(ctx, c)
  local out = { 1, 'OK', ctx.t, row, alive, expiry, why, l.state, l.keep, l.since, l.by, ahead, queued, listed, waiters,
    subscriptions, root.owner(ctx) or '', reply.int(ctx.wake or 0), root.overdue(ctx), ff_explain.purge(ctx, c, id) }
  local fields, points = ff_explain.suspension(ctx, c, id)
  reply.add(out, ff_explain.fields(ctx, c, id), 2)
  reply.add(out, ff_explain.attempts(ctx, c, id), 2)
  reply.fields(out, fields)
  reply.add(out, points, 2)
  reply.add(out, c.flow and redis.call('HGETALL', keys.flow(ctx.r, c.flow)) or {}, 2)
  local open, others = ff_explain.others(ctx, c, id)
  out[#out + 1], out[#out + 2] = open, reply.int(#others / 3)
  for i = 1, #others do out[#out + 1] = others[i] end
  local told = ff_explain.gates(ctx, c, id)
  for i = 1, #told do out[#out + 1] = told[i] end
  return out
end
