-- share: the namespaces of a lane share what is handed out by weight, however much of it waits for each. Each has a
-- count of what it was given, a claim adding 1,000,000 divided by its weight; who has least comes next. Who had
-- nothing to do does not save up: it goes on where the lane is. The hash shares has "<namespace>\31<lane>" -> count,
-- and "<lane>" -> where the lane is: at the largest count at which one of its claims began, or a claim for each of
-- those who wait further, so that these have their turn however many others begin to wait; the hash weights has the
-- weights that were set. Rings (lib/ready.lua) have the namespaces with work in the order of their counts, by class:
-- a claim looks at the first of each ring alone. A namespace that was given something in another class has a place
-- there that is too good, until a claim meets it and puts it right. Nothing of all this is read as long as a
-- partition has work of one namespace, and nothing written while none of a lane competes.
local share = {}

local unit, high, whole, most = 1000000, 4503599627370496, 9007199254740991, 1024

local function number(text) return math.min(args.int(text, 0, whole) or 0, high + unit) end

-- read returns the first namespaces of a ring that a subscription may have, at most n, with their places, and whether
-- that is all.
local function read(ring, spaces, n)
  local found = {}
  if not spaces then
    local list = redis.call('ZRANGE', ring, '0', reply.int(n - 1), 'WITHSCORES')
    for i = 1, #list, 2 do found[#found + 1] = { name = list[i], place = args.score(list[i + 1]) } end
    return found, #found < n
  end
  local scores = redis.call('ZMSCORE', ring, unpack(spaces))
  for i = 1, #spaces do
    if scores[i] then found[#found + 1] = { name = spaces[i], place = args.score(scores[i]) } end
  end
  if #found <= n then return found, true end
  table.sort(found, function(a, b) return a.place < b.place or a.place == b.place and a.name < b.name end)
  for i = #found, n + 1, -1 do found[i] = nil end
  return found, false
end

-- alike orders rings so that each lane comes once before any comes again: counts of different lanes cannot be
-- compared. It returns how many lanes there are.
local function alike(ctx, rings, place)
  local seen, rank, lanes = {}, {}, 0
  route.load(ctx, rings)
  for i = 1, #rings do
    local name = route.lane(ctx, rings[i])
    if not seen[name] then seen[name], lanes = 0, lanes + 1 end
    seen[name] = seen[name] + 1
    rank[rings[i]] = seen[name]
  end
  table.sort(rings, function(a, b)
    if rank[a] ~= rank[b] then return rank[a] < rank[b] end
    return place[a][2] < place[b][2]
  end)
  return lanes
end

-- foremost takes n of too many rings, of each lane as many: those in which somebody has been given least, and of
-- equal ones others with each rotation. Who serves some namespaces only looks at other rings with each rotation. It
-- returns how many lanes the rings are of.
local function foremost(ctx, q, rings, n, gated, spaces)
  local turn, out, place = q.rotation % 16777216 * n, {}, {}
  for i = 1, #rings do
    out[i] = rings[(turn + i - 1) % #rings + 1]
    place[out[i]] = { 0, i }
  end
  if not spaces then
    for i = 1, #out do
      local head = redis.call('ZRANGE', (gated and keys.gring or keys.ring)(ctx.r, out[i]), '0', '0', 'WITHSCORES')
      place[out[i]][1] = head[2] and args.score(head[2]) or 0
    end
    table.sort(out, function(a, b)
      local x, y = place[a], place[b]
      if x[1] ~= y[1] then return x[1] < y[1] end
      return x[2] < y[2]
    end)
  end
  local lanes = ctx.mixed and alike(ctx, out, place) or 1
  for i = #out, n + 1, -1 do out[i] = nil end
  return out, lanes
end

-- chosen lists the namespaces that a claim looks at, by class, at most 64 classes, and whether those are all that
-- have work, and about how many others have some; the fourth result is the rotation of lanes. false when the
-- subscription is not known any more.
local function chosen(ctx, q, members, gated)
  local spaces, rings, classes, list, all, weight = ready.spaces(ctx, q.subscription), {}, nil, {}, true, 0
  local rotation, lanes = q.rotation, 1
  if spaces == false then return false end
  for i = 1, #members do
    local class, plain = ready.class(members[i])
    if not plain then rings[#rings + 1] = class end -- that has the classes' own routes, too
  end
  local n = math.min(#rings, 64, spaces and math.max(1, math.floor(1024 / #spaces)) or 64)
  if #rings > n then classes, lanes = foremost(ctx, q, rings, n, gated, spaces) else classes = rings end
  -- Not all lanes are looked at: whose turn it is moves on when all were, else one could be looked at only when it is
  -- not its turn.
  if lanes > n then rotation = math.floor(rotation / math.floor((lanes + n - 1) / n)) end
  route.load(ctx, classes)
  for i = 1, n do
    local class = classes[i]
    local ring = (gated and keys.gring or keys.ring)(ctx.r, class)
    local own, lane_name, rest = route.split(route.read(ctx, class))
    if own then
      local found, complete = read(ring, spaces, math.max(2, math.floor((math.min(64, q.max + 4) + n - 1) / n)))
      all = all and complete
      weight = weight + (complete and 0 or redis.call('ZCARD', ring) - #found)
      for k = 1, #found do
        list[#list + 1] = { class = class, namespace = found[k].name, lane = lane_name, ring = ring,
          place = found[k].place, rest = rest }
      end
    end
  end
  return list, all and n == #rings, weight, rotation
end

-- find finds the routes of what was chosen: the one without gates, or the next of those with gates.
local function find(ctx, list, gated)
  local rows, asked = {}, {}
  for i = 1, #list do
    local x = list[i]
    if gated then
      x.turns = keys.turns(ctx.r, x.class, x.namespace)
      x.routes = redis.call('ZRANGE', x.turns, '0', reply.int(math.max(1, math.floor(64 / #list)) - 1))
    else
      rows[#rows + 1] = route.row(x.namespace, x.lane, x.rest, '')
      asked[#rows] = x
    end
  end
  local ids = #rows > 0 and redis.call('HMGET', keys.route_ids(ctx.r), unpack(rows)) or {}
  for i = 1, #rows do
    asked[i].routes = { ids[i] or nil }
    if ids[i] then route.know(ctx, ids[i], rows[i]) end
  end
  for i = 1, #list do
    local x = list[i]
    -- it is nowhere
    if #x.routes == 0 then ready.leave((gated and keys.gready or keys.ready)(ctx.r), x.ring, x.class, x.namespace) end
  end
end

-- compete sorts what was chosen by namespace and lane, with counts and weights, and says how many heads are read of
-- each route: about twice as many as are wanted in all, half of them for all lanes alike, half by weight, and
-- likewise for the namespaces of a lane.
local function compete(ctx, turn, max, shares)
  local all, by, lanes, fields = {}, {}, {}, {}
  for i = 1, #turn.chosen do
    local x = turn.chosen[i]
    local name = lane.name(x.namespace, x.lane)
    local g = by[name]
    if not g then
      local l = lanes[x.lane]
      if not l then
        l = { name = x.lane, groups = {}, weight = shares[x.lane] or 1, sum = 0 }
        lanes[x.lane], lanes[#lanes + 1] = l, l
      end
      g = { name = name, lane = l, at = 1, taken = 0, heads = {}, n = 0, place = x.place, count = 0 }
      by[name], all[#all + 1], l.groups[#l.groups + 1] = g, g, g
    end
    x.group, g.n, g.place = g, g.n + #x.routes, math.min(g.place, x.place)
    for k = 1, #x.routes do turn.group[x.routes[k]] = g end
  end
  local sum, names = 0, {}
  for i = 1, #all do names[i] = all[i].name end
  local weights = #all > 1 and redis.call('HMGET', keys.weights(ctx.r), unpack(names)) or {}
  for i = 1, #all do
    all[i].weight = args.int(weights[i] or nil, 1, 1000) or 1
    sum = sum + all[i].weight
    all[i].lane.sum = all[i].lane.sum + all[i].weight
  end
  for i = 1, #lanes do lanes[i].some = math.max(max, 64) * turns.part(lanes, lanes[i]) end
  turn.weight = sum + turn.others
  for i = 1, #turn.chosen do
    local x = turn.chosen[i]
    local g, l = x.group, x.group.lane
    local each = math.max(1, math.min(max + 4, math.floor((l.some / #l.groups + l.some * g.weight / l.sum) / g.n) + 1))
    for k = 1, #x.routes do turn.routes[#turn.routes + 1], turn.each[#turn.each + 1] = x.routes[k], each end
  end
  turn.counts = #all > #lanes or not turn.all
  if turn.counts or #lanes > 1 then turn.lanes = lanes end
  if not turn.counts then return end
  for i = 1, #lanes do fields[i] = lanes[i].name end
  for i = 1, #all do fields[#fields + 1] = all[i].name end
  local v = redis.call('HMGET', keys.shares(ctx.r), unpack(fields))
  for i = 1, #lanes do
    lanes[i].known, lanes[i].count = v[i], number(v[i])
    lanes[i].began = lanes[i].count
  end
  for i = 1, #all do
    local g = all[i]
    g.step, g.known = math.floor(unit / g.weight), v[#lanes + i]
    -- a count of a lane that was forgotten means nothing, and none is far from where its lane is
    local count = g.lane.known and args.int(g.known, 0, whole) or 0
    g.count = math.min(math.max(count, g.place, g.lane.count - 1024 * unit), g.lane.count + 1024 * unit)
  end
end

-- begin chooses at which routes a claim looks, and how many heads of each it reads. Without lanes there is one, and
-- with no counts none of a lane competes with another. false when the subscription is not known any more.
function share.begin(ctx, q, members, gated)
  local list, all, others, rotation = chosen(ctx, q, members, gated)
  if not list then return false end
  find(ctx, list, gated)
  local turn = { chosen = list, all = all, others = others, rotation = rotation, routes = {}, each = {}, group = {},
    seen = {} }
  compete(ctx, turn, q.max, ready.weights(ctx, q.subscription))
  return turn
end

-- add takes up heads, which come best first, and returns the turns of the lanes that have some.
function share.add(q, turn, found)
  local some = {}
  for i = 1, #found do
    local g = turn.group[found[i].route]
    g.heads[#g.heads + 1] = found[i]
    if not g.lane.waits then
      g.lane.waits = true
      some[#some + 1] = g.lane
    end
  end
  return turns.begin(some, turn.rotation, q.max)
end

-- scan looks for the namespace of a lane that comes next.
local function scan(l)
  local pick, first = nil, nil
  for n = 1, #l.groups do
    local g = l.groups[n]
    local head = g.heads[g.at]
    if head then
      local score = head.score
      if not pick or g.count < pick.count or g.count == pick.count and score < first then pick, first = g, score end
    end
  end
  l.pick, l.scanned = pick, true
end

-- head returns the head of a lane that comes next: of the namespace that had least; nil when there is none.
function share.head(_, l)
  if not l.scanned then scan(l) end
  local g = l.pick
  if not g then return nil end
  g.at, l.scanned = g.at + 1, false
  return g.heads[g.at - 1]
end

-- take counts a head that is handed out. What was passed over costs nothing.
function share.take(turn, h)
  local g = turn.group[h.route]
  g.taken = g.taken + 1
  if not turn.counts then return end
  local l = g.lane
  l.count, l.last = math.max(l.count, g.count), math.max(l.last or 0, g.count + g.step)
  g.count, l.taken = g.count + g.step, (l.taken or 0) + 1
end

-- hold keeps a lane from passing a namespace of which more waits than was read, so that it gets what it missed: at
-- most 256 claims.
local function hold(ctx, turn)
  for i = 1, #turn.routes do
    local route_id, g = turn.routes[i], turn.group[turn.routes[i]]
    if g.lane.taken and not g.heads[g.at] and g.count < g.lane.count and turn.seen[i] == turn.each[i] and
        redis.call('ZCARD', keys.queue(ctx.r, route_id)) > turn.seen[i] then
      g.lane.count = math.max(g.count, g.lane.count - 256 * g.step)
    end
  end
end

-- lower takes from all counts and places of a lane what is common to them, long before they leave the whole numbers:
-- at most once in 10^9 claims of a lane.
local function lower(ctx, l)
  local key, base = keys.shares(ctx.r), l.count - 2048 * unit -- no count is further behind
  local sets = { l.name, reply.int(l.count - base) }
  local function less(text) return reply.int(math.max(0, (args.score(text) or 0) - base)) end
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.match(all[i], '\31(.*)$') == l.name then sets[#sets + 1], sets[#sets + 2] = all[i], less(all[i + 1]) end
  end
  for first = 1, #sets, 500 do redis.call('HSET', key, unpack(sets, first, math.min(first + 499, #sets))) end
  local classes = redis.call('ZRANGE', keys.route_log(ctx.r), '0', '-1')
  route.load(ctx, classes)
  for i = 1, #classes do
    local _, lane_name = route.split(route.read(ctx, classes[i]))
    local rings = lane_name == l.name and { keys.ring(ctx.r, classes[i]), keys.gring(ctx.r, classes[i]) } or {}
    for n = 1, #rings do
      local ring = rings[n]
      local list = redis.call('ZRANGE', ring, '0', '-1', 'WITHSCORES')
      for k = 1, #list, 2 do redis.call('ZADD', ring, less(list[k + 1]), list[k]) end
    end
  end
end

-- sweep forgets counts that say nothing, because their lane has passed them, whenever some were added and there are
-- many.
local function sweep(ctx, added)
  local key = keys.shares(ctx.r)
  if added == 0 or redis.call('HLEN', key) <= most then return end
  local list, lanes, gone = redis.call('HRANDFIELD', key, reply.int(2 * added + 8), 'WITHVALUES'), {}, {}
  for i = 1, #list, 2 do
    local lane_name = string.match(list[i], '\31(.*)$')
    if lane_name then
      lanes[lane_name] = lanes[lane_name] or number(redis.call('HGET', key, lane_name))
      if number(list[i + 1]) <= lanes[lane_name] then gone[#gone + 1] = list[i] end
    end
  end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
end

-- placed puts the namespaces where their counts say, and routes with gates that were looked at behind the others.
local function placed(ctx, turn)
  local rings = {}
  for i = 1, #turn.chosen do
    local x = turn.chosen[i]
    if x.turns and x.group.taken > 0 then
      for k = 1, #x.routes do redis.call('ZADD', x.turns, 'XX', ctx.t, x.routes[k]) end
    end
    if turn.counts and x.group.count ~= x.place then
      local moves = rings[x.ring] or { 'XX' }
      rings[x.ring] = moves
      moves[#moves + 1], moves[#moves + 2] = reply.int(x.group.count), x.namespace
    end
  end
  for ring, moves in pairs(rings) do redis.call('ZADD', ring, unpack(moves)) end
end

-- charge books what was handed out.
function share.charge(ctx, turn)
  if not turn.counts then return placed(ctx, turn) end
  hold(ctx, turn)
  local sets, added, far = {}, 0, nil
  for i = 1, #turn.lanes do
    local l = turn.lanes[i]
    if l.taken then
      l.count = math.max(l.count, math.min(l.began + math.floor(l.taken * unit / turn.weight), l.last))
      if l.count > high then far = l end
      sets[#sets + 1], sets[#sets + 2] = l.name, reply.int(l.count)
      for n = 1, #l.groups do
        local g = l.groups[n]
        if g.taken > 0 then
          if not g.known then added = added + 1 end
          sets[#sets + 1], sets[#sets + 2] = g.name, reply.int(g.count)
        end
      end
    end
  end
  placed(ctx, turn)
  if #sets == 0 then return end
  redis.call('HSET', keys.shares(ctx.r), unpack(sets))
  sweep(ctx, added)
  if far then lower(ctx, far) end
end
