-- merge: the heads of several routes in the order of their scores. A few of each route are read at first, and more of
-- the one whose are used up: to read and sort all that might be wanted costs more than the claims themselves.
local merge = {}

-- before is the order of claims: the best score first, and of equal ones the older id.
function merge.before(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return a.id < b.id
end

-- follow makes the next member of a route its head, nil when there is none.
local function follow(ctx, m, l)
  l.at = l.at + 2
  l.id = l.members[l.at]
  if not l.id and l.read < m.each and not l.ended then
    local n = math.min(m.chunk, m.each - l.read)
    l.members = redis.call('ZRANGE', keys.queue(ctx.r, l.route), reply.int(l.read), reply.int(l.read + n - 1),
      'WITHSCORES')
    local seen = #l.members / 2
    l.read, l.at, l.id = l.read + seen, 1, l.members[1]
    if seen < n then
      l.ended = true
      indexes.counted(ctx, l.route, l.read)
    end
  end
  if l.id then l.score = args.score(l.members[l.at + 1]) end
end

-- sink moves the first list to where its head belongs: lists are a heap by their heads.
local function sink(lists, n)
  local top, i, k = lists[1], 1, 2
  while k <= n do
    if k < n and merge.before(lists[k + 1], lists[k]) then k = k + 1 end
    if not merge.before(lists[k], top) then break end
    lists[i] = lists[k]
    i = k
    k = 2 * i
  end
  lists[i] = top
end

-- open begins with count routes of a list, classes' own ones, from position from on and round it; of each it will
-- read at most each members, and want are wanted in all.
function merge.open(ctx, members, from, count, each, want)
  local m = { each = each, chunk = math.min(each, math.floor((want + count - 1) / count) + 1), taken = 0, lists = {} }
  for i = 1, count do
    local l = { route = members[(from + i - 1) % #members + 1], members = {}, at = -1, read = 0 }
    follow(ctx, m, l)
    if l.id then m.lists[#m.lists + 1] = l else ready.drop(ctx, l.route) end
  end
  table.sort(m.lists, merge.before)
  m.n = #m.lists
  return m
end

-- lanes begins with count classes' own routes of a list, from position from on, for each of their lanes: lanes with
-- heads, each with a weight and what it has as m; of all of them about 256 heads are read at most. nil when they are
-- of one lane, false when the subscription is not known any more.
function merge.lanes(ctx, q, members, from, count)
  local classes, lanes, by = {}, {}, {}
  for i = 1, count do classes[i] = members[(from + i - 1) % #members + 1] end
  route.load(ctx, classes)
  for i = 1, count do
    local name = route.lane(ctx, classes[i])
    local l = by[name]
    if not l then
      l = { name = name, classes = {} }
      by[name], lanes[#lanes + 1] = l, l
    end
    l.classes[#l.classes + 1] = classes[i]
  end
  if #lanes < 2 then return nil end
  local weights, some = ready.weights(ctx, q.subscription), {}
  if not weights then return false end
  for i = 1, #lanes do lanes[i].weight = weights[lanes[i].name] or 1 end
  for i = 1, #lanes do
    local l = lanes[i]
    local part, n = turns.part(lanes, l), #l.classes
    local each = math.max(1, math.min(q.max + 4, math.floor(256 * part / n)))
    l.m = merge.open(ctx, l.classes, 0, n, each, math.floor((q.max + 4) * part) + 1)
    if l.m.n > 0 then some[#some + 1] = l end
  end
  return some
end

-- next takes the best head of all, nil when no route has another.
function merge.next(ctx, m)
  if m.n == 0 then return nil end
  local l = m.lists[1]
  local h = { id = l.id, route = l.route }
  follow(ctx, m, l)
  if not l.id then
    m.lists[1] = m.lists[m.n]
    m.n = m.n - 1
  end
  if m.n > 1 then sink(m.lists, m.n) end
  m.taken = m.taken + 1
  return h
end
