-- ready: which routes claims look at: those that have work, whose lane hands out, and that no gate closed. Two sets
-- have them by class (lib/route.lua): ready the work without gates, gready the work with gates, so that claims which
-- know of none never meet it. What nearly everybody has, work of the class's own route, is there under the class.
-- Where there are several namespaces, or gates, "c" and the class is there, too, and further keys tell what for: ring
-- (or gring), the namespaces with work, in the order of what they were given; and for work with gates turns, for each
-- namespace its routes in the order of their turns. So a claim finds what comes next without looking at all the
-- others, and a namespace or a limit costs nothing while it has no work. The turns of a lane that hands nothing out
-- stay; its namespace is taken out.
local ready = {}

-- member is under what the sets have a route.
function ready.member(id) return route.plain(id) and id or 'c' .. route.class(id) end

-- class is the class of a member; the second result is whether the class's own route is meant.
function ready.class(member)
  if string.byte(member, 1) ~= 99 then return member, true end -- c
  return string.sub(member, 2), false
end

-- place is where a namespace that has work again enters a ring, as text.
local function place(ctx, namespace, lane_name)
  local v = redis.call('HMGET', keys.shares(ctx.r), lane_name, lane.name(namespace, lane_name))
  return reply.int(math.max(args.int(v[1], 0, 9007199254740991) or 0, args.int(v[2], 0, 9007199254740991) or 0))
end

-- enter puts a namespace into a ring, unless it is there: where it is itself of those that are given something, or
-- its lane.
function ready.enter(ctx, set, ring, class, namespace, lane_name)
  if not redis.call('ZSCORE', ring, namespace) then
    redis.call('ZADD', ring, place(ctx, namespace, lane_name), namespace)
  end
  redis.call('SADD', set, 'c' .. class)
end

-- leave takes a namespace out of a ring, and the class out of the set when the ring is empty.
function ready.leave(set, ring, class, namespace)
  if redis.call('ZREM', ring, namespace) == 1 and redis.call('EXISTS', ring) == 0 then
    redis.call('SREM', set, 'c' .. class)
  end
end

-- offer lists a route that has work, if its lane hands out and no gate closed it, which it tells.
function ready.offer(ctx, id)
  local open, r = lane.open(ctx, id), ctx.r
  if route.plain(id) then
    if open then redis.call('SADD', keys.ready(r), id) end
    if not ctx.spaces then return open end
  end
  local namespace, lane_name, _, gates = route.split(route.read(ctx, id))
  if not namespace then return false end
  local class = route.class(id)
  if gates == '' then
    if open then ready.enter(ctx, keys.ready(r), keys.ring(r, class), class, namespace, lane_name) end
    return open
  end
  if not gate.open(ctx, id) then return false end
  redis.call('ZADD', keys.turns(r, class, namespace), 'NX', ctx.t, id)
  if open then ready.enter(ctx, keys.gready(r), keys.gring(r, class), class, namespace, lane_name) end
  return open
end

-- drop takes a route out that has no work any more, or that is closed.
function ready.drop(ctx, id)
  local r = ctx.r
  if route.plain(id) then
    redis.call('SREM', keys.ready(r), id)
    if not ctx.spaces then return end
  end
  local namespace, _, _, gates = route.split(route.read(ctx, id))
  if not namespace then return end
  local class = route.class(id)
  if gates == '' then
    ready.leave(keys.ready(r), keys.ring(r, class), class, namespace)
  elseif
    redis.call('ZREM', keys.turns(r, class, namespace), id) == 1
      and redis.call('EXISTS', keys.turns(r, class, namespace)) == 0 then
    ready.leave(keys.gready(r), keys.gring(r, class), class, namespace)
  end
end

-- spread puts the classes' own routes into rings: a partition begins to have several namespaces.
function ready.spread(ctx)
  local members = redis.call('SMEMBERS', keys.ready(ctx.r))
  for i = 1, #members do
    local class, plain = ready.class(members[i])
    if plain then ready.offer(ctx, class) end
  end
end

-- lists tells whether claims look at a route.
function ready.lists(ctx, id)
  local r = ctx.r
  if route.plain(id) and redis.call('SISMEMBER', keys.ready(r), id) == 0 then return false end
  if route.plain(id) and not ctx.spaces then return true end
  local namespace, _, _, gates = route.split(route.read(ctx, id))
  if not namespace then return false end
  local class = route.class(id)
  local ring, set = keys.ring(r, class), keys.ready(r)
  if gates ~= '' then
    if not redis.call('ZSCORE', keys.turns(r, class, namespace), id) then return false end
    ring, set = keys.gring(r, class), keys.gready(r)
  end
  return redis.call('ZSCORE', ring, namespace) and redis.call('SISMEMBER', set, 'c' .. class) == 1 or false
