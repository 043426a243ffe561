-- flow: the work that the end of a member makes, done in the call that ended it (design §7). A call touches at most 64 members;
-- what is left goes to the partition's backlog, which the tick and ff_flow_drain work off in order.
local flow = {}

-- touch counts one member that is looked at.
local function touch(ctx)
  ctx.nodes = ctx.nodes - 1
end

-- promote makes a blocked member claimable. A delay counts from here.
function flow.promote(ctx, c, id)
  local key, code = keys.core(ctx.r, id), 'R1' .. string.sub(c.s, 3)
  local due = c.dd and ctx.now + (tonumber(c.dd) or 0) or tonumber(c.du or '0') or 0
  redis.call('ZREM', keys.blocked(ctx.r), id)
  if c.s == 'R3f' and due > ctx.now then
    code = 'R2af'
    redis.call('HSET', key, 's', code, 'du', reply.int(due))
    home.delay(ctx, due, id)
  else
    redis.call('HSET', key, 's', code)
    if c.du then redis.call('HDEL', key, 'du') end
    home.enqueue(ctx, c.r, core.score(c), id)
  end
  core.announce(ctx, c, id, code)
end

-- skip ends a member whose group cannot be satisfied any more, by the same routine as every other end (60-F8).
function flow.skip(ctx, c, id)
  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', 'dependency_impossible', '') end
  history.add(ctx, c, id, 'skipped', 'dependency_impossible')
  settle.finish(ctx, c, id, 'T5', 'dependency_impossible', { 'fc', 'dependency_impossible' })
end

-- cancel ends a member because its flow or a group says so.
function flow.cancel(ctx, c, id, reason)
  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', '', '') end
  if reason ~= '' then redis.call('HSET', keys.attempts(ctx.r, id), 'cancel', reason) end
  history.add(ctx, c, id, 'cancelled', 'flow_cascade', reason)
  settle.finish(ctx, c, id, 'T3', 'attempt_cancelled', { 'cb', 'flow_cascade' })
  if c.s == 'A1' then session.lost(ctx, c.ss, id, c.e, 'cancelled') end
end

-- stop cancels a flow by its header; its members follow in the work of this call and in the backlog.
function flow.stop(ctx, h, mode, by, reason)
  if h.st == 'F0' then mode = 'cancel_all' end -- nothing could ever run
  graph.set(h, 'st', 'F4')
  graph.set(h, 'cp', mode)
  graph.set(h, 'ca', ctx.t)
  graph.set(h, 'cb', by)
  graph.set(h, 'cw', reason ~= '' and reason or 'flow_cancelled')
  graph.set(h, 'mt', ctx.t)
  redis.call('ZREM', keys.flow_due(ctx.r), h.id)
  if mode ~= 'flow_only' then graph.push(ctx, 'c', h.id, h.id) end
end

-- decided does what the decision of a group asks for; c is the core of its member.
function flow.decided(ctx, h, c, id, g)
  if g.after == 'cancel' then graph.push(ctx, 's', id, h.id, '', g.state) end
  if not core.blocked(c) then return end
  if g.state == 's' then
    flow.promote(ctx, c, id)
  else
    flow.skip(ctx, c, id)
  end
end

-- edge tells a member how one of its upstreams ended; it may be told again.
function flow.edge(ctx, h, e, id)
  local key, incoming = keys.core(ctx.r, id), keys.incoming(ctx.r, id)
  local v = redis.call('HMGET', key, 's', 'g')
  local g, old, _, input = group.parse(v[2]), group.record(redis.call('HGET', incoming, e.id))
  if not v[1] or not g or not old then return end
  local mark = e.outcome
  if (old == 's' or old == 'l') and mark ~= 's' then return end -- a success stays one
  if old == 'l' then
    mark = 'l'
  elseif g.state ~= 'p' and mark == 's' and old ~= 's' then
    mark = 'l'
    if input ~= '' then
      history.add(ctx, { attempt = '' }, id, 'late_input', input, e.id)
    end
  end
  redis.call('HSET', incoming, e.id, mark .. ',' .. e.attempt .. ',' .. input)
  group.count(g, old, -1)
  group.count(g, mark, 1)
  local now = not graph.barred(ctx, h.id) and group.decide(g)
  redis.call('HSET', key, 'g', group.text(g))
  if now then flow.decided(ctx, h, core.read(ctx, id), id, g) end
end

