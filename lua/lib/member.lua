-- member: how executions join a flow (60 §2.6, ADR 19). A member enters together with every edge that leads into it, from
-- members that are there before it; so no graph has a cycle, and no group ever waits for an edge to be declared. An item is
-- that of create, then node policy k satisfied edges, and of each edge upstream input. Everything is judged first.
local member = {}

local policies = { all = true, any = true, quorum = true }

-- edges judges those of an item, from position i. It returns the position behind, or nil and what is wrong.
local function edges(argv, i, item)
  local own, behind, seen, named = argv[item.at], i + 2 * item.n, {}, {}
  if not argv[behind - 1] then return nil, 'invalid_input', 'arguments: an edge is cut short' end
  for at = i, behind - 1, 2 do
    local from, input = argv[at], argv[at + 1]
    if #from ~= 36 then return nil, 'invalid_input', 'upstream id' end
    if from == own then return nil, 'self_referencing_edge', '' end
    if seen[from] then return nil, 'dependency_already_exists', from end
    seen[from] = true
    if input ~= '' then
      if #input > 64 or string.find(input, '%c') then return nil, 'invalid_input', 'input: at most 64 bytes without control characters' end
      if named[input] then return nil, 'invalid_input', 'input: ' .. input .. ' is there twice' end
      named[input], item.named = true, true
    end
  end
  return behind
end

-- shape reads one item from position i. It returns the item and the position behind, or nil, code and detail.
local function shape(argv, i)
  local tags = args.int(argv[i + 13], 0, 64)
  if not tags then return nil, 'invalid_input', 'tags: at most 64' end
  local at = i + 14 + 2 * tags
  if not argv[at + 4] then return nil, 'invalid_input', 'arguments: an item is cut short' end
  local item = { at = i, after = at, node = argv[at], tags = tags, policy = argv[at + 1], rest = argv[at + 3] }
  if #item.node < 1 or #item.node > 64 or string.find(item.node, '[%c]') then
    return nil, 'invalid_input', 'node: 1 to 64 bytes without control characters'
  end
  if not args.int(argv[at + 4], 0, 9007199254740991) then return nil, 'invalid_input', 'edges: 0..1000' end
  item.n = tonumber(argv[at + 4])
  if item.n > 1000 then return nil, 'fan_in_too_large', '1000' end
  if not policies[item.policy] then return nil, 'invalid_input', 'policy: all, any or quorum' end
  if item.rest ~= 'run' and item.rest ~= 'cancel' or (item.policy == 'all' and item.rest == 'cancel') then
    return nil, 'invalid_input', 'satisfied: run or cancel, all takes run alone'
  end
  local quorum = item.policy == 'quorum'
  item.k = args.int(argv[at + 2], quorum and 1 or 0, quorum and item.n or 0)
  if not item.k then return nil, 'invalid_input', quorum and 'k: 1..' .. reply.int(item.n) or 'k: 0, it belongs to quorum' end
  if item.policy == 'any' and item.n == 0 then return nil, 'invalid_input', 'policy: any without an edge' end
  item.first = at + 5 -- of its edges
  local behind, code, detail = edges(argv, item.first, item)
  if not behind then return nil, code, detail end
  return item, behind
end

-- split turns a refusal of create, "-code detail", into its parts.
local function split(text)
  local code, detail = string.match(text, '^%-(%S+) ?(.*)$')
  return code, detail
end

-- parse reads count items from position i to the end of the arguments. It returns them, or nil and an error reply.
function member.parse(argv, i, count)
  local items, total = {}, 0
  for n = 1, count do
    if not argv[i + 13] then return nil, reply.err('invalid_input', 'arguments: item ' .. reply.int(n) .. ' is cut short') end
    local item, behind, detail = shape(argv, i)
    if not item then return nil, reply.err(behind, detail, argv[i] or '') end
    total, items[n], i = total + item.n + (n > 1 and 8 + item.tags or 0), item, behind
  end
  if argv[i] then return nil, reply.err('invalid_input', 'arguments: more than count items') end
  if total > 1000 then
    return nil, reply.err('invalid_input', 'edges: at most 1000 a call, for each further member eight less, and one for each of its tags')
  end
  return items
