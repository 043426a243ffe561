-- flow: the work that the end of a member makes, done in the call that ended it. A call touches at most 64 members;
-- what is left goes to the partition's backlog, which the tick and ff_flow_drain work off in order.
local flow = {}

-- touch counts one member that is looked at.
local function touch(ctx) ctx.moves.nodes = ctx.moves.nodes - 1 end

-- promote makes a blocked member claimable. A delay counts from here.
function flow.promote(ctx, c, id)
  local code, due = 'R1' .. string.sub(c.state, 3), nil
  indexes.unblock(ctx, id)
  if c.plain then
    record.splice(ctx, id, record.freed(ctx.cache.texts[id]))
    indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  else
    due = c.start_delay and ctx.now + (tonumber(c.start_delay) or 0) or tonumber(c.delay_until or '0') or 0
    if c.state == 'R3f' and due > ctx.now then
      code = 'R2af'
      record.set(ctx, id, 'state', code, 'delay_until', reply.int(due))
      timers.put(ctx, timers.delayed, due, id)
    else
      record.set(ctx, id, 'state', code)
      if c.delay_until then record.clear(ctx, id, 'delay_until') end
      indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
    end
  end
  core.announce(ctx, c, id, code)
  c.state = code
  c.delay_until = code == 'R2af' and reply.int(due) or nil
end

-- skip ends a member whose group cannot be satisfied any more, by the same routine as every other end.
function flow.skip(ctx, c, id)
  c.unneeded = group.needless(links.group(ctx, id))
  local why = c.unneeded and 'not_needed' or 'dependency_impossible'
  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', why, '') end
  history.add(ctx, c, id, 'skipped', why)
  settle.finish(ctx, c, id, 'T5', why, { 'failure_category', why })
end

-- cancel ends a member because its flow or a group says so.
function flow.cancel(ctx, c, id, reason)
  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', '', '') end
  if reason ~= '' then redis.call('HSET', keys.attempts(ctx.r, id), 'cancel', reason) end
  history.add(ctx, c, id, 'cancelled', 'flow_cascade ', reason)
  settle.finish(ctx, c, id, 'T3', 'attempt_cancelled', { 'cancel_source', 'flow_cascade' })
  if c.state == 'A1' then session.lost(ctx, c.session, id, c.epoch, 'cancelled') end
end

-- modes say how a flow may grow after its release: field sl of its header.
flow.modes = { seal = '1', grow = 'g', open = '' }

-- release says how a flow may grow, and lets the members run that wait for nothing else: those that are there already
-- by the work of this call, those that the call adds at once.
function flow.release(ctx, h, mode)
  local seal = flow.modes[mode]
  graph.set(h, 'sl', seal ~= '' and seal or nil)
  if h.st ~= 'F0' then return end
  graph.set(h, 'st', 'F1')
  graph.set(h, 'rl', ctx.t)
  redis.call('ZREM', keys.flow_due(ctx.r), h.id)
  if graph.count(h, 'nn') > 0 then graph.push(ctx, 'r', h.id, h.id) end
end

-- stop cancels a flow by its header; its members follow in the work of this call and in the backlog.
function flow.stop(ctx, h, mode, by, reason)
  local staged = h.st == 'F0'
  if staged then mode = 'cancel_all' end -- nothing could ever run
  graph.set(h, 'st', 'F4')
  graph.set(h, 'cp', mode)
  graph.set(h, 'ca', ctx.t)
  graph.set(h, 'cb', by ~= '' and by or nil)
  graph.set(h, 'cw', reason ~= '' and reason or 'flow_cancelled')
  graph.set(h, 'mt', ctx.t)
  redis.call('ZREM', keys.flow_due(ctx.r), h.id)
  if staged then redis.call('UNLINK', keys.roots(ctx.r, h.id)) end -- nobody will release them
  if mode ~= 'flow_only' then graph.push(ctx, 'c', h.id, h.id) end
end

-- decided does what a group asks for that was decided just now; c is the core of its member.
function flow.decided(ctx, h, c, id, g)
  if g.after == 'cancel' and group.open(g) then graph.push(ctx, 's', id, h.id, '', g.state) end
  if not core.blocked(c) then return end
  if g.state == 's' and h.st == 'F0' then
    redis.call('RPUSH', keys.roots(ctx.r, h.id), id) -- the release comes to it
  elseif g.state == 's' then
    flow.promote(ctx, c, id)
  else
    flow.skip(ctx, c.plain and core.read(ctx, id) or c, id)
  end
end

-- blocked is what resolving needs of a member: mostly the record tells it without a table for all its fields.
local function blocked(ctx, id)
  local text = record.spliceable(ctx, id)
  return text and record.blocked(text) or core.read(ctx, id)
end

