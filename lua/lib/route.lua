-- route: where executions wait: what a worker must have to be given them (lane, kind and required capabilities),
-- their namespace, and the gates that they have to ask (lib/gate.lua), mostly none. A row is these five
-- parts joined by the unit separator: namespace, lane, kind, capabilities, gates. Routes that differ in nothing but
-- namespace and gates are of one class. Workers know classes alone: there are at most 1,024 of them (of which one
-- namespace makes 512, or 128 whatever others have made), each partition has a versioned table of them, and claims
-- bring the rows of other routes along. Of routes there may be any number.
-- A class has a number, which counts up. Its own route is that of the first namespace that the partition ever had,
-- without gates: what nearly everybody uses needs nothing but the class. The others are called <class><nine digits>.
-- The table's version is also a time, so that a worker notices when a failover lost a number and another class got
-- it.
local route = { most = 1024, half = 512, share = 128 }

local US = '\31'

-- row joins the parts; validate says whether they may form a new route.
function route.row(namespace, lane, kind, caps, gates)
  return table.concat({ namespace, lane, kind, caps, gates }, US)
end

-- validate returns the name of the first offending part, or nil.
function route.validate(namespace, lane, kind, caps)
  if not args.name(namespace, 64) then return 'namespace' end
  if not args.name(lane, 64) then return 'lane' end
  if not args.name(kind, 64) then return 'kind' end
  local _, commas = string.gsub(caps, ',', '')
  if #caps > 4096 or commas > 255 or string.find(caps, '[%z\1-\32\127]') or string.find(caps, ',,', 1, true) or
      string.find(caps, '^,') or string.find(caps, ',$') then
    return 'capabilities'
  end
  return nil
end

-- class is the class of a route, plain whether it is the class's own.
function route.class(id) return #id > 9 and string.sub(id, 1, -10) or id end

function route.plain(id) return #id <= 9 end

-- others is under what the routes of a class are counted that are not its own.
function route.others(class) return class .. '000000000' end

-- kept tells whether it is the own route of a class that has others: its row is there whether or not it is used.
function route.kept(ctx, id)
  return route.plain(id) and redis.call('HEXISTS', keys.route_use(ctx.r), route.others(id)) == 1
end

-- read returns the row of a route, '' when there is none.
function route.read(ctx, id)
  ctx.cache.rows = ctx.cache.rows or {}
  local row = ctx.cache.rows[id]
  if not row then
    row = redis.call('HGET', keys.routes(ctx.r), id) or ''
    ctx.cache.rows[id] = row
  end
  return row
end

-- know remembers the row of a route.
function route.know(ctx, id, row)
  ctx.cache.rows = ctx.cache.rows or {}
  ctx.cache.rows[id] = row
end

