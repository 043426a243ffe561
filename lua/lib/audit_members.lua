-- audit_members: what an audit compares of a member of a flow: its flow lists it, its group and its wait for children
-- say what the records of its edges say, it was told how its upstreams and children ended, and somebody will do what
-- is left to do about it.
local audit_members = {}

-- due tells whether a piece of work is in the backlog, or planned by this call.
local function due(ctx, kind, id)
  if ctx.cache.idle == nil then ctx.cache.idle = redis.call('EXISTS', keys.work(ctx.r)) == 0 end
  if not ctx.cache.idle and redis.call('HEXISTS', keys.work(ctx.r), kind .. ':' .. id) == 1 then return true end
  local planned = ctx.moves.work or {}
  for i = 1, #planned do
    if planned[i].kind == kind and planned[i].id == id then return true end
  end
  return false
end

-- entries reads a list once a call, as a set. read is how.
local function entries(ctx, key, read)
  ctx.cache.lists = ctx.cache.lists or {}
  local set = ctx.cache.lists[key]
  if not set then
    local list = read()
    set = { has = {} }
    for i = 1, #list do set.has[list[i]] = true end
    ctx.cache.lists[key], ctx.cost = set, ctx.cost + 1 + #list / 50
  end
  return set
end

-- roots are those that the release of a flow waits for.
local function roots(ctx, flow_id)
  local key = keys.roots(ctx.r, flow_id)
  return entries(ctx, key, function() return redis.call('LRANGE', key, '0', '-1') end)
end

-- knows: a member has a list of those that depend on it.
local function knows(ctx, id, entry, to)
  local set = entries(ctx, keys.links(ctx.r, id), function()
    return links.dependants(ctx, id, 0, links.leads(ctx, id))
  end)
  if set.has[entry] or not audit.note(ctx, 'missing', 'm', id, 'it does not know that ' .. to .. ' depends on it') then
    return
  end
  links.lead(ctx, id, entry, string.byte(entry, 1) == 111 and 1 or 0)
  set.has[entry] = true
end

-- ended reads how an upstream or a child ended: outcome and attempt; nil while it has not, false when nobody can tell.
local function ended(ctx, id)
  local c = core.read(ctx, id)
  ctx.cost = ctx.cost + 1
  if not c.state then
    local code = purge.read(ctx, id)
    return code and graph.outcomes[code] or false, ''
  end
  return graph.outcome(c), core.attempt(c), true
end

-- gap walks over the numbers behind one, and returns the first that no member has, entries of nobody left aside.
-- Whether an entry is a member at all is looked at for the first 200.
local function gap(ctx, key, flow_id, behind)
  local expected, looked = behind + 1, 0
  while true do
    local list = redis.call('ZRANGEBYSCORE', key, reply.int(expected), '+inf', 'WITHSCORES', 'LIMIT', '0', '500')
    for i = 1, #list, 2 do
      local number = audit.score(list[i + 1])
      looked = looked + 1
      if looked > 200 or record.read(ctx, list[i]).flow == flow_id then
        if number > expected then return expected end
        expected = number + 1
      end
    end
    ctx.cost = ctx.cost + 10 + #list / 50
    if #list < 1000 then return expected end
  end
end

-- listed: the flow lists its members. One that it has lost gets the first number that is free behind those of its
-- upstreams.
local function listed(ctx, h, id, incoming)
  local key, behind = keys.members(ctx.r, h.id), -1
  local at = redis.call('ZSCORE', key, id)
  local number = at and audit.whole(at)
  if number and number < math.max(graph.count(h, 'nn'), redis.call('ZCARD', key) + graph.count(h, 'pu')) then return end
  if not audit.note(ctx, at and 'score' or 'missing', 'fx:' .. h.id, id, at or 'nowhere') then return end
  if at then redis.call('ZREM', key, id) end
  for i = 1, #incoming, 2 do
    local up = redis.call('ZSCORE', key, incoming[i])
    behind = math.max(behind, up and audit.score(up) or -1)
  end
  ctx.cache.gaps = ctx.cache.gaps or {}
  local from = ctx.cache.gaps[h.id] or -1 -- numbers up to here are taken
  local free = gap(ctx, key, h.id, math.max(from, behind))
  if behind <= from then ctx.cache.gaps[h.id] = free end
  redis.call('ZADD', key, reply.int(free), id)
  -- no reason to ask whether the flow has ended
  h.vn = reply.int(redis.call('HINCRBY', keys.flow(ctx.r, h.id), 'vn', 1))
end