end

-- known judges an item whose id is there already; somebody else's is no child of parent, and would never tell it of its end. It
-- returns true, or nil and an error reply.
local function known(ctx, h, argv, item, answer, parent)
  local id = argv[item.at]
  if string.sub(answer, 1, 1) == '-' then
    local code, detail = split(answer)
    return nil, reply.err(code, detail, item.node)
  end
  local c = core.read(ctx, id)
  if c.fl and c.fl ~= h.id then return nil, reply.err('already_member_of_different_flow', c.fl, item.node) end
  local mine = not parent or links.dependants(ctx, id, 0, 1)[1] == 'w' .. parent
  if not c.fl or c.nd ~= item.node or not mine then return nil, reply.err('idempotency_conflict', id, item.node) end
  return true
end

-- upstreams looks at where the edges of an item come from: here, from members of the same call, or from those that are there, which are
-- asked for once. It returns nil, or an error reply.
local function upstreams(ctx, h, argv, item, here, there)
  local ask = {}
  for at = item.first, item.first + 2 * item.n - 1, 2 do
    if not here[argv[at]] and not there[argv[at]] then ask[#ask + 1] = argv[at] end
  end
  for first = 1, #ask, 500 do
    local last = math.min(first + 499, #ask)
    local scores = redis.call('ZMSCORE', keys.members(ctx.r, h.id), unpack(ask, first, last))
    for n = first, last do
      if not scores[n - first + 1] then return reply.err('execution_not_in_flow', ask[n], item.node) end
      there[ask[n]] = true
    end
  end
  return nil
end

-- judge decides about all items: those that are new are marked. It returns how many are new, or nil and an error reply.
-- A parent is whom the new members are children of: each has an edge to it.
function member.judge(ctx, h, argv, items, parent)
  local new, here, there, total, ids = 0, {}, {}, 0, {}
  for n = 1, #items do ids[n] = argv[items[n].at] end
  if #ids > 0 then create.look(ctx, ids) end
  for n = 1, #items do
    local item = items[n]
    local id = argv[item.at]
    local t = create.template(ctx, argv, item.at)
    local refusal = t.refusal or create.refuse(argv, item.at, item.after)
    if not refusal and here[id] then refusal = '-invalid_input the same member twice' end
    local answer = not refusal and create.known(ctx, argv, item.at)
    if refusal then
      local code, detail = split(refusal)
      return nil, reply.err(code, detail, item.node)
    end
    if answer then
      local ok, bad = known(ctx, h, argv, item, answer, parent)
      if not ok then return nil, bad end
    else
      local closed = lane.refusal(ctx, argv[item.at + 1], argv[item.at + 2])
      if closed then
        local code, detail = split('-' .. closed)
        return nil, reply.err(code, detail, item.node)
      end
      if argv[item.at + 1] ~= h.ns then return nil, reply.err('namespace_mismatch', h.ns, item.node) end
      if not create.room(ctx, t) then return nil, reply.err('too_many_routes', '1024', item.node) end
      local bad = upstreams(ctx, h, argv, item, here, there)
      if bad then return nil, bad end
      item.template, new, total = t, new + 1, total + item.n + (parent and 1 or 0)
    end
    here[id] = true
  end
  if graph.count(h, 'nn') + new > 10000 then return nil, reply.err('flow_too_large', 'members: at most 10000') end
  if graph.count(h, 'ne') + total > 50000 then return nil, reply.err('flow_too_large', 'edges: at most 50000') end
  return new
end

-- calm tells whether no member of a flow has ended yet, so that no edge has an outcome.
local function calm(h)
  for _, mark in pairs(graph.outcomes) do
    if graph.count(h, 'm' .. mark) > 0 then return false end
  end
  return true
end

-- foresee reads at once the records of those that new members depend on.
local function foresee(ctx, argv, items)
  local ups = {}
  for n = 1, #items do
    local item = items[n]
    for at = item.first, item.template and item.first + 2 * item.n - 1 or 0, 2 do ups[#ups + 1] = argv[at] end
  end
  if #ups > 0 then record.load(ctx, ups) end
end

-- resolve gives the edges of a new member the outcomes that are known already; g is its group. out are the edges that leave
-- others, and ends those that ended without success.
local function resolve(ctx, argv, item, g, new)
  local id, incoming, known, out, size = argv[item.at], {}, not new.calm, new.out, 0
  local edge = 'd' .. id
  for at = item.first, item.first + 2 * item.n - 1, 2 do
    local from, record = argv[at], '.,,'
    if known then
      local c = core.read(ctx, from)
      local mark = c.s and graph.outcomes[c.s]
      if mark then
        record = mark .. ',' .. core.attempt(c) .. ','
        group.count(g, mark, 1)
        if mark ~= 's' then new.ends[from] = true end
      end
    end
    incoming[size + 1], incoming[size + 2], size = from, record .. argv[at + 1], size + 2
    out[from] = (out[from] or '') .. edge
  end
  links.add(ctx, id, g, incoming)
end

-- write adds one new member. It waits until the flow is released, and then until its group is satisfied. new collects what is
-- written once for all.
local function write(ctx, h, argv, item, parent, new)
  local id, t, fields = argv[item.at], item.template, {}
  local g = { policy = item.policy, k = item.k, after = item.rest, n = item.n, s = 0, f = 0, x = 0, state = 'p' }
  fields.fl, fields.nd = h.id, item.node
  if item.named then fields.ip = '1' end
  if item.n > 0 then
    resolve(ctx, argv, item, g, new)
    group.decide(g)
    fields.g = reply.int(item.n)
  else
    links.add(ctx, id)
  end
  if parent then
    new.out[id] = 'w' .. parent
    new.children[#new.children + 1], new.children[#new.children + 2] = id, '.,,' .. item.node
  end
  local may_run = item.n == 0 or g.state == 's'
  local blocked = h.st ~= 'F1' or not may_run
  local code = blocked and 'R3f' or t.state
  if blocked then
    fields.s = code
    if t.delay and string.byte(argv[item.at + 6], 1) == 43 then fields.dd = string.sub(argv[item.at + 6], 2) end
  end
  create.write(ctx, argv, item.at, t, { fields = fields, blocked = blocked })
  new.members[#new.members + 1], new.members[#new.members + 2] = reply.int(graph.count(h, 'nn')), id
  graph.add(h, 'nn', 1)
  graph.add(h, 'ne', item.n + (parent and 1 or 0))
  graph.moved(ctx, { fl = h.id }, id, code)
  if blocked and may_run then new.roots[#new.roots + 1] = id end
  if item.n == 0 or g.state == 'p' then return end
  if g.after == 'cancel' then graph.push(ctx, 's', id, h.id, '', g.state) end -- decided before it came
  if g.state == 'i' then graph.push(ctx, 'k', id, h.id) end
end

-- write adds all new members.
function member.write(ctx, h, argv, items, parent)
  local new = { out = {}, ends = {}, members = {}, children = {}, roots = {}, calm = calm(h) }
  if not new.calm then foresee(ctx, argv, items) end
  for n = 1, #items do
    if items[n].template then write(ctx, h, argv, items[n], parent, new) end
  end
  redis.call('ZADD', keys.members(ctx.r, h.id), unpack(new.members))
  if #new.roots > 0 then redis.call('RPUSH', keys.roots(ctx.r, h.id), unpack(new.roots)) end
  if parent then redis.call('HSET', keys.children(ctx.r, parent), unpack(new.children)) end
  local ups = {}
  for from in pairs(new.out) do ups[#ups + 1] = from end
  links.load(ctx, ups)
  for from, more in pairs(new.out) do
    local first = links.lead(ctx, from, more)
    if first and new.ends[from] then graph.add(h, 'lv', -1) end -- it was an end of the flow until now
  end
  graph.add(h, 'rv', 1)
  graph.set(h, 'mt', ctx.t)
end
