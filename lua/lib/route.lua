-- route: the partition's versioned table of (namespace, lane, kind, required capabilities). A row is
-- the five parts joined by the unit separator; the fifth names the budgets and quotas that work has to ask (lib/gate.lua), mostly none. Ids count up. The
-- table's version is also a time, so that a worker notices when a failover lost an id and somebody else got it.
local route = {}

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

-- find returns the id of a row, nil when there is none yet.
function route.find(ctx, row)
  ctx.cache.route_of = ctx.cache.route_of or {}
  local id = ctx.cache.route_of[row]
  if id == nil then
    id = redis.call('HGET', keys.route_ids(ctx.r), row)
    ctx.cache.route_of[row] = id
  end
  return id or nil
end

-- add creates a row. The caller has checked that there is room.
function route.add(ctx, row)
  ctx.table = math.max(root.version(ctx) + 1, ctx.now)
  local version = reply.int(ctx.table)
  redis.call('HSET', ctx.r, 'table', version)
  local id = reply.int(redis.call('HINCRBY', ctx.r, 'routes', 1))
  redis.call('HSET', keys.routes(ctx.r), id, row)
  redis.call('HSET', keys.route_ids(ctx.r), row, id)
  redis.call('ZADD', keys.route_log(ctx.r), version, id)
  ctx.cache.route_of[row] = id
  ctx.moves.routes_added = true
  gate.added(ctx, id, row)
  share.added(ctx, row)
  return id
end

-- remove forgets a row that no execution uses any more. Workers that know the id wait for nothing.
function route.remove(ctx, id)
  if redis.call('EXISTS', keys.queue(ctx.r, id)) == 1 then return end
  local row = redis.call('HGET', keys.routes(ctx.r), id)
  redis.call('HDEL', keys.routes(ctx.r), id)
  if row and redis.call('HGET', keys.route_ids(ctx.r), row) == id then redis.call('HDEL', keys.route_ids(ctx.r), row) end
  redis.call('ZREM', keys.route_log(ctx.r), id)
  redis.call('HDEL', keys.route_use(ctx.r), id)
  redis.call('SREM', keys.ready(ctx.r), id)
  if ctx.gates then gate.removed(ctx, id) end
  if row then share.removed(ctx, row) end
end

-- delta appends what a worker that knows version `known` lacks: full flag, version, count, then id and the
-- five parts of each row.
function route.delta(ctx, known, out)
  local ids = {}
  if known < root.version(ctx) then
    ids = redis.call('ZRANGEBYSCORE', keys.route_log(ctx.r), '(' .. reply.int(known), '+inf')
  end
  out[#out + 1] = known == 0 and '1' or '0'
  out[#out + 1] = reply.int(ctx.table)
  out[#out + 1] = reply.int(#ids)
  if #ids == 0 then return end
  local rows = {}
  for first = 1, #ids, 500 do
    local part = redis.call('HMGET', keys.routes(ctx.r), unpack(ids, first, math.min(first + 499, #ids)))
    for i = 1, #part do rows[#rows + 1] = part[i] or '' end
  end
  for i = 1, #ids do
    out[#out + 1] = ids[i]
    out[#out + 1] = rows[i]
  end
end