-- child tells a member that waits for children how one of them ended.
function flow.child(ctx, h, e, id)
  local key, children = keys.core(ctx.r, id), keys.children(ctx.r, id)
  local c = core.read(ctx, id)
  local w, old, _, node = wait.parse(c.wt), group.record(redis.call('HGET', children, e.id))
  if not c.s or old ~= '.' and old ~= '~' then return end
  redis.call('HSET', children, e.id, e.outcome .. ',' .. e.attempt .. ',' .. node)
  if not w or w.state ~= 'p' then return end -- not yet, or no longer
  local now = wait.count(w, e.outcome)
  redis.call('HSET', key, 'wt', wait.text(w))
  if now and c.s == 'R3i' and not graph.barred(ctx, h.id) then flow.promote(ctx, c, id) end
end

-- The steps of the kinds of work (graph.push): each does what fits and returns true when nothing is left.
local steps = {}

function steps.u(ctx, h, e)
  local from = tonumber(e.at) or 0
  local list = redis.call('LRANGE', keys.outgoing(ctx.r, e.id), reply.int(from), reply.int(from + ctx.nodes - 1))
  local wanted = ctx.nodes
  for i = 1, #list do
    touch(ctx)
    local id = string.sub(list[i], 2)
    if string.byte(list[i], 1) == 119 then flow.child(ctx, h, e, id) else flow.edge(ctx, h, e, id) end
  end
  e.at = reply.int(from + #list)
  return #list < wanted
end

-- needed tells whether a member that is to be cancelled still feeds a group that is pending, or a parent that waits, other
-- than owner. nil: not known yet, the call has looked at enough; e.at remembers how far.
local function needed(ctx, e, id, owner, from)
  local out = keys.outgoing(ctx.r, id)
  while true do
    if ctx.nodes <= 0 then return nil, from end
    local list = redis.call('LRANGE', out, reply.int(from), reply.int(from + 15))
    touch(ctx) -- sixteen glances are as dear as one member
    for i = 1, #list do
      local other, waits = string.sub(list[i], 2), string.byte(list[i], 1) == 119
      if other ~= owner then
        local v = redis.call('HMGET', keys.core(ctx.r, other), 's', waits and 'wt' or 'g')
        local state = waits and wait.parse(v[2]) or group.parse(v[2])
        if v[1] and not graph.outcomes[v[1]] and state and state.state == 'p' then return true end
      end
    end
    if #list < 16 then return false end
    from = from + 16
  end
end

-- disposed counts what became of a sibling.
local function disposed(ctx, h, how)
  graph.add(h, how, 1)
  graph.tally(ctx, how)
end

-- rest cancels the open upstreams of a decided group, or the open children of a parent that ended: all that are listed in a
-- hash behind the cursor "<id> <how far its dependants were looked at>", in the order of their ids.
local function rest(ctx, h, e, key, reason)
  local v, ids, marks = redis.call('HGETALL', key), {}, {}
  for i = 1, #v, 2 do
    local mark = #v[i] == 36 and group.record(v[i + 1])
    if mark == '.' or mark == '~' then
      ids[#ids + 1] = v[i]
      marks[v[i]] = v[i + 1]
    end
  end
  table.sort(ids)
  local last, from = string.match(e.at, '^(%S*) (%d+)$')
  last, from = last or '', tonumber(from or '0')
  touch(ctx)
  for i = 1, #ids do
    local id = ids[i]
    if id >= last then
      if ctx.nodes <= 0 then
        e.at = id .. ' ' .. reply.int(id == last and from or 0)
        return false
      end
      touch(ctx)
      local c = core.read(ctx, id)
      if not c.s then
        disposed(ctx, h, 'xn')
      elseif core.terminal(c) then
        disposed(ctx, h, 'xt')
      else
        local spare, at = false, 0
        if tonumber(c.no or '0') > 1 then spare, at = needed(ctx, e, id, e.id, id == last and from or 0) end
        if spare == nil then
          e.at = id .. ' ' .. reply.int(at)
          return false
        end
        if spare then
          redis.call('HSET', key, id, '~' .. string.sub(marks[id], 2))
          disposed(ctx, h, 'xs')
        else
          flow.cancel(ctx, c, id, reason)
          disposed(ctx, h, 'xc')
        end
      end
    end
  end
  return true
end

function steps.s(ctx, h, e)
  local reason = e.outcome == 's' and 'sibling_quorum_satisfied' or 'sibling_quorum_impossible'
  return rest(ctx, h, e, keys.incoming(ctx.r, e.id), reason)
end

function steps.w(ctx, h, e)
  return rest(ctx, h, e, keys.children(ctx.r, e.id), 'parent_ended')
end

-- c walks over the members in the order in which they came.
function steps.c(ctx, h, e)
  local from = e.at == '' and '-inf' or '(' .. e.at
  local list = redis.call('ZRANGEBYSCORE', keys.members(ctx.r, h.id), from, '+inf', 'WITHSCORES', 'LIMIT', '0', reply.int(ctx.nodes))
  local wanted = ctx.nodes
  for i = 1, #list, 2 do
    touch(ctx)
    local c = core.read(ctx, list[i])
    if c.s and not core.terminal(c) and graph.cancels(h, graph.class(c.s)) then flow.cancel(ctx, c, list[i], h.cw or '') end
    e.at = reply.int(args.score(list[i + 1]))
  end
  return #list / 2 < wanted
end

function steps.r(ctx, h)
  local key, wanted = keys.roots(ctx.r, h.id), ctx.nodes
  local list = redis.call('LRANGE', key, '0', reply.int(wanted - 1))
  if #list > 0 then redis.call('LTRIM', key, reply.int(#list), '-1') end
  for i = 1, #list do
    touch(ctx)
    local c = core.read(ctx, list[i])
    if c.s == 'R3f' and not graph.barred(ctx, h.id) then flow.promote(ctx, c, list[i]) end
  end
  return #list < wanted
end

function steps.x(ctx, h, e)
  touch(ctx)
  local c = core.read(ctx, e.id)
  if c.s and not core.terminal(c) and graph.cancels(h, graph.class(c.s)) then flow.cancel(ctx, c, e.id, h.cw or '') end
  return true
end

function steps.k(ctx, _, e)
  touch(ctx)
  local c = core.read(ctx, e.id)
  local g = group.parse(c.g)
  if c.s and core.blocked(c) and g and g.state == 'i' then flow.skip(ctx, c, e.id) end
  return true
end

-- step does one piece of work; what it ends makes further pieces.
local function step(ctx, e)
  local h = graph.head(ctx, e.flow)
  if not h or not steps[e.kind] then return true end
  return steps[e.kind](ctx, h, e)
end

local function encode(e)
  return table.concat({ e.flow, e.at, e.outcome, e.attempt }, ',')
end

-- keep puts unfinished work into the backlog, at its end, and asks the tick to go on.
local function keep(ctx, list)
  local zadd, hset = {}, {}
  for i = 1, #list do
    local name = list[i].kind .. ':' .. list[i].id
    zadd[#zadd + 1], zadd[#zadd + 2] = ctx.t, name
    hset[#hset + 1], hset[#hset + 2] = name, encode(list[i])
    if not redis.call('ZSCORE', keys.backlog(ctx.r), name) then
      local h = graph.head(ctx, list[i].flow)
      if h then graph.add(h, 'bl', 1) end
    end
  end
  redis.call('ZADD', keys.backlog(ctx.r), unpack(zadd))
  redis.call('HSET', keys.work(ctx.r), unpack(hset))
  root.need(ctx, ctx.now)
end

-- run does the work that this call made, first come first served.
function flow.run(ctx)
  ctx.nodes = ctx.nodes or 64
  local i, left = 1, {}
  while ctx.work[i] do
    local e = ctx.work[i]
    if ctx.nodes <= 0 or not step(ctx, e) then left[#left + 1] = e end
    i = i + 1
  end
  ctx.work = nil
  if #left > 0 then keep(ctx, left) end
end

home.resolve = flow.run -- every function ends with home.apply

-- drain works off the backlog, touching at most budget members. It returns whether something is left.
function flow.drain(ctx, budget)
  ctx.nodes = budget
  local due = redis.call('ZRANGE', keys.backlog(ctx.r), '0', '31')
  if #due == 0 then return false end
  local values = redis.call('HMGET', keys.work(ctx.r), unpack(due))
  for i = 1, #due do
    if ctx.nodes <= 0 then break end
    local kind, id = string.match(due[i], '^(%l):(.*)$')
    local p = pack.split(values[i] or '', ',')
    local e = { kind = kind, id = id, flow = p[1], at = p[2] or '', outcome = p[3] or '', attempt = p[4] or '' }
    if not kind or not p[4] or step(ctx, e) then
      redis.call('ZREM', keys.backlog(ctx.r), due[i])
      redis.call('HDEL', keys.work(ctx.r), due[i])
      local h = p[4] and graph.head(ctx, e.flow)
      if h then graph.add(h, 'bl', -1) end
    else
      keep(ctx, { e })
    end
    if ctx.work then flow.run(ctx) end
  end
  return redis.call('EXISTS', keys.backlog(ctx.r)) == 1
end