-- edge tells a member how one of its upstreams ended; it may be told again. An upstream that did not succeed and is
-- replayed is open again for those whose groups are pending.
function flow.edge(ctx, h, e, id)
  local c, g = blocked(ctx, id), links.group(ctx, id)
  if not c.state or not g then return end
  local old, _, input = links.edge(ctx, id, e.id)
  if not old then return end
  local mark = e.outcome
  if mark == '.' and (g.state ~= 'p' or old == '~') then return end
  -- a success stays one
  if (old == 's' or old == 'l') and mark ~= 's' and not (g.state == 'p' and group.watches(g)) then return end
  if old == 'l' then
    mark = 'l'
  elseif g.state ~= 'p' and mark == 's' and old ~= 's' then
    mark = 'l'
    if input ~= '' then history.add(ctx, { attempt = '' }, id, 'late_input', input, e.id) end
  end
  links.tell(ctx, id, e.id, mark .. ',' .. e.attempt .. ',' .. input)
  group.count(g, old, -1)
  group.count(g, mark, 1)
  if not graph.barred(ctx, h.id) and group.decide(g) then flow.decided(ctx, h, c, id, g) end
end

-- child tells an execution that waits for children, or for others, how one of them ended.
function flow.child(ctx, e, id)
  local children = keys.children(ctx.r, id)
  local c = core.read(ctx, id)
  local w, old, _, node = wait_children.parse(c.children_wait), group.record(redis.call('HGET', children, e.id))
  if not c.state or old ~= '.' and old ~= '~' then return end
  redis.call('HSET', children, e.id, e.outcome .. ',' .. e.attempt .. ',' .. node)
  if not w or w.state ~= 'p' then return end -- not yet, or no longer
  local now = wait_children.count(w, e.outcome)
  -- nobody waits any more, and its end has said what becomes of the others
  if now and core.terminal(c) then w.after = 'run' end
  record.set(ctx, id, 'children_wait', wait_children.text(w))
  if not now or c.flow and graph.barred(ctx, c.flow) then return end
  if core.suspended(c) then suspension.enough(ctx, c, id) end
end