-- load reads the rows of many routes with one command.
function route.load(ctx, ids)
  ctx.cache.rows = ctx.cache.rows or {}
  local asked = {}
  for i = 1, #ids do
    if not ctx.cache.rows[ids[i]] then asked[#asked + 1] = ids[i] end
  end
  for first = 1, #asked, 500 do
    local part = redis.call('HMGET', keys.routes(ctx.r), unpack(asked, first, math.min(first + 499, #asked)))
    for i = 1, #part do ctx.cache.rows[asked[first + i - 1]] = part[i] or '' end
  end
end

-- split returns the parts of a row: namespace, lane, what follows both up to the gates, and the gates; nil if it is
-- none.
function route.split(row)
  return string.match(row, '^([^\31]*)\31([^\31]*)\31([^\31]*\31[^\31]*)\31([^\31]*)$')
end

-- namespace is the namespace of a route.
function route.namespace(ctx, id) return string.match(route.read(ctx, id), '^[^\31]*') end

-- find returns the id of a row, nil when there is none yet.
function route.find(ctx, row)
  ctx.cache.route_of = ctx.cache.route_of or {}
  local id = ctx.cache.route_of[row]
  if id == nil then
    id = redis.call('HGET', keys.route_ids(ctx.r), row)
    ctx.cache.route_of[row] = id
    if id then route.know(ctx, id, row) end
  end
  return id or nil
end

-- space is the first namespace that the partition ever had, nil if it has had none.
function route.space(ctx)
  if ctx.cache.space == nil then ctx.cache.space = redis.call('HGET', ctx.r, 'space') end
  return ctx.cache.space or nil
end

-- own is the row of the class's own route, for the row of any of its routes; nil if there is no telling.
function route.own(ctx, row)
  local space, _, lane_name, rest = route.space(ctx), route.split(row)
  return space and lane_name and space .. US .. lane_name .. US .. rest .. US
end

-- makers counts the classes by the namespace that made them, with those that the call is going to make.
local function makers(ctx)
  local counts = {}
  for _, list in pairs({ redis.call('HVALS', keys.makers(ctx.r)), ctx.cache.making }) do
    for i = 1, #list do counts[list[i]] = (counts[list[i]] or 0) + 1 end
  end
  return counts
end

-- room tells whether a row that does not exist may be made: its class exists, or there is room for another, in the
-- partition and for the namespace; if not, whose maximum is reached. made has the classes that the call is going to
-- make, making who makes them. Calls judge all that they make before they write any of it.
function route.room(ctx, row)
  local class, made = route.own(ctx, row), ctx.cache.made or {}
  if not class then return true end -- the first of all
  ctx.cache.made, ctx.cache.making = made, ctx.cache.making or {}
  if made[class] or route.find(ctx, class) then return true end
  local n, namespace = ctx.cache.classes or redis.call('ZCARD', keys.route_log(ctx.r)), string.match(row, '^[^\31]*')
  if n >= route.most then return false, reply.int(route.most) end
  if n >= route.half then
    ctx.cache.makers = ctx.cache.makers or makers(ctx)
    if (ctx.cache.makers[namespace] or 0) >= route.share then return false, 'namespace ' .. namespace end
    ctx.cache.makers[namespace] = (ctx.cache.makers[namespace] or 0) + 1
  end
  ctx.cache.classes, made[class] = n + 1, true
  ctx.cache.making[#ctx.cache.making + 1] = namespace
  return true
end

local function store(ctx, id, row)
  redis.call('HSET', keys.routes(ctx.r), id, row)
  redis.call('HSET', keys.route_ids(ctx.r), row, id)
  ctx.cache.route_of[row] = id
  route.know(ctx, id, row)
end

-- announce gives the table a new version, with which every worker is told of a class.
function route.announce(ctx, class)
  ctx.table = math.max(root.version(ctx) + 1, ctx.now)
  local version = reply.int(ctx.table)
  redis.call('HSET', ctx.r, 'table', version)
  redis.call('ZADD', keys.route_log(ctx.r), version, class)
  ctx.moves.routes_added = true
end

-- lane is the lane of a class or of any other route, '' when there is none.
function route.lane(ctx, id)
  local _, name = route.split(route.read(ctx, id))
  return name or ''
end

-- mix notes that classes are of several lanes: those that there are, are all of one lane as long as the root does not
-- tell.
local function mix(ctx, row)
  local _, name = route.split(row)
  local first = redis.call('ZRANGE', keys.route_log(ctx.r), '0', '0')[1]
  if not first or route.lane(ctx, first) == name then return end
  redis.call('HSET', ctx.r, 'mixed', '1')
  ctx.mixed = '1'
end

local function add_class(ctx, row, namespace)
  mix(ctx, row)
  local class = reply.int(redis.call('HINCRBY', ctx.r, 'routes', 1))
  store(ctx, class, row)
  redis.call('HSET', keys.makers(ctx.r), class, namespace)
  route.announce(ctx, class)
  return class
end

-- add creates a row. The caller has checked that there is room.
function route.add(ctx, row)
  local namespace = string.match(row, '^[^\31]*')
  local space = route.space(ctx)
  if not space then
    space = namespace
    redis.call('HSET', ctx.r, 'space', space)
    ctx.cache.space = space
  end
  local class_row = route.own(ctx, row)
  local class = route.find(ctx, class_row) or add_class(ctx, class_row, namespace)
  if row == class_row then return class end
  if namespace ~= space and not ctx.spaces then
    redis.call('HSET', ctx.r, 'spaces', '1')
    ctx.spaces, ctx.moves.spread = '1', true
  end
  local id
  repeat -- the numbers begin again behind the last one, long after most of the old ones went
    local n = redis.call('HINCRBY', ctx.r, 'subroutes', 1)
    if n > 999999999 then
      n = 1
      redis.call('HSET', ctx.r, 'subroutes', '1')
    end
    id = class .. string.sub('00000000' .. reply.int(n), -9)
  until redis.call('HEXISTS', keys.routes(ctx.r), id) == 0
  store(ctx, id, row)
  route.used(ctx, route.others(class), 1)
  if not ctx.gates and not string.find(row, '\31$') then
    ctx.gates = '1'
    redis.call('HSET', ctx.r, 'gates', '1')
  end
  return id
end

-- used counts how many retained executions a route has, or under route.others(class) how many routes; at zero it goes
-- (indexes.apply).
function route.used(ctx, id, change)
  ctx.moves.used = ctx.moves.used or {}
  ctx.moves.used[id] = (ctx.moves.used[id] or 0) + change
end

-- delta appends what a worker that knows version `known` lacks: full flag, version, count, then number and own row of
-- each class.
function route.delta(ctx, known, out)
  local ids = {}
  if known < root.version(ctx) then
    ids = redis.call('ZRANGEBYSCORE', keys.route_log(ctx.r), '(' .. reply.int(known), '+inf')
  end
  out[#out + 1] = known == 0 and '1' or '0'
  out[#out + 1] = reply.int(ctx.table)
  out[#out + 1] = reply.int(#ids)
  if #ids > 0 then route.rows(ctx, ids, out) end
end

-- rows appends ids and rows.
function route.rows(ctx, ids, out)
  route.load(ctx, ids)
  for i = 1, #ids do
    out[#out + 1] = ids[i]
    out[#out + 1] = ctx.cache.rows[ids[i]]
  end
end
