-- share: the namespaces of a lane share what is handed out by weight, however much of it waits for each. Each has a
-- count of what it was given, a claim adding 1,000,000 divided by its weight; who has least comes next. Who had nothing to do does not
-- save up: it goes on where the lane is. One hash: "<namespace>\31<lane>" -> "count weight", and "<lane>" -> where the lane is, the
-- largest count at which one of its claims began. Nothing of this is read as long as a partition has work of one namespace (the root's
-- field spaces), and nothing written while none of a lane competes.
local share = {}

local unit, high, whole, most = 1000000, 4503599627370496, 9007199254740991, 8192

-- added takes notice of a new route: the root's field space is the first namespace there ever was, spaces is set when there is, or was,
-- another.
function share.added(ctx, row)
  local h, namespace = redis.call('HMGET', ctx.r, 'space', 'spaces'), string.match(row, '^[^\31]*')
  if not h[1] then
    redis.call('HSET', ctx.r, 'space', namespace)
  elseif not h[2] and h[1] ~= namespace then
    redis.call('HSET', ctx.r, 'spaces', '1')
    ctx.spaces = '1'
  end
end

-- removed forgets the count of a namespace whose weight nobody set: if it comes again it goes on where the lane is.
function share.removed(ctx, row)
  local name = string.match(row, '^[^\31]*\31[^\31]*')
  local text = redis.call('HGET', keys.shares(ctx.r), name)
  if text and not string.find(text, ' ', 1, true) then redis.call('HDEL', keys.shares(ctx.r), name) end
end