-- counted: the counters of a group are those of its edges, and decide it. A decision stays.
local function counted(ctx, h, c, id, incoming)
  local own, x = links.of(ctx, id), { succeeded = 0, failed = 0, skipped = 0 }
  local text = own.group and group.text(own.group) or ''
  local g = group.parse(text) -- one that may be looked at without changing the other
  x.unneeded = g and g.unneeded and 0
  if not g or own.damaged or #incoming / 2 ~= g.upstreams or c.upstreams ~= reply.int(g.upstreams) then
    audit.broken(ctx, 'm', id,
      'depends on ' .. c.upstreams .. ', the group ' .. text .. ', and ' .. reply.int(#incoming / 2) .. ' edges')
    return nil
  end
  for i = 2, #incoming, 2 do
    local mark = group.record(incoming[i])
    if not mark then
      audit.broken(ctx, 'm', id, 'an edge without a mark')
      return nil
    end
    group.count(x, mark, 1)
  end
  local same = x.succeeded == g.succeeded and x.failed == g.failed and x.skipped == g.skipped
    and x.unneeded == g.unneeded
  g.succeeded, g.failed, g.skipped, g.unneeded = x.succeeded, x.failed, x.skipped, x.unneeded
  local now = not graph.barred(ctx, h.id) and group.decide(g)
  if same and not now then return g end
  if audit.note(ctx, 'flag', 'm', id, 'the group ' .. text .. ', its edges say ' .. group.text(g)) then
    own.group = g
    links.touch(ctx, id)
    if now then flow.decided(ctx, h, c, id, g) end
  end
  return g, now
end

-- told: a member was told how those it depends on ended, or the backlog has it. What failed is open again for one
-- that was replayed.
local function told(ctx, h, c, id, incoming)
  local needless, own = false, links.group(ctx, id)
  local edge = own and group.aside(own) and 'o' or 'd'
  for i = 1, #incoming, 2 do
    local up, mark = incoming[i], group.record(incoming[i + 1])
    local open = mark == '.' or mark == '~'
    local outcome, attempt, there = ended(ctx, up)
    if there then knows(ctx, up, edge .. id, id) end
    needless = needless or mark == '.' and outcome == nil
    if open and outcome == false then
      audit.broken(ctx, 'm', id, 'its upstream ' .. up .. ' is gone, and nothing tells how it ended')
    elseif
      open and outcome and not (c.replays and outcome ~= 's') and not graph.barred(ctx, h.id)
        and not due(ctx, 'u', up) then
      if audit.note(ctx, 'missing', 'm', id, 'it was not told how ' .. up .. ' ended') then
        flow.edge(ctx, h, { id = up, outcome = outcome, attempt = attempt }, id)
      end
    end
  end
  return needless
end

-- stuck: a member that waits is waited for by something: its group, the release of its flow, or work.
local function stuck(ctx, h, c, id, g)
  if not core.blocked(c) or g and g.state == 'p' or graph.barred(ctx, h.id) then return end
  if g and g.state == 'i' then
    if not due(ctx, 'k', id) and audit.note(ctx, 'phantom', 'blocked', id, 'its group cannot be satisfied') then
      flow.skip(ctx, c, id)
    end
    return
  end
  local released = h.st ~= 'F0' and not due(ctx, 'r', h.id)
  if not released and roots(ctx, h.id).has[id] then return end
  if h.st == 'F0' then
    if audit.note(ctx, 'missing', 'fu', h.id, 'nobody would release ' .. id) then
      redis.call('RPUSH', keys.roots(ctx.r, h.id), id)
      roots(ctx, h.id).has[id] = true
    end
  elseif audit.note(ctx, 'phantom', 'blocked', id, 'it waits for nothing') then
    flow.promote(ctx, c, id)
  end
end

-- waits: one that waits for children goes on when enough of them have ended. What the wait was is known to the
-- handler, so one whose wait is lost runs and says it again.
local function waits(ctx, h, c, id, children)
  local w, s, o, n = wait_children.parse(c.children_wait), 0, 0, 0
  for i = 1, #children, 2 do
    local mark = #children[i] >= 36 and group.record(children[i + 1])
    if mark then
      n = n + 1
      if mark == 's' then s = s + 1 elseif mark ~= '.' and mark ~= '~' then o = o + 1 end
    end
  end
  if not w then
    if audit.note(ctx, 'phantom', 'blocked', id, 'it waits for children, and for none') then
      if c.children_wait then record.clear(ctx, id, 'children_wait') end
      suspension.enough(ctx, c, id)
    end
    return
  end
  local same = w.succeeded == s and w.others == o and w.children == n
  w.succeeded, w.others, w.children = s, o, n
  local now = wait_children.decide(w) or w.state == 'd'
  if same and not now then return end
  local detail = 'the wait ' .. c.children_wait .. ', its children say ' .. wait_children.text(w)
  if audit.note(ctx, now and 'phantom' or 'flag', now and 'blocked' or 'x', id, detail) then
    record.set(ctx, id, 'children_wait', wait_children.text(w))
    if now then suspension.enough(ctx, c, id) end
  end
end

-- children: a parent was told how its children ended, and what it left behind is cancelled if it said so.
local function children(ctx, h, c, id)
  local v, left = redis.call('HGETALL', keys.children(ctx.r, id)), false
  for i = 1, #v, 2 do
    local mark = #v[i] == 36 and group.record(v[i + 1])
    if mark then
      local outcome, attempt, there = ended(ctx, v[i])
      if there then knows(ctx, v[i], 'w' .. id, id) end
      left = left or mark == '.' and outcome == nil
      if (mark == '.' or mark == '~') and outcome and not graph.barred(ctx, h.id) and not due(ctx, 'u', v[i]) and
          audit.note(ctx, 'missing', 'fc', id, 'it was not told how its child ' .. v[i] .. ' ended') then
        flow.child(ctx, { id = v[i], outcome = outcome, attempt = attempt }, id)
      end
    end
  end
  if left and core.terminal(c) and string.find(c.children_wait or '', ' [pm] cancel$') and not due(ctx, 'w', id) and
      audit.note(ctx, 'missing', 'work', 'w:' .. id, 'its children were not cancelled') then
    graph.push(ctx, 'w', id, h.id)
  end
  local over = left and string.find(c.children_wait or '', ' cancel d %l+$')
  local work = over and wait_children.work(ctx, id, redis.call('HGET', keys.children(ctx.r, id), 'name') or '')
  if work and not graph.barred(ctx, h.id) and not due(ctx, 'o', work) and
      audit.note(ctx, 'missing', 'work', 'o:' .. work,
        'the children that its wait does not need were not cancelled') then
    graph.push(ctx, 'o', work, h.id)
  end
  return v
end

-- waits tells whether a member is suspended with children as a part of its condition.
function audit_members.waits(ctx, c, id)
  if not core.suspended(c) or not string.find(c.children_wait or ' p all', ' p %l+$') then return false end
  local u = suspension.read(ctx, id)
  return not u.closed_at and condition.of_children(u.condition)
end

-- alone compares one that waits for others and is in no flow, likewise.
function audit_members.alone(ctx, c, id)
  if not audit_members.waits(ctx, c, id) then return 0 end
  local v = redis.call('HGETALL', keys.children(ctx.r, id))
  waits(ctx, nil, c, id, v)
  return #v / 50
end

-- look compares one member and returns how much it has looked at, an execution being one.
function audit_members.look(ctx, c, id)
  ctx.cost = 0
  local h = graph.head(ctx, c.flow)
  if not h then
    audit.broken(ctx, 'x', id, 'its flow ' .. c.flow .. ' has no header')
    return 1
  end
  local incoming = links.edges(ctx, id)
  ctx.cost = ctx.cost + #incoming / 50
  listed(ctx, h, id, incoming)
  if graph.cancels(h, graph.class(c.state)) and not core.terminal(c) and not due(ctx, 'c', h.id)
    and not due(ctx, 'x', id) and
      audit.note(ctx, 'missing', 'work', 'x:' .. id, 'its flow was cancelled') then
    graph.push(ctx, 'x', id, h.id)
  end
  local g, now
  if c.upstreams then
    g, now = counted(ctx, h, c, id, incoming)
  elseif #incoming > 0 or links.group(ctx, id) then
    audit.broken(ctx, 'm', id, 'it depends on others and its record says that it does not')
    return ctx.cost
  end
  local needless = told(ctx, h, c, id, incoming)
  if c.upstreams and not g then return ctx.cost end
  if not now then stuck(ctx, h, c, id, g) end
  if needless and g and g.after == 'cancel' and g.state ~= 'p' and not now and not c.replays
    and not graph.barred(ctx, h.id) and
      not due(ctx, 's', id)
        and audit.note(ctx, 'missing', 'work', 's:' .. id, 'what its group does not need was not cancelled') then
    graph.push(ctx, 's', id, h.id, '', g.state)
  end
  local v = children(ctx, h, c, id)
  if audit_members.waits(ctx, c, id) and not graph.barred(ctx, h.id) then
    if ctx.repair then c = core.read(ctx, id) end -- it may have been told just now
    if audit_members.waits(ctx, c, id) then
      waits(ctx, h, c, id, ctx.repair and redis.call('HGETALL', keys.children(ctx.r, id)) or v)
    end
  end
  return ctx.cost
end
