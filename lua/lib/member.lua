-- member: how executions join a flow (ADR 19). A member enters together with every edge that leads into it, from
-- members that are there before it; so no graph has a cycle, and no group ever waits for an edge to be declared. Of
-- each item is read, after what create wants, node upstreams k satisfied edges, and of each edge upstream input.
-- Everything is judged first.
local member = {}

local policies = { all = true, any = true, quorum = true, ended = true, failed = true }

-- edges reads those of an item, n from position i on, into ups and inputs. It returns what is wrong, as code and
-- detail.
local function edges(argv, i, n, item)
  local ups, inputs, seen, named = {}, {}, {}, {}
  item.ups, item.inputs = ups, inputs
  if n > 0 and not argv[i + 2 * n - 1] then return 'invalid_input', 'arguments: an edge is cut short' end
  for e = 1, n do
    local from, input = argv[i], argv[i + 1]
    if #from ~= 36 then return 'invalid_input', 'upstream id' end
    if from == item.id then return 'self_referencing_edge', '' end
    if seen[from] then return 'dependency_already_exists', from end
    seen[from] = true
    if input ~= '' then
      if #input > 64 or string.find(input, '%c') then
        return 'invalid_input', 'input: at most 64 bytes without control characters'
      end
      if named[input] then return 'invalid_input', 'input: ' .. input .. ' is there twice' end
      named[input], item.named = true, true
    end
    ups[e], inputs[e], i = from, input, i + 2
  end
  return nil
end

-- shape reads from position i what makes an item a member. It returns the position behind, or nil, code and detail.
local function shape(argv, i, item)
  local k, n = argv[i + 2], args.int(argv[i + 4], 0, 9007199254740991)
  item.node, item.policy, item.after = argv[i], argv[i + 1], argv[i + 3]
  if not argv[i + 4] then return nil, 'invalid_input', 'arguments: an item is cut short' end
  if #item.node < 1 or #item.node > 64 or string.find(item.node, '[%c]') then
    return nil, 'invalid_input', 'node: 1 to 64 bytes without control characters'
  end
  if not n then return nil, 'invalid_input', 'edges: 0..1000' end
  if n > 1000 then return nil, 'fan_in_too_large', '1000' end
  if not policies[item.policy] then return nil, 'invalid_input', 'policy: all, any, quorum, ended or failed' end
  if item.after ~= 'run' and item.after ~= 'cancel' or (group.watches(item) and item.after == 'cancel') then
    return nil, 'invalid_input', 'satisfied: run or cancel, ended and failed take run alone'
  end
  local quorum = item.policy == 'quorum'
  item.k = args.int(k, quorum and 1 or 0, quorum and n or 0)
  if not item.k then
    return nil, 'invalid_input', quorum and 'k: 1..' .. reply.int(n) or 'k: 0, it belongs to quorum'
  end
  if n == 0 and (item.policy == 'any' or group.watches(item)) then
    return nil, 'invalid_input', 'policy: ' .. item.policy .. ' without an edge'
  end
  local code, detail = edges(argv, i + 5, n, item)
  if code then return nil, code, detail end
  return i + 5 + 2 * n
end

-- split turns a refusal of create, "-code detail", into its parts.
local function split(text)
  local code, detail = string.match(text, '^%-(%S+) ?(.*)$')
  return code, detail
end

-- parse reads items from position i to the end of the arguments. It returns them, or nil and an error reply.
function member.parse(argv, i)
  local items, bad = create.parse(argv, i, shape)
  if not items then return nil, bad end
  local room = 1000
  for n = 1, #items do room = room - #items[n].ups - (n > 1 and 8 + #items[n].group.tags / 2 or 0) end
  if room < 0 then
    return nil, reply.err('invalid_input',
      'edges: at most 1000 a call, for each further member eight less, and one for each of its tags')
  end
  return items
end

-- known judges an item whose id is there already; somebody else's is no child of parent, and would never tell it of
-- its end. It returns true, or nil and an error reply.
local function known(ctx, h, item, answer, parent)
  local id = item.id
  if string.sub(answer, 1, 1) == '-' then
    local code, detail = split(answer)
    return nil, reply.err(code, detail, item.node)
  end
  local c = core.read(ctx, id)
  if c.flow and c.flow ~= h.id then return nil, reply.err('already_member_of_different_flow', c.flow, item.node) end
  local mine = not parent or links.dependants(ctx, id, 0, 1)[1] == 'w' .. parent
  if not c.flow or c.node ~= item.node or not mine then return nil, reply.err('idempotency_conflict', id, item.node) end
  return true
end