-- sweep forgets what has neither a route nor a weight, and returns how many weights are set; with least only if they are fewer.
function share.sweep(ctx, least)
  local rows, used, weights, gone = redis.call('HVALS', keys.routes(ctx.r)), {}, 0, {}
  for i = 1, #rows do
    local name, lane_name = string.match(rows[i], '^([^\31]*\31([^\31]*))')
    if name then used[name], used[lane_name] = true, true end
  end
  local all = redis.call('HGETALL', keys.shares(ctx.r))
  for i = 1, #all, 2 do
    if string.find(all[i + 1], ' ', 1, true) then
      weights = weights + 1
    elseif not used[all[i]] then
      gone[#gone + 1] = all[i]
    end
  end
  if least and weights >= least then return weights end
  for first = 1, #gone, 500 do
    redis.call('HDEL', keys.shares(ctx.r), unpack(gone, first, math.min(first + 499, #gone)))
  end
  return weights
end

-- room keeps the hash bounded, and tells whether another weight may be set: at most 4,096 are.
function share.room(ctx)
  return redis.call('HLEN', keys.shares(ctx.r)) < 4096 or share.sweep(ctx, 4096) < 4096
end

-- sorted reads the rows of routes and sorts them by namespace: a list, each with its routes, and the namespace and lane of each route.
local function sorted(ctx, ready)
  local spaces, by, group = {}, {}, {}
  for first = 1, #ready, 500 do
    local rows = redis.call('HMGET', keys.routes(ctx.r), unpack(ready, first, math.min(first + 499, #ready)))
    for i = 1, #rows do
      local route_id = ready[first + i - 1]
      local name, namespace = string.match(rows[i] or '', '^(([^\31]*)\31[^\31]*)')
      namespace = namespace or ''
      group[route_id] = name or ''
      local s = by[namespace]
      if not s then
        s = { slots = 0 }
        by[namespace], spaces[#spaces + 1] = s, s
      end
      s[#s + 1] = route_id
    end
  end
  return spaces, group
end

-- allot gives the namespaces slots in turn, one for each route, until 64 are given.
local function allot(list)
  local left, given = 64, true
  while given and left > 0 do
    given = false
    for i = 1, #list do
      local s = list[i]
      if left > 0 and s.slots < #s then
        s.slots = s.slots + 1
        left, given = left - 1, true
      end
    end
  end
end

-- compete sorts the routes that were chosen by namespace and lane, with their counts and weights, unless no lane has several namespaces.
local function compete(ctx, turn, names)
  local all, by, lanes, fields = {}, {}, {}, {}
  for i = 1, #turn.routes do
    local name = names[turn.routes[i]]
    local g = by[name]
    if not g then
      local lane_name = string.match(name, '\31(.*)$') or ''
      local l = lanes[lane_name]
      if not l then
        l = { name = lane_name, groups = {} }
        lanes[lane_name], lanes[#lanes + 1] = l, l
      end
      g = { name = name, lane = l, at = 1, taken = 0, heads = {} }
      by[name], all[#all + 1], l.groups[#l.groups + 1] = g, g, g
    end
    turn.group[turn.routes[i]] = g
  end
  if #all == #lanes then return end
  turn.lanes = lanes
  for i = 1, #lanes do fields[i] = lanes[i].name end
  for i = 1, #all do fields[#fields + 1] = all[i].name end
  local v = redis.call('HMGET', keys.shares(ctx.r), unpack(fields))
  for i = 1, #lanes do
    lanes[i].known = v[i]
    lanes[i].count = math.min(args.int(v[i], 0, whole) or 0, high + unit)
  end
  for i = 1, #all do
    local g = all[i]
    local count, weight = string.match(v[#lanes + i] or '', '^(%d+) ?(%d*)$')
    g.weight = args.int(weight, 1, 1000)
    g.step = math.floor(unit / (g.weight or 1))
    -- counts of a lane that was forgotten mean nothing
    g.count = g.lane.known and math.min(math.max(args.int(count, 0, whole) or 0, g.lane.count), g.lane.count + 1024 * unit) or 0
  end
end

-- parts says how many heads are read of each route: half of 256 for all namespaces alike, half by weight.
local function parts(turn, list, max)
  local sum, at = 0, 0
  for i = 1, #list do
    list[i].weight = 1
    for k = 1, list[i].slots do list[i].weight = math.max(list[i].weight, turn.group[turn.routes[at + k]].weight or 1) end
    sum, at = sum + list[i].weight, at + list[i].slots
  end
  for i = 1, #list do
    local s = list[i]
    local each = math.max(1, math.min(max + 4, math.floor((128 / #list + 128 * s.weight / sum) / s.slots)))
    for _ = 1, s.slots do turn.each[#turn.each + 1] = each end
  end
end

-- begin chooses at which of the ready routes a claim looks, at most 64, and how many heads of each it reads, about 256 in all: every
-- namespace has its part of both, however many routes it has. Who has more routes, or is one of more than 64, is looked at in turn, which
-- rotation counts. nil when all routes are of one namespace; without lanes none of them competes with another.
function share.begin(ctx, ready, rotation, max)
  local spaces, names = sorted(ctx, ready)
  if #spaces < 2 then return nil end
  local list, n = {}, math.min(#spaces, 64)
  rotation = rotation % 16777216
  local from = rotation % #spaces * n
  for i = 1, n do list[i] = spaces[(from + i - 1) % #spaces + 1] end
  allot(list)
  local turn = { routes = {}, each = {}, group = {}, seen = {} }
  local again = math.floor(rotation * n / #spaces) -- how often each namespace has been looked at
  for i = 1, n do
    local s = list[i]
    for k = 1, s.slots do turn.routes[#turn.routes + 1] = s[(again % #s * s.slots + k - 1) % #s + 1] end
  end
  compete(ctx, turn, names)
  parts(turn, list, max)
  return turn
end

-- add takes up heads, which come best first.
function share.add(turn, found)
  for i = 1, #found do
    local heads = turn.group[found[i].route].heads
    heads[#heads + 1] = found[i]
  end
end

-- scan looks for the best head of a lane, and for the namespace that comes next.
local function scan(l)
  local pick, first, least = nil, nil, nil
  for n = 1, #l.groups do
    local g = l.groups[n]
    local head = g.heads[g.at]
    if head then
      local score = head.score
      if not least or score < least then least = score end
      if not pick or g.count < pick.count or g.count == pick.count and score < first then pick, first = g, score end
    end
  end
  l.pick, l.least, l.scanned = pick, least, true
end

-- following returns the head that comes next: of the lane with the best head, of the namespace that had least; nil when there is none.
function share.following(turn)
  local l = nil
  for i = 1, #turn.lanes do
    local other = turn.lanes[i]
    if not other.scanned then scan(other) end
    if other.pick and (not l or other.least < l.least) then l = other end
  end
  if not l then return nil end
  local g = l.pick
  g.at, l.scanned = g.at + 1, false
  local h = g.heads[g.at - 1]
  h.group = g
  return h
end

-- take counts a head that is handed out. What was passed over costs nothing.
function share.take(h)
  local g = h.group
  g.lane.count = math.max(g.lane.count, g.count)
  g.count, g.taken, g.lane.taken = g.count + g.step, g.taken + 1, true
end

-- hold keeps a lane from passing a namespace of which more waits than was read, so that it gets what it missed: at most 256 claims.
local function hold(ctx, turn)
  for i = 1, #turn.routes do
    local route_id, g = turn.routes[i], turn.group[turn.routes[i]]
    if g.lane.taken and not g.heads[g.at] and g.count < g.lane.count and turn.seen[i] == turn.each[i] and
        redis.call('ZCARD', keys.queue(ctx.r, route_id)) > turn.seen[i] then
      g.lane.count = math.max(g.count, g.lane.count - 256 * g.step)
    end
  end
end

-- lower takes from all counts of a lane what is common to them, long before they leave the whole numbers.
local function lower(ctx, l)
  local key, sets = keys.shares(ctx.r), { l.name, '0' }
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local count, weight = string.match(all[i + 1], '^(%d+)(.*)$')
    if string.match(all[i], '\31(.*)$') == l.name and count then
      sets[#sets + 1] = all[i]
      sets[#sets + 1] = reply.int(math.max(0, (args.int(count, 0, whole) or 0) - l.count)) .. weight
    end
  end
  for first = 1, #sets, 500 do redis.call('HSET', key, unpack(sets, first, math.min(first + 499, #sets))) end
end

-- charge books what was handed out.
function share.charge(ctx, turn)
  hold(ctx, turn)
  local sets, new, far = {}, false, nil
  for i = 1, #turn.lanes do
    local l = turn.lanes[i]
    if l.taken then
      new = new or not l.known
      if l.count > high then far = l end
      sets[#sets + 1] = l.name
      sets[#sets + 1] = reply.int(l.count)
      for n = 1, #l.groups do
        local g = l.groups[n]
        if g.taken > 0 then
          sets[#sets + 1] = g.name
          sets[#sets + 1] = reply.int(g.count) .. (g.weight and ' ' .. reply.int(g.weight) or '')
        end
      end
    end
  end
  if #sets == 0 then return end
  redis.call('HSET', keys.shares(ctx.r), unpack(sets))
  if far then lower(ctx, far) end
  if new and redis.call('HLEN', keys.shares(ctx.r)) > most then share.sweep(ctx) end
end
