-- condition: what a suspension waits for. The text is written by Go: nodes joined by the record separator,
-- children before their parents, the root last; the parts of a node are joined by the unit separator.
--   L waitpoint need name...          signals by name on one waitpoint, each name a slot of its own ('' takes any name)
--   C n kind name waitpoint...        n distinct w waitpoints, s signals or c sources, by name ('' takes any)
--   G need node...                    that many of the nodes
--   M mailbox                         a message of a mailbox
--   K                                 enough of the children that the execution made have ended (lib/wait_children.lua)
--   O                                 an operator only      T    the timeout only: these stand alone
-- Waitpoints are numbered as the suspension lists them. What satisfied a part is a token of that part alone, so
-- two counts never share, and the tree is computed from its leaves.
local condition = {}

local US, RS = '\31', '\30'

-- name accepts '' and 1..128 bytes without control characters that do not begin with two underscores.
function condition.name(text)
  return text and #text <= 128 and not string.find(text, '%c') and string.sub(text, 1, 2) ~= '__'
end

-- of_mailbox is the mailbox of a condition that is a message of one, else nil.
function condition.of_mailbox(text) return string.match(text or '', '^M\31([^\30]*)$') end

-- of_children tells whether children are a part of a condition.
function condition.of_children(text)
  return text == 'K' or string.find(RS .. (text or '') .. RS, RS .. 'K' .. RS, 1, true) ~= nil
end

local shape = {}

function shape.L(n, p, count, nodes)
  n.wp, n.need, n.names = args.int(p[2], 1, count), args.int(p[3], 1, 64), {}
  if not n.wp then return 'waitpoint' end
  if #p < 4 or #p > 67 then return 'names: 1..64' end
  for i = 4, #p do
    if not condition.name(p[i]) then return 'signal name' end
    n.names[i - 3] = p[i]
  end
  if not n.need or n.need > #n.names then return 'minimum exceeds the names' end
  nodes.slots = (nodes.slots or 0) + #n.names
  if nodes.slots > 256 then return 'names in all: at most 256' end
  n.uses[n.wp] = true
end

function shape.C(n, p, count)
  n.need, n.kind, n.name = args.int(p[2], 1, 1000), p[3], p[4]
  if not n.need then return 'count_n: 1..1000' end
  if n.kind ~= 'w' and n.kind ~= 's' and n.kind ~= 'c' then return 'kind of count' end
  if not condition.name(n.name) then return 'signal name' end
  if #p < 5 then return 'count_waitpoints_empty' end
  for i = 5, #p do
    local w = args.int(p[i], 1, count)
    if not w or n.uses[w] then return 'waitpoint' end
    n.uses[w] = true
  end
  if n.kind == 'w' and n.need > #p - 4 then return 'count_exceeds_waitpoint_set' end
end