end

-- lane opens or closes a lane of a namespace: all routes of one class at a time. It returns for how much of the class
-- something may be handed out now.
function ready.lane(ctx, class, namespace, lane_name, open)
  local r, waiting = ctx.r, 0
  local _, _, rest = route.split(route.read(ctx, class))
  local id = route.find(ctx, route.row(namespace, lane_name, rest, '')) -- rest has kind and capabilities
  local turns, gring = keys.turns(r, class, namespace), keys.gring(r, class)
  if not open then
    if id then ready.drop(ctx, id) end
    if ctx.gates then ready.leave(keys.gready(r), gring, class, namespace) end
    return 0
  end
  if id then
    waiting = redis.call('ZCARD', keys.queue(r, id))
    if waiting > 0 then ready.offer(ctx, id) end
  end
  if ctx.gates and redis.call('EXISTS', turns) == 1 then
    ready.enter(ctx, keys.gready(r), gring, class, namespace, lane_name)
    waiting = waiting + redis.call('ZCARD', turns)
  end
  return waiting
end

-- told reads what a subscription says beside its classes: spaces, nil for all namespaces, and the weights of lanes.
-- false when that is not known any more.
local function told(ctx, digest)
  ctx.cache.subscriptions = ctx.cache.subscriptions or {}
  local all = ctx.cache.subscriptions[digest]
  if all ~= nil then return all end
  local text = redis.call('GET', keys.spaces(ctx.r, digest))
  all = text and { weights = {} } or false
  if all then
    local spaces, weights = string.match(text, '^([^\30]*)\30?(.*)$')
    if spaces ~= '' then all.spaces = pack.split(spaces, '\31') end
    if weights ~= '' then
      local list = pack.split(weights, '\31')
      for i = 1, #list, 2 do all.weights[list[i]] = args.int(list[i + 1], 1, 1000) end
    end
  end
  ctx.cache.subscriptions[digest] = all
  return all
end

-- spaces lists the namespaces that a subscription is restricted to: nil for all of them, false when that is not known
-- any more.
function ready.spaces(ctx, digest)
  local all = told(ctx, digest)
  if all then return all.spaces end
  return false
end

-- weights has the weights of lanes that a subscription gives, 1 where it says nothing; false when that is not known any
-- more.
function ready.weights(ctx, digest)
  local all = told(ctx, digest)
  return all and all.weights
end

-- has tells whether a ring has any of a list of namespaces; nil stands for all.
function ready.has(ring, list)
  if not list then return redis.call('EXISTS', ring) == 1 end
  local scores = redis.call('ZMSCORE', ring, unpack(list))
  for i = 1, #list do
    if scores[i] then return true end
  end
  return false
end

-- serves lists the members of both sets of which a subscription has something.
function ready.serves(ctx, digest)
  local subscription, list = keys.subscription(ctx.r, digest), {}
  local function add(set, ring)
    local all = redis.call('SINTER', set, subscription)
    for i = 1, #all do
      local class, plain = ready.class(all[i])
      local spaces = nil
      if not plain then spaces = ready.spaces(ctx, digest) end
      if plain or spaces ~= false and ready.has(ring(ctx.r, class), spaces) then list[#list + 1] = all[i] end
    end
  end
  add(keys.ready(ctx.r), keys.ring)
  if ctx.gates then add(keys.gready(ctx.r), keys.gring) end
  return list
end

-- count is in how many classes there is work without gates, and work with gates.
function ready.count(r)
  local n, sets = 0, { keys.ready(r), keys.gready(r) }
  for s = 1, 2 do
    local members, seen = redis.call('SMEMBERS', sets[s]), {}
    for i = 1, #members do
      local class = ready.class(members[i])
      if not seen[class] then n, seen[class] = n + 1, true end
    end
  end
  return n
end

-- waiting is how much work there is under a member, at least, and at most 64.
function ready.waiting(ctx, member)
  local class, plain = ready.class(member)
  if plain then return math.min(redis.call('ZCARD', keys.queue(ctx.r, class)), 64) end
  local n = redis.call('ZCARD', keys.ring(ctx.r, class)) + (ctx.gates and redis.call('ZCARD', keys.gring(ctx.r, class))
    or 0)
  return math.min(n, 64)
end