-- upstreams looks at where the edges of an item come from: here, from members of the same call, or from those that
-- are there, which are asked for once. It returns nil, or an error reply.
local function upstreams(ctx, h, item, here, there)
  local ask, ups = {}, item.ups
  for e = 1, #ups do
    if not here[ups[e]] and not there[ups[e]] then ask[#ask + 1] = ups[e] end
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
function member.judge(ctx, h, items, parent)
  local new, here, there, total = 0, {}, {}, 0
  create.look(ctx, items)
  for n = 1, #items do
    local item = items[n]
    local refusal = create.refuse(ctx, item) or here[item.id] and '-invalid_input the same member twice'
    local answer = not refusal and create.known(ctx, item)
    if answer then
      local ok, bad = known(ctx, h, item, answer, parent)
      if not ok then return nil, bad end
    else
      refusal = refusal or item.group.namespace ~= h.ns and '-namespace_mismatch ' .. h.ns or create.admit(ctx, item)
      if refusal then
        local code, detail = split(refusal)
        return nil, reply.err(code, detail, item.node)
      end
      local bad = upstreams(ctx, h, item, here, there)
      if bad then return nil, bad end
      item.new, new, total = true, new + 1, total + #item.ups + (parent and 1 or 0)
    end
    here[item.id] = true
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
local function foresee(ctx, items)
  local ups = {}
  for n = 1, #items do
    for e = 1, items[n].new and #items[n].ups or 0 do ups[#ups + 1] = items[n].ups[e] end
  end
  if #ups > 0 then record.load(ctx, ups) end
end

-- optional tells whether a new member may be skipped without failing its flow: it is for failures, or behind one that
-- is.
local function optional(ctx, h, item)
  if item.policy == 'failed' then
    if not h.op then graph.set(h, 'op', '1') end
    return true
  end
  if not h.op or item.policy == 'ended' then return false end
  for e = 1, #item.ups do
    local g = links.group(ctx, item.ups[e])
    if g and g.unneeded then return true end
  end
  return false
end

-- resolve gives the edges of a new member the outcomes that are known already; g is its group. out are the edges that
-- leave others, aside how many of them stand aside, and ends those that ended without success.
local function resolve(ctx, item, g, new)
  local id, incoming, known, out, size = item.id, {}, not new.calm, new.out, 0
  local aside = group.aside(g)
  local edge = (aside and 'o' or 'd') .. id
  for e = 1, #item.ups do
    local from, record = item.ups[e], '.,,'
    if known then
      local c = core.read(ctx, from)
      local mark = graph.outcome(c)
      if mark then
        record = mark .. ',' .. core.attempt(c) .. ','
        group.count(g, mark, 1)
        if mark ~= 's' then new.ends[from] = true end -- one that was not needed has only dependants that stand aside
      end
    end
    incoming[size + 1], incoming[size + 2], size = from, record .. item.inputs[e], size + 2
    out[from] = (out[from] or '') .. edge
    if aside then new.aside[from] = (new.aside[from] or 0) + 1 end
  end
  links.add(ctx, id, g, incoming)
end

-- write adds one new member. It waits until the flow is released, and then until its group is satisfied. new collects
-- what is written once for all.
local function write(ctx, h, item, parent, new)
  local id, t, n, fields = item.id, item.group.template, #item.ups, {}
  local g = { policy = item.policy, quorum = item.k, after = item.after, upstreams = n, succeeded = 0, failed = 0,
    skipped = 0, state = 'p', unneeded = optional(ctx, h, item) and 0 or nil }
  fields.flow, fields.node = h.id, item.node
  if item.named then fields.has_inputs = '1' end
  if n > 0 then
    resolve(ctx, item, g, new)
    group.decide(g)
    fields.upstreams = reply.int(n)
  else
    links.add(ctx, id)
  end
  if parent then
    new.out[id] = 'w' .. parent
    new.children[#new.children + 1], new.children[#new.children + 2] = id, '.,,' .. item.node
  end
  local may_run = n == 0 or g.state == 's'
  local blocked = h.st ~= 'F1' or not may_run
  local code = blocked and 'R3f' or t.state
  if blocked then
    fields.state = code
    local delay = item.group.delay
    if t.delay and string.byte(delay, 1) == 43 then fields.start_delay = string.sub(delay, 2) end
  end
  create.write(ctx, item, { fields = fields, blocked = blocked })
  new.members[#new.members + 1], new.members[#new.members + 2] = reply.int(graph.count(h, 'nn')), id
  graph.add(h, 'nn', 1)
  graph.add(h, 'ne', n + (parent and 1 or 0))
  graph.moved(ctx, { flow = h.id }, id, code)
  if blocked and may_run then new.roots[#new.roots + 1] = id end
  if n == 0 or g.state == 'p' then return end
  -- decided before it came
  if g.after == 'cancel' and group.open(g) then graph.push(ctx, 's', id, h.id, '', g.state) end
  if g.state == 'i' then graph.push(ctx, 'k', id, h.id) end
end

-- write adds all new members.
function member.write(ctx, h, items, parent)
  local new = { out = {}, aside = {}, ends = {}, members = {}, children = {}, roots = {}, calm = calm(h) }
  if not new.calm then foresee(ctx, items) end
  for n = 1, #items do
    if items[n].new then write(ctx, h, items[n], parent, new) end
  end
  redis.call('ZADD', keys.members(ctx.r, h.id), unpack(new.members))
  if #new.roots > 0 then redis.call('RPUSH', keys.roots(ctx.r, h.id), unpack(new.roots)) end
  if parent then redis.call('HSET', keys.children(ctx.r, parent), unpack(new.children)) end
  local ups = {}
  for from in pairs(new.out) do ups[#ups + 1] = from end
  links.load(ctx, ups)
  for from, more in pairs(new.out) do
    local first = links.lead(ctx, from, more, new.aside[from] or 0)
    if first and new.ends[from] then graph.add(h, 'lv', -1) end -- it was an end of the flow until now
  end
  graph.add(h, 'rv', 1)
  graph.set(h, 'mt', ctx.t)
end