function shape.G(n, p, _, nodes, taken)
  n.need, n.members = args.int(p[2], 1, 32), {}
  if #p < 3 then return 'allof_empty_members' end
  for i = 3, #p do
    local m = args.int(p[i], 1, #nodes)
    if not m or taken[m] then return 'member' end
    taken[m], n.members[i - 2] = true, m
    n.depth = math.max(n.depth, nodes[m].depth + 1)
    for w in pairs(nodes[m].uses) do n.uses[w] = true end
  end
  if not n.need or n.need > #n.members then return 'minimum exceeds the members' end
  if n.depth > 4 then return 'depth: at most 4' end
end

function shape.M(n, p)
  n.need, n.box = 1, p[2]
  if not mailbox.name(n.box) or #p > 2 then return 'mailbox: 1..96 bytes of printable ASCII' end
end

function shape.K(n, p)
  n.need = 1
  if #p > 1 then return 'node' end
end

-- parse returns the nodes of a condition over count waitpoints, which nobody changes, or nil and what is wrong.
local function parse(text, count)
  if not text or #text < 1 or #text > 16384 then return nil, 'condition: 1..16384 bytes' end
  if text == 'O' or text == 'T' then
    if count > 0 then return nil, 'extra_binding_not_referenced_by_condition' end
    return { { op = text } }
  end
  local lines, nodes, taken = pack.split(text, RS), {}, {}
  if #lines > 32 then return nil, 'nodes: at most 32' end
  for i = 1, #lines do
    local p = pack.split(lines[i], US)
    local n = { op = p[1], depth = 1, uses = {} }
    if not shape[n.op] then return nil, 'node' end
    local bad = shape[n.op](n, p, count, nodes, taken)
    if bad then return nil, bad end
    nodes[i] = n
  end
  for i = 1, #nodes - 1 do
    if not taken[i] then return nil, 'node without parent' end
  end
  for w = 1, count do
    if not nodes[#nodes].uses[w] then return nil, 'extra_binding_not_referenced_by_condition' end
  end
  return nodes
end

local last = {}

-- parse does that, and keeps the last one: calls in a row mostly have the same.
function condition.parse(text, count)
  if text and text == last.text and count == last.count then return last.nodes end
  local nodes, wrong = parse(text, count)
  if nodes then last.text, last.count, last.nodes = text, count, nodes end
  return nodes, wrong
end

-- A state is what was satisfied so far: counts by node, tokens that are new in this call, and key, the hash of those
-- stored before (nil when nothing is).
local function has(state, t)
  if state.tokens[t] == nil then
    state.tokens[t] = state.key and redis.call('HEXISTS', state.key, t) == 1 or false
  end
  return state.tokens[t]
end

-- slot finds the slot of a list that a signal takes: an exact name before '', else in order. Returns its
-- token, false when those it fits are taken, nil when it fits none.
local function slot(state, n, i, name)
  local fits, free = nil, nil
  for s = 1, #n.names do
    if n.names[s] == name or n.names[s] == '' then
      local t = i .. US .. s
      fits = fits or false
      if not has(state, t) then
        if n.names[s] == name then return t end
        free = free or t
      end
    end
  end
  return free or fits
end

-- distinct is the same for a count.
local function distinct(state, n, i, g)
  if n.name ~= '' and n.name ~= g.name then return nil end
  local what = g.waitpoint
  if n.kind == 's' then what = g.id end
  if n.kind == 'c' then what = reply.int(#g.source_type) .. ':' .. g.source_type .. g.source end
  local t = i .. US .. what
  if (state.counts[i] or 0) >= n.need or has(state, t) then return false end
  return t
end

-- finished tells of each node whether it is satisfied.
local function finished(state, nodes)
  local done = {}
  for i = 1, #nodes do
    local n, have = nodes[i], 0
    if n.op == 'G' then
      for m = 1, #n.members do
        if done[n.members[m]] then have = have + 1 end
      end
    else
      have = state.counts[i] or 0
    end
    done[i] = n.need and have >= n.need or false
  end
  return done
end

-- complete tells whether the root is satisfied.
function condition.complete(state, nodes) return finished(state, nodes)[#nodes] end

-- open tells which waitpoints, by their numbers, a condition still wants something of: no part does that is satisfied,
-- or that is in one that is.
function condition.open(state, nodes)
  local done, out = finished(state, nodes), {}
  local function look(i)
    if done[i] then return end
    for w in pairs(not nodes[i].members and nodes[i].uses or {}) do out[w] = true end
    for m = 1, nodes[i].members and #nodes[i].members or 0 do look(nodes[i].members[m]) end
  end
  look(#nodes)
  return out
end

-- take evaluates one signal on waitpoint number w in memory: the effect, the tokens it adds, and whether it is one of
-- those that are wanted.
function condition.take(state, nodes, w, g)
  local fits, added = false, {}
  for i = 1, #nodes do
    local n, t = nodes[i], nil
    if n.op == 'L' and n.wp == w then t = slot(state, n, i, g.name) end
    if n.op == 'C' and n.uses[w] then t = distinct(state, n, i, g) end
    if t ~= nil then fits = true end
    if t then
      state.tokens[t] = true
      state.counts[i] = (state.counts[i] or 0) + 1
      state.changed[i] = true
      added[#added + 1] = t
    end
  end
  if #added == 0 then
    if #nodes == 1 and nodes[1].op == 'L' then return 'no_op', added, fits end
    return fits and 'appended_to_waitpoint_duplicate' or 'signal_ignored_matcher_failed', added, fits
  end
  if condition.complete(state, nodes) then return 'resume_condition_satisfied', added, fits end
  return 'appended_to_waitpoint', added, fits
end

-- wanted are the names of signals on waitpoint number w that count.
function condition.wanted(nodes, w)
  local names, seen = {}, {}
  local function want(name)
    if name ~= '' and not seen[name] then seen[name], names[#names + 1] = true, name end
  end
  for i = 1, #nodes do
    local n = nodes[i]
    if n.op == 'L' and n.wp == w then
      for s = 1, #n.names do want(n.names[s]) end
    end
    if n.op == 'C' and n.uses[w] then want(n.name) end
  end
  return names
end
