-- claim: hands out up to N executions with everything their handlers need. Used by ff_claim_next and
-- by ff_complete_execution, which may claim in the same call.
local claim = {}

-- R1f also begins the first attempt of a link (lua/lib/chain.lua), of type continue.
local types = { R1f = 'initial', R1t = 'retry', R1p = 'replay', R1r = 'reclaim' }

-- parse reads nine arguments from position i: session, number, ttl, max, subscription, table, wait, rotation, and at
-- most how much work with gates is granted; with 0 none of it is looked at.
function claim.parse(argv, i)
  local q = {
    session = argv[i], number = args.int(argv[i + 1], 1, 9007199254740991), number_text = argv[i + 1],
    ttl = args.int(argv[i + 2], 1000, 3600000), ttl_text = argv[i + 2],
    max = args.int(argv[i + 3], 1, 100), subscription = argv[i + 4],
    known = args.int(argv[i + 5], 0, 9007199254740991), wait = argv[i + 6] == '1',
    rotation = args.int(argv[i + 7], 0, 9007199254740991), grants = args.int(argv[i + 8], 0, 32),
  }
  local bad = (not (q.session and #q.session <= 64) and 'session') or (not q.number and 'claim number') or
      (not q.ttl and 'lease ttl: 1000..3600000') or (not q.max and 'max: 1..100') or
      (not (q.subscription and #q.subscription <= 64 and not string.find(q.subscription, '[^%x]')) and
        'subscription') or
      (not q.known and 'table version') or (not q.rotation and 'rotation') or (not q.grants and 'grants: 0..32')
  if bad then return nil, reply.err('invalid_input', bad) end
  return q
end

-- gather reads the heads of the routes that were chosen, as many of each as was said, and sorts them.
local function gather(ctx, turn, found)
  for i = 1, #turn.routes do
    local route_id, each, others = turn.routes[i], turn.each[i], #found
    local members = redis.call('ZRANGE', keys.queue(ctx.r, route_id), '0', reply.int(each - 1), 'WITHSCORES')
    for m = 1, #members, 2 do
      found[#found + 1] = { id = members[m], score = args.score(members[m + 1]), route = route_id }
    end
    local seen = #found - others
    turn.seen[i] = seen
    if seen < each then indexes.counted(ctx, route_id, seen) end
    if seen == 0 then ready.drop(ctx, route_id) end
  end
  table.sort(found, merge.before)
end

-- simply reads the head of a queue whose record is plain, without a table for all its fields; false if it is not, or
-- of a flow that was cancelled.
local function simply(ctx, h)
  local text = record.spliceable(ctx, h.id)
  if not text then return false end
  local created, priority, size, body, flow_id, node, edges, tags = record.unclaimed(text, h.route)
  if not created or flow_id and graph.barred(ctx, flow_id) then return false end
  h.text, h.created, h.priority, h.size, h.body, h.tags = text, created, priority, size, body, tags
  if flow_id then h.flow, h.node, h.edges = flow_id, node, edges end
  return true
end

-- plainly claims up to q.max of the one queue that has work, without a table for each, if nobody asked for more and the
-- records of all of them say nothing else than most do. It returns their ids, how many, whether there are more, and
-- what the answer says of them; nil if it has done nothing.
local function plainly(ctx, q, members)
  local route_id = members[1]
  local _, plain = ready.class(route_id)
  if not (ctx.calm and plain) or #members > 1 then return nil end
  local r, t, each = ctx.r, ctx.t, q.max + 4
  local list = redis.call('ZRANGE', keys.queue(r, route_id), '0', reply.int(each - 1))
  q.listed = list -- for who goes on if this path ends
  local n = math.min(#list, q.max)
  if n == 0 then return nil end
  local places, texts = {}, ctx.cache.texts
  for i = 1, n do
    if texts[list[i]] ~= nil then return nil end
    places[i] = keys.core(r, list[i])
  end
  local values = redis.call('MGET', unpack(places))
  for i = 1, n do texts[list[i]] = values[i] end
  local queued, lease = record.queued(route_id), record.lease(q.session, q.number_text, t, t)
  local between, behind = ' 1 ' .. t .. ' initial ' .. route_id .. ' ', ' ' .. t .. ' 0 0 0 0 0 '
  local told, k, room = {}, 0, 524288
  for i = 1, n do
    local text, created, priority, size, body, named = values[i], nil, nil, nil, nil, nil
    if text then created, priority, size, body, named = record.next(text, queued) end
    if not created then return nil end
    local payload, input, tags = nil, '0', named ~= '' and 1 or 0
    if size ~= '-' then
      input = '2'
      local bytes = tonumber(size)
      if bytes <= room then
        room, input = room - bytes, '1'
        payload = bytes <= record.inline and string.sub(text, body) or redis.call('GET', keys.input(r, list[i]))
      end
    end
    k = k + 1
    told[k] = list[i] .. between .. (priority == '-' and '0' or priority) .. ' ' .. created .. behind .. input ..
      (tags == 1 and ' 1 0 0' or ' 0 0 0')
    if payload then
      k = k + 1
      told[k] = payload
    end
    if tags == 1 then
      reply.add(told, redis.call('HGETALL', keys.tags(r, list[i])), 2)
      k = #told
    end
    values[i] = record.claimed(text, lease)
  end
  local written = record.writes(ctx)
  local w = #written
  for i = 1, n do
    written[w + 1], written[w + 2], texts[list[i]] = places[i], values[i], values[i]
    w = w + 2
  end
  if #list < each then indexes.counted(ctx, route_id, #list) end
  return list, n, #list > n, told
end

-- open writes what a session has claimed, and who holds it: ids, the first n of them.
local function open(ctx, q, s, held)
  redis.call('HSET', keys.session(ctx.r, q.session), 'exp', reply.int(ctx.now + q.ttl), 'ttl', q.ttl_text, 'cl',
    q.number_text)
  if not s.exp then timers.put(ctx, timers.sessions, ctx.now + q.ttl, q.session) end
  session.shorten(ctx, q.session, s, ctx.now + q.ttl)
  redis.call('ZADD', keys.held(ctx.r, q.session), unpack(held))
end

local function of_lane(ctx, l) return merge.next(ctx, l.m) end

-- heads picks up to max claimable executions of what is ready: of the lanes by turns, of each the best score first.
-- Where there may be several namespaces, or gates, a turn chooses among them; the fourth result is that turn. nil
-- when the subscription is not known any more.
local function heads(ctx, q, members, gated)
  local found, cores, turn = {}, {}, nil
  for i = 1, #members do
    local _, plain = ready.class(members[i])
    turn = turn or not plain
  end
  if turn then
    turn = share.begin(ctx, q, members, gated)
    if not turn then return nil end
  end
  local considered = math.min(#members, 64)
  -- A few more than wanted: heads whose deadline has passed stay for the tick and must not hide what is behind them.
  local each = math.max(1, math.min(q.max + 4, math.floor(256 / considered)))
  local views = math.floor((#members + 63) / 64) -- that it takes to look at all
  local from = #members > 64 and q.rotation % views * 64 or 0
  local lanes, order, merged = nil, nil, nil
  if not turn and considered > 1 and ctx.mixed then
    lanes = merge.lanes(ctx, q, members, from, considered)
    if lanes == false then return nil end
    -- Whose turn it is moves on when all was looked at: else a lane could be looked at only when it is not its turn.
    order = lanes and turns.begin(lanes, math.floor(q.rotation / views), q.max)
  end
  if not turn and considered > 1 and not order then
    merged = merge.open(ctx, members, from, considered, each, q.max + 4)
  end
  if turn then
    gather(ctx, turn, found)
    local ids = {}
    for n = 1, #found do ids[n] = found[n].id end
    record.load(ctx, ids)
    if turn.lanes then order = share.add(q, turn, found) end
  elseif considered == 1 then -- in order already, and formatting scores is the dearest part of reading them
    local route_id = members[1]
    local list = q.listed or redis.call('ZRANGE', keys.queue(ctx.r, route_id), '0', reply.int(each - 1))
    if #list > 0 then record.load(ctx, list, q.max) end -- the others are seldom looked at
    for i = 1, #list do
      -- with room for what simply says of it
      found[i] = { id = list[i], route = route_id, text = nil, created = nil, priority = nil, size = nil, body = nil }
    end
    if #list < each then indexes.counted(ctx, route_id, #list) end
    if #list == 0 then ready.drop(ctx, route_id) end
  end
  local picked, barred = {}, 0
  local i, seen = 0, #found
  while #picked < q.max do
    i = i + 1
    local h
    if order then
      h = turns.next(ctx, order, turn and share.head or of_lane)
    elseif merged then
      h = merge.next(ctx, merged)
    else
      h = found[i]
    end
    if not h then break end
    local before = #picked
    local plain = q.plain and simply(ctx, h)
    local c = not plain and core.read(ctx, h.id)
    if plain then
      picked[#picked + 1] = h
      if turn then share.take(turn, h) end
    elseif c.flow and c.state and graph.barred(ctx, c.flow) then
      barred = barred + 1
      -- the backlog comes to the others
      if barred <= 64 then cores[#cores + 1] = { head = h, core = c, barred = true } end
    elseif c.state and core.waiting(c) and c.route == h.route then
      if not c.deadline or tonumber(c.deadline) > ctx.now then
        h.core = c
        picked[#picked + 1] = h
        if turn then share.take(turn, h) end
      end
    else
      cores[#cores + 1] = { head = h, core = c }
    end
    if order and #picked > before then turns.took(order) end
  end
  -- At least; what comes behind is found by whoever takes them out.
  if merged then seen = merged.taken + merged.n end
  for n = 1, lanes and #lanes or 0 do seen = seen + lanes[n].m.taken + lanes[n].m.n end
  return picked, cores, seen > #picked or #members > considered or turn and not turn.all or false, turn
end

-- own is the route of what this call made claimable, if a claim may take it at once: nothing else is ready for it, so
-- that it would be the first in the queue. More than one route is for the queue, which knows their order.
local function own(ctx, q, members)
  local route_id, n = nil, 0
  for coming in pairs(ctx.moves.enqueued) do route_id, n = coming, n + 1 end
  if n ~= 1 or #members > 0 or ctx.gates or not route.plain(route_id) or not lane.open(ctx, route_id) then
    return nil
  end
  return redis.call('SISMEMBER', keys.subscription(ctx.r, q.subscription), route_id) == 1 and route_id or nil
end

-- at_once picks up to max of what this call made claimable in one route, best score first, and tells whether some are
-- left.
local function at_once(ctx, q, route_id)
  local members, found, picked, left = ctx.moves.enqueued[route_id], {}, {}, {}
  for i = 1, #members, 2 do
    found[#found + 1] = { id = members[i + 1], score = tonumber(members[i]), route = route_id }
  end
  table.sort(found, merge.before)
  for i = 1, #found do
    local h = found[i]
    local wanted = #picked < q.max
    local plain = wanted and simply(ctx, h)
    local c = wanted and not plain and core.read(ctx, h.id)
    if plain then
      h.unqueued = true
      picked[#picked + 1] = h
    elseif c and core.waiting(c) and not (c.deadline and tonumber(c.deadline) <= ctx.now) and
        not (c.flow and graph.barred(ctx, c.flow)) then
      h.core, h.unqueued = c, true
      picked[#picked + 1] = h
    else
      left[#left + 1], left[#left + 2] = reply.int(h.score), h.id
    end
  end
  ctx.moves.enqueued[route_id] = left
  if #left == 0 then ctx.moves.enqueued = nil end
  return picked, #left > 0
end

-- rehome moves a queue entry that its core contradicts to where the core says it lives. A member of a cancelled flow is
-- cancelled: the flow's own cancellation has not come to it yet.
local function rehome(ctx, stray)
  local h, c = stray.head, stray.core
  if stray.barred and core.waiting(c) and c.route == h.route then
    return flow.cancel(ctx, c, h.id, graph.head(ctx, c.flow).cw or '')
  end
  indexes.dequeue(ctx, h.route, h.id)
  local class = c.state and string.sub(c.state, 1, 1)
  if (class == 'R' or class == 'S') and home.of(c).key then
    home.put(ctx, c, h.id, home.score(ctx, c, h.id) or ctx.t)
  end
end

-- grant turns one picked execution, which has gates, into a granted one: held by the session, for as long as a grant
-- lasts.
local function grant(ctx, q, h, held)
  local c = h.core
  local last, ends = math.max(tonumber(c.epoch or '0'), tonumber(c.grant_epoch or '0')), ctx.now + gate.ttl
  c.state, c.grant_epoch = 'G1' .. string.sub(c.state, 3), reply.int(math.max(last + 1, ctx.now))
  record.set(ctx, h.id, 'state', c.state, 'grant_session', q.session, 'grant_number', q.number_text, 'grant_epoch',
    c.grant_epoch, 'grant_deadline', reply.int(ends))
  indexes.alarm(ctx, c.deadline and math.min(ends, tonumber(c.deadline)) or ends, h.id)
  held[#held + 1] = q.number_text
  held[#held + 1] = h.id
  indexes.dequeue(ctx, h.route, h.id)
end

-- first turns one picked execution with a plain record into an active one.
local function first(ctx, q, h, held)
  if not q.lease then q.lease = record.lease(q.session, q.number_text, ctx.t, ctx.t) end
  record.splice(ctx, h.id, record.claimed(h.text, q.lease))
  held[#held + 1] = q.number_text
  held[#held + 1] = h.id
  if not h.unqueued then indexes.dequeue(ctx, h.route, h.id) end
  if h.flow then graph.moved(ctx, { state = 'R1f', flow = h.flow }, h.id, 'A1') end
  if ctx.feed then feed.state(ctx, h.id, 'A1', '1', h.route, ctx.t, q.session) end
end

-- take turns one picked execution into an active one; without held it is one that was granted, and held, before.
local function take(ctx, q, h, held)
  local c, granted = h.core, not held
  local state, epoch = granted and 'R1' .. string.sub(c.state, 3) or c.state, ctx.t
  if granted then
    epoch = c.grant_epoch
    record.clear(ctx, h.id, 'grant_deadline', 'grant_session', 'grant_number', 'grant_epoch')
  elseif c.epoch and tonumber(c.epoch) >= ctx.now then
    epoch = reply.int(tonumber(c.epoch) + 1)
  end
  record.set(ctx, h.id, 'state', 'A1', 'session', q.session, 'claim_number', q.number_text, 'epoch', epoch,
    'claimed_at', ctx.t)
  local timeout = c.attempt_timeout
  if state == 'R1i' then
    timeout = c.attempt_timeout and (c.attempt_left or c.attempt_timeout)
    record.set(ctx, h.id, 'resumed_epoch', epoch)
    if c.attempt ~= '1' and not c.attempt_began then record.set(ctx, h.id, 'attempt_began', c.claimed_at) end
  else
    local kind = state == 'R1f' and c.attempt and 'continue' or types[state]
    record.set(ctx, h.id, 'attempt', reply.int(core.started(c) + 1), 'attempt_type', kind, 'first_claimed_at',
      c.first_claimed_at or ctx.t)
    if c.attempt_began then record.clear(ctx, h.id, 'attempt_began') end
  end
  if timeout then
    local due = ctx.now + tonumber(timeout)
    record.set(ctx, h.id, 'attempt_deadline', reply.int(due))
    if c.deadline then due = math.min(due, tonumber(c.deadline)) end
    indexes.alarm(ctx, due, h.id)
  elseif granted then
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), h.id)
  end
  if not granted then
    held[#held + 1] = q.number_text
    held[#held + 1] = h.id
    if not h.unqueued then indexes.dequeue(ctx, h.route, h.id) end
  end
  if c.flow then graph.moved(ctx, c, h.id, 'A1') end
  h.core = core.read(ctx, h.id)
  feed.state(ctx, h.id, 'A1', core.attempt(h.core), c.route, epoch, q.session)
end

local function left(ctx, instant)
  if not instant then return '0' end
  return reply.int(math.max(1, tonumber(instant) - ctx.now))
end

-- inputs finds what the upstreams of a member left it, under the names it gave them: at most 64 within the byte budget,
-- and from 192 edges a call, else '2', for a read of its own. It returns '0', '1' or '2', and the pairs.
local function inputs(ctx, id, edges, room)
  if not edges then return '0', {} end
  local n = tonumber(edges)
  if n > room.edges then return '2', {} end
  room.edges = room.edges - n
  local v, list, ups = links.edges(ctx, id), {}, {}
  for i = 1, #v, 2 do ups[#ups + 1] = v[i] end
  if #ups > 0 then record.load(ctx, ups) end
  for i = 1, #v, 2 do
    local mark, attempt, name = group.record(v[i + 1])
    if mark == 's' and name ~= '' then
      if #list == 128 then return '2', {} end
      local up, result = core.read(ctx, v[i]), nil
      if up.state and core.attempt(up) == attempt and up.result then
        result = up.result
      elseif up.state then -- what was purged is no empty result
        local key = keys.result(ctx.r, v[i], attempt)
        local size = redis.call('STRLEN', key)
        if size > room.bytes then return '2', {} end
        result = size > 0 and redis.call('GET', key) or ''
      end
      if result then
        if #result > room.bytes then return '2', {} end
        room.bytes = room.bytes - #result
        list[#list + 1] = name
        list[#list + 1] = result
      end
    end
  end
  return '1', list
end

-- describe appends one claim: one slot with everything that has no spaces (slots cost more than bytes), then the
-- blobs. Those beyond the call's byte budget are marked 2, for a plain read by the caller.
local function describe(ctx, id, c, q, room, out)
  local r, attempt = ctx.r, core.attempt(c)
  local sequence, kind, input, known, resume = '0', c.attempt_type, '0', '0', '0'
  if c.frames_attempt == attempt then sequence = redis.call('HGET', keys.meta(r, id, attempt), 'q') or '0' end
  if c.resumed_epoch and c.resumed_epoch == c.epoch then kind = 'resumed' end
  local takes, stop = core.takes(c), c.stop and talk.pending(c)
  if c.links or takes > 0 or stop then
    kind = kind .. '/' .. string.match(c.links or '0', '^%d+')
    if takes > 0 or stop then kind = kind .. '/' .. reply.int(takes) end
    if stop then kind = kind .. '/' .. stop end
  end
  local payload = nil
  if c.input_size then
    local size = tonumber(c.input_size)
    if size <= room.bytes then
      payload, room.bytes = c.input or redis.call('GET', keys.input(r, id)), room.bytes - size
    end
    input = payload and '1' or '2'
  end
  if c.step_bytes then
    known = '2'
    if tonumber(c.step_bytes) <= room.bytes then
      known, room.bytes = '1', room.bytes - tonumber(c.step_bytes)
    end
  end
  if c.resume_bytes then
    resume = '2'
    if tonumber(c.resume_bytes) <= room.bytes then
      resume, room.bytes = '1', room.bytes - tonumber(c.resume_bytes)
    end
  end
  out[#out + 1] = id .. ' ' .. attempt .. ' ' .. c.epoch .. ' ' .. kind .. ' ' .. c.route ..
    ' ' .. (c.priority or '0') ..
      ' ' .. c.created_at .. ' ' .. c.claimed_at .. ' ' .. (c.retries or '0') .. ' ' .. (c.reclaims or '0') .. ' ' ..
      left(ctx, c.attempt_deadline) .. ' ' .. left(ctx, c.deadline) ..
      ' ' .. sequence .. ' ' .. input .. ' ' .. (c.has_tags or '0') .. ' ' .. known .. ' ' .. resume
  local at, member = #out, nil
  if payload then out[#out + 1] = payload end
  if c.has_tags then reply.add(out, redis.call('HGETALL', keys.tags(r, id)), 2) end
  if known == '1' then reply.add(out, steps.of(ctx, id), 2) end
  if c.flow then
    local flag, list = inputs(ctx, id, c.has_inputs and c.upstreams, room)
    out[at] = out[at] .. ' ' .. flag
    member = { c.flow .. ' ' .. (c.node or ''), flag, list }
  end
  if resume == '1' then out[#out + 1] = suspension.outcome(ctx, id, suspension.read(ctx, id)) end
  if member then
    out[#out + 1] = member[1]
    if member[2] == '1' then reply.add(out, member[3], 2) end
  end
end

-- tell is describe for a plain record that was claimed for the first time.
local function tell(ctx, h, q, room, out)
  local input, payload = '0', nil
  if h.size ~= '-' then
    local size = tonumber(h.size)
    input = '2'
    if size <= room.bytes then
      input, room.bytes = '1', room.bytes - size
      payload = size <= record.inline and string.sub(h.text, h.body) or redis.call('GET', keys.input(ctx.r, h.id))
    end
  end
  out[#out + 1] = h.id .. ' 1 ' .. ctx.t .. ' initial ' .. h.route .. ' ' ..
      (h.priority == '-' and '0' or h.priority) .. ' ' .. h.created .. ' ' .. ctx.t .. ' 0 0 0 0 0 ' .. input ..
        (h.tags and ' 1 0 0' or ' 0 0 0')
  local at = #out
  if payload then out[at + 1] = payload end
  if h.tags then reply.add(out, redis.call('HGETALL', keys.tags(ctx.r, h.id)), 2) end
  if h.flow then
    local flag, list = inputs(ctx, h.id, h.edges, room)
    out[at] = out[at] .. ' ' .. flag
    out[#out + 1] = h.flow .. ' ' .. h.node
    if flag == '1' then reply.add(out, list, 2) end
  end
end

-- idle registers who listens for the session as a waiter and keeps its subscription alive. A subscription that has
-- waiters is listed.
local function idle(ctx, q)
  local waiters = keys.waiters(ctx.r, q.subscription)
  if redis.call('ZADD', waiters, reply.int(ctx.now + 180000), session.bell(q.session)) == 1 then
    redis.call('SADD', keys.digests(ctx.r), q.subscription)
  end
  redis.call('EXPIRE', keys.subscription(ctx.r, q.subscription), 600)
  if ctx.spaces or ctx.gates or ctx.mixed then redis.call('EXPIRE', keys.spaces(ctx.r, q.subscription), 600) end
end

-- ready lists what a claim looks at: work with gates or work without, by turns if there are both, which the third
-- result tells; the second, whether it has gates.
function claim.ready(ctx, q)
  local members = redis.call('SINTER', keys.ready(ctx.r), keys.subscription(ctx.r, q.subscription))
  if not ctx.gates or q.grants == 0 then return members, false, false end
  local gated = redis.call('SINTER', keys.gready(ctx.r), keys.subscription(ctx.r, q.subscription))
  if #gated > 0 then q.gated = true end
  local both = #gated > 0 and #members > 0
  if #gated > 0 and (not both or q.rotation % 2 == 1) then return gated, true, both end
  return members, false, both
end

-- describe appends claims with what their handlers need.
function claim.describe(ctx, q, claims, out)
  out[#out + 1] = reply.int(#claims)
  local room, linked = { bytes = 524288, edges = 192 }, nil
  for i = 1, #claims do
    if claims[i].edges or claims[i].core and claims[i].core.has_inputs then
      linked = linked or {}
      linked[#linked + 1] = claims[i].id
    end
  end
  if linked then links.load(ctx, linked) end
  for i = 1, #claims do
    if claims[i].text then
      tell(ctx, claims[i], q, room, out)
    else
      describe(ctx, claims[i].id, claims[i].core, q, room, out)
    end
  end
end

-- granted claims what was granted to a session before and is still.
function claim.granted(ctx, q, list)
  for i = 1, #list do
    if core.granted(list[i].core) then
      q.number_text = list[i].core.grant_number
      take(ctx, q, list[i])
    end
  end
end

-- met wakes waiters for what this call made claimable and the claim did not take: later is what there was of each
-- route.
local function met(ctx, later, claims)
  for i = 1, #claims do
    local route_id = claims[i].route
    if later[route_id] then later[route_id].n = later[route_id].n - 1 end
  end
  for route_id, was in pairs(later) do
    if was.n > 0 then urgent.wake(ctx, route_id, was.n, was.members) end
  end
end

-- rows appends the rows of those routes of claims and grants that are not their classes' own.
function claim.rows(ctx, claims, grants, out)
  local ids, seen = nil, nil
  for i = 1, #claims + #grants do
    local h = claims[i] or grants[i - #claims]
    local id = h.route or h.core.route
    if not route.plain(id) then
      if not ids then ids, seen = {}, {} end
      if not seen[id] then ids[#ids + 1], seen[id] = id, true end
    end
  end
  out[#out + 1] = reply.int(ids and #ids or 0)
  if ids then route.rows(ctx, ids, out) end
end

-- run answers the slots: duplicate, registered, more, overdue, gated, the table delta, then the claims and the
-- grants, and the rows of their routes.
function claim.run(ctx, q)
  local s = session.read(ctx, q.session)
  local duplicate = false
  if s.exp or s.dead then
    if not s.alive then return reply.err('lease_expired') end
    duplicate = q.number == s.cl
    if not duplicate and q.number ~= s.cl + 1 then return reply.err('claim_out_of_order', reply.int(s.cl)) end
  elseif q.number ~= 1 then
    return reply.err('lease_expired')
  elseif not session.valid(q.session) then
    return reply.err('invalid_input', 'session: <instance>~<suffix> of printable ASCII')
  end

  local claims, grants, more, registered, n, told = {}, {}, false, '0', nil, nil
  if duplicate then
    local members = redis.call('ZRANGEBYSCORE', keys.held(ctx.r, q.session), q.number_text, q.number_text)
    for i = 1, #members do
      local h = { id = members[i], core = core.read(ctx, members[i]) }
      if h.core.state and core.granted(h.core) then grants[#grants + 1] = h else claims[#claims + 1] = h end
    end
    redis.call('HSET', keys.session(ctx.r, q.session), 'exp', reply.int(ctx.now + q.ttl), 'ttl', q.ttl_text)
    session.shorten(ctx, q.session, s, ctx.now + q.ttl)
  elseif q.subscription ~= '' then
    local members, gated, other = claim.ready(ctx, q)
    local strays, turn, later = {}, nil, nil
    local mine = ctx.moves.enqueued and own(ctx, q, members)
    if ctx.moves.enqueued and not mine then
      later = {}
      indexes.queue(ctx, later)
      members, gated, other = claim.ready(ctx, q)
    end
    ctx.moves.coming = nil
    local list
    if not mine and not later and not gated and #members > 0 then list, n, more, told = plainly(ctx, q, members) end
    if list then
      local held, number = {}, q.number_text
      for i = 1, n do held[2 * i - 1], held[2 * i] = number, list[i] end
      open(ctx, q, s, held)
      for i = n + 1, #list do list[i] = nil end
      indexes.dequeue_all(ctx, members[1], list)
    elseif mine then
      claims, more = at_once(ctx, q, mine)
    elseif #members > 0 then
      if gated then q.max = math.min(q.max, q.grants) else q.plain = true end
      if other then q.rotation = math.floor(q.rotation / 2) end -- its other half says which of the two
      claims, strays, more, turn = heads(ctx, q, members, gated)
      if not claims then
        if later then met(ctx, later, {}) end
        return reply.err('subscription_unknown')
      end
      more = more or other
      if turn then share.charge(ctx, turn) end
    elseif redis.call('EXISTS', keys.subscription(ctx.r, q.subscription)) == 0 then
      if later then met(ctx, later, {}) end
      return reply.err('subscription_unknown')
    end
    if #claims > 0 then
      local held = {}
      for i = 1, #claims do (gated and grant or claims[i].text and first or take)(ctx, q, claims[i], held) end
      open(ctx, q, s, held)
    end
    n = n or #claims
    if q.wait and not other and n == 0 then
      idle(ctx, q)
      registered = '1'
    end
    for i = 1, #strays do rehome(ctx, strays[i]) end -- may ring whoever has just registered
    more = flow.apply(ctx) or more
    if later then met(ctx, later, claims) end
    -- A short claim would come again at once, to register. But if another half may have some, it does come again.
    if q.wait and not other and n > 0 and n < q.max and not more and #strays == 0 then
      idle(ctx, q)
      registered = '1'
    end
    if more and n > 0 then
      for i = 1, math.min(#members, 8) do doorbell.ring(ctx, members[i], nil, 1) end
    end
    if gated then
      grants = claims
      claims = {}
    end
  end

  local out = { 1, 'OK', duplicate and '1' or '0', registered, more and (n or #claims + #grants) > 0 and '1' or '0',
    root.overdue(ctx), q.gated and '1' or '0' }
  route.delta(ctx, q.known, out)
  if told then
    local at = #out + 1
    out[at] = reply.int(n)
    for i = 1, #told do out[at + i] = told[i] end
  else
    claim.describe(ctx, q, claims, out)
  end
  out[#out + 1] = reply.int(#grants)
  local wakes = #grants > 0 and {}
  for i = 1, #grants do
    local c = grants[i].core
    wakes[c.route] = wakes[c.route] or gate.wakes(ctx, c.route)
    out[#out + 1] = grants[i].id .. ' ' .. c.grant_epoch .. ' ' .. c.route .. ' ' .. wakes[c.route]
  end
  claim.rows(ctx, claims, grants, out)
  return out
end