-- foresee reads at once what telling many members how others ended will ask for: entries of the work, and lists of
-- whom to tell, by who ended.
local function foresee(ctx, work, lists)
  local ids, wide, n = {}, {}, 0
  for i = 1, #work do
    local list = lists[work[i].id]
    for m = 1, list and #list or 0 do
      if string.byte(list[m], 1) ~= 119 then -- w
        n = n + 1
        ids[n] = string.sub(list[m], 2)
      end
    end
  end
  if n == 0 then return end
  links.load(ctx, ids, true)
  n = 0
  for i = 1, #work do
    local list = lists[work[i].id]
    for m = 1, list and #list or 0 do
      if string.byte(list[m], 1) ~= 119 then
        n = n + 1
        local id = ids[n]
        if links.wide(ctx, id) then
          local ups = wide[id]
          if not ups then
            ups = {}
            wide[id] = ups
          end
          ups[#ups + 1] = work[i].id
        end
      end
    end
  end
  for id, ups in pairs(wide) do links.expect(ctx, id, ups) end
end

-- The steps of the kinds of work (graph.push): each does what fits and returns true when nothing is left.
local steps = {}

function steps.u(ctx, h, e)
  if e.outcome == '.' then -- it may have ended again, and said so
    local code = record.read(ctx, e.id).state
    if not code or graph.outcomes[code] then return true end
  end
  local from = tonumber(e.at) or 0
  local wanted, list = ctx.moves.nodes, e.list
  if list and #list < wanted then
    e.list = nil
  else
    list = links.dependants(ctx, e.id, from, wanted)
  end
  foresee(ctx, { e }, { [e.id] = list })
  for i = 1, #list do
    touch(ctx)
    local id = string.sub(list[i], 2)
    if string.byte(list[i], 1) ~= 119 then
      flow.edge(ctx, h, e, id)
    elseif e.outcome ~= '.' then -- a parent was told how its child ended, and that stays
      flow.child(ctx, e, id)
    end
  end
  e.at = reply.int(from + #list)
  return #list < wanted
end

-- needed tells whether a member that is to be cancelled still feeds a group that is pending, or a parent that waits,
-- other than owner and those that only watch. nil: not known yet, the call has looked at enough; the second result is
-- how far.
local function needed(ctx, id, owner, from)
  while true do
    if ctx.moves.nodes <= 0 then return nil, from end
    local list = links.dependants(ctx, id, from, 8)
    if #list > 1 then touch(ctx) end -- eight glances are as dear as one member
    for i = 1, #list do
      local other, waits = string.sub(list[i], 2), string.byte(list[i], 1) == 119
      if other ~= owner then
        local c = core.read(ctx, other)
        local state = waits and wait_children.parse(c.children_wait) or links.group(ctx, other)
        if state and not waits and group.watches(state) then state = nil end
        if c.state and not graph.outcomes[c.state] and state and (state.state == 'p' or state.state == 'm') then
          return true
        end
      end
    end
    if #list < 8 then return false end
    from = from + 8
  end
end

-- disposed counts what became of a sibling.
local function disposed(ctx, h, how)
  graph.add(h, how, 1)
  graph.tally(ctx, how)
end

-- open lists who has not ended of edges, in the order of their ids. To read many is as dear as members.
local function open(ctx, v)
  local ids = {}
  for i = 1, #v, 2 do
    local mark = #v[i] == 36 and string.byte(v[i + 1], 1)
    if mark == 46 or mark == 126 then ids[#ids + 1] = v[i] end -- . or ~
  end
  table.sort(ids)
  ctx.moves.nodes = ctx.moves.nodes - 1 - math.floor(#v / 32)
  return table.concat(ids)
end

-- upstreams and children: whose rest is cancelled: all of them, what one of them was told, and how to say otherwise.
local upstreams = { one = links.edge, tell = links.tell }
local children = {}

function upstreams.open(ctx, id) return open(ctx, links.edges(ctx, id)) end

function children.open(ctx, id, flow_id)
  local v = redis.call('HGETALL', keys.children(ctx.r, id))
  ctx.moves.nodes = ctx.moves.nodes - 1 - math.floor(#v / 32)
  return wait_children.open(ctx, v, flow_id)
end

function children.one(ctx, id, child) return group.record(redis.call('HGET', keys.children(ctx.r, id), child)) end

function children.tell(ctx, id, child, text) redis.call('HSET', keys.children(ctx.r, id), child, text) end

-- rest cancels the open upstreams of a decided group g, or the open children of a parent that ended or whose wait is
-- over. The cursor is "<how far the dependants of the first were looked at> <ids that are left>", so that all of them
-- are read once.
local function rest(ctx, h, e, of, reason, g)
  local owner = string.sub(e.id, 1, 36)
  if e.at == '' then e.at = '0 ' .. of.open(ctx, owner, h.id) end
  local from, ids = string.match(e.at, '^(%d+) (.*)$')
  from, ids = tonumber(from or '0'), ids or ''
  local at = 1
  while at <= #ids and ctx.moves.nodes > 0 do
    local id = string.sub(ids, at, at + 35)
    local c = core.read(ctx, id)
    local ended, spare = c.state and core.terminal(c), false
    if c.state and not ended then
      spare, from = needed(ctx, id, owner, from)
      if spare == nil then break end
    end
    touch(ctx)
    at = at + 36
    if not c.state then
      disposed(ctx, h, 'xn')
    elseif ended then
      disposed(ctx, h, 'xt')
    else
      local known, attempt, input = of.one(ctx, owner, id)
      if spare then
        -- else the parent waits for others
        if known then of.tell(ctx, owner, id, '~,' .. (attempt or '') .. ',' .. (input or '')) end
        disposed(ctx, h, 'xs')
      else
        c.owner = g and owner
        flow.cancel(ctx, c, id, reason)
        disposed(ctx, h, 'xc')
        if c.told then -- nobody else depends on it
          of.tell(ctx, owner, id, c.told .. ',' .. (input or ''))
          g.failed = g.failed + 1
        end
      end
    end
    from = 0
  end
  e.at = reply.int(from or 0) .. ' ' .. string.sub(ids, at)
  return at > #ids
end

function steps.s(ctx, h, e)
  local reason = e.outcome == 's' and 'sibling_quorum_satisfied' or 'sibling_quorum_impossible'
  return rest(ctx, h, e, upstreams, reason, links.group(ctx, e.id))
end

function steps.w(ctx, h, e) return rest(ctx, h, e, children, 'parent_ended') end

-- o has its cursor from where the wait was over: the parent may wait for other children since.
function steps.o(ctx, h, e) return rest(ctx, h, e, children, 'wait_over') end

-- c walks over the members in the order in which they came.
function steps.c(ctx, h, e)
  local from = e.at == '' and '-inf' or '(' .. e.at
  local list = redis.call('ZRANGEBYSCORE', keys.members(ctx.r, h.id), from, '+inf', 'WITHSCORES', 'LIMIT', '0',
    reply.int(ctx.moves.nodes))
  local wanted = ctx.moves.nodes
  for i = 1, #list, 2 do
    touch(ctx)
    local c = core.read(ctx, list[i])
    if c.state and not core.terminal(c) and graph.cancels(h, graph.class(c.state)) then
      flow.cancel(ctx, c, list[i], h.cw or '')
    end
    e.at = reply.int(args.score(list[i + 1]))
  end
  return #list / 2 < wanted
end

function steps.r(ctx, h)
  local key, wanted = keys.roots(ctx.r, h.id), ctx.moves.nodes
  local list = redis.call('LRANGE', key, '0', reply.int(wanted - 1))
  if #list > 0 then redis.call('LTRIM', key, reply.int(#list), '-1') end
  for i = 1, #list do
    touch(ctx)
    local c = core.read(ctx, list[i])
    local blocked, g = c.state == 'R3f' or c.state == 'R3p', c.upstreams and links.group(ctx, list[i])
    -- a group is pending again if its member was replayed before the release
    if blocked and not (g and g.state ~= 's') and not graph.barred(ctx, h.id) then flow.promote(ctx, c, list[i]) end
  end
  return #list < wanted
end

function steps.x(ctx, h, e)
  touch(ctx)
  local c = core.read(ctx, e.id)
  if c.state and not core.terminal(c) and graph.cancels(h, graph.class(c.state)) then
    flow.cancel(ctx, c, e.id, h.cw or '')
  end
  return true
end

function steps.k(ctx, h, e)
  touch(ctx)
  local c = core.read(ctx, e.id)
  local g = links.group(ctx, e.id)
  if c.state and core.blocked(c) and g and g.state == 'i' and not graph.barred(ctx, h.id) then
    flow.skip(ctx, c, e.id)
  end
  return true
end

-- step does one piece of work; what it ends makes further pieces.
local function step(ctx, e)
  local h = graph.head(ctx, e.flow)
  if not h or not steps[e.kind] then return true end
  return steps[e.kind](ctx, h, e)
end

local function encode(e) return table.concat({ e.flow, e.at, e.outcome, e.attempt }, ',') end

-- keep puts unfinished work into the backlog, at its end, and asks the tick to go on.
local function keep(ctx, list)
  local zadd, hset, filed = {}, {}, {} -- one call may make the same piece twice: the later one counts
  for i = 1, #list do
    local name = list[i].kind .. ':' .. list[i].id
    zadd[#zadd + 1], zadd[#zadd + 2] = ctx.t, name
    hset[#hset + 1], hset[#hset + 2] = name, encode(list[i])
    if not filed[name] and not redis.call('ZSCORE', keys.backlog(ctx.r), name) then
      local h = graph.head(ctx, list[i].flow)
      if h then graph.add(h, 'bl', 1) end
    end
    filed[name] = true
  end
  redis.call('ZADD', keys.backlog(ctx.r), unpack(zadd))
  redis.call('HSET', keys.work(ctx.r), unpack(hset))
  root.need(ctx, ctx.now)
end

-- run does the work that this call made, first come first served.
function flow.run(ctx)
  ctx.moves.nodes = ctx.moves.nodes or 64
  local i, left = 1, {}
  if #ctx.moves.work > 1 then
    local lists = {}
    for n = 1, math.min(#ctx.moves.work, ctx.moves.nodes) do lists[ctx.moves.work[n].id] = ctx.moves.work[n].list end
    foresee(ctx, ctx.moves.work, lists)
  end
  while ctx.moves.work[i] do
    local e = ctx.moves.work[i]
    if ctx.moves.nodes <= 0 or not step(ctx, e) then left[#left + 1] = e end
    i = i + 1
  end
  ctx.moves.work = nil
  if #left > 0 then keep(ctx, left) end
end

-- apply ends every function that may change the state of a member: it does what the ends of members ask for, then
-- writes the moves. It returns true when a route that lost entries still has some.
function flow.apply(ctx)
  if ctx.moves.blocked then indexes.file(ctx) end -- before the work, which may free them again
  if ctx.moves.work then flow.run(ctx) end
  return indexes.apply(ctx)
end

-- drain works off the backlog, touching at most budget members. It returns whether something is left.
function flow.drain(ctx, budget)
  ctx.moves.nodes = budget
  local due = redis.call('ZRANGE', keys.backlog(ctx.r), '0', reply.int(math.max(0, budget - 1)))
  if #due == 0 then return false end
  for i = 1, #due do
    if ctx.moves.nodes <= 0 then break end
    local kind, id = string.match(due[i], '^(%l):(.*)$')
    local p = pack.split(redis.call('HGET', keys.work(ctx.r), due[i]) or '', ',')
    local e = { kind = kind, id = id, flow = p[1], at = p[2] or '', outcome = p[3] or '', attempt = p[4] or '' }
    if not kind or not p[4] or step(ctx, e) then
      redis.call('ZREM', keys.backlog(ctx.r), due[i])
      redis.call('HDEL', keys.work(ctx.r), due[i])
      local h = p[4] and graph.head(ctx, e.flow)
      if h then graph.add(h, 'bl', -1) end
    else
      keep(ctx, { e })
    end
    if ctx.moves.work then flow.run(ctx) end
  end
  return redis.call('EXISTS', keys.backlog(ctx.r)) == 1
end
