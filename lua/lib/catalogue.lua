-- catalogue: where readers find executions by when they were created, whatever their state, so that they come once:
-- those of each route, and those that have a tag with a value, for the tag keys that the deployment names. An entry
-- comes with the execution and goes with its purge. The root's field index says what is kept (ff_set_index): a mark for
-- the routes, 1 or 0, then a mark and a key for each tag: + for one that can be asked for, - for one that is being
-- removed. A ~ is the mark of what lacks older executions yet. Without the field, nothing is kept. A partition keeps
-- catalogue.most values of a key; what has one more is not in it, which the root's field full:<key> tells.
local catalogue = { most = 100000, routes = 2048 }

local usual = { routes = false, listed = false, tags = false }

-- What the field said last, and what that means: it changes when an operator changes it.
local told, known = nil, nil

-- of says what is kept: whether the routes are, whether they can be asked for, and under tags the mark of each key,
-- false if there is none.
function catalogue.of(ctx)
  local text = ctx.index
  if not text then return usual end
  if text == told then return known end
  local kept = { routes = string.byte(text) ~= 48, listed = string.byte(text) == 49, tags = false }
  for mark, key in string.gmatch(text, ' ([+~])(%S+)') do
    kept.tags = kept.tags or {}
    kept.tags[key] = mark
  end
  told, known = text, kept
  return kept
end

local function move(ctx, name, key)
  local all = ctx.moves[name]
  if not all then
    all = {}
    ctx.moves[name] = all
  end
  local list = all[key]
  if not list then
    list = {}
    all[key] = list
  end
  return list
end

-- label is the name of what has a tag with a value.
function catalogue.label(key, value) return key .. '=' .. value end

local function label(ctx, id, created, tags, key, value)
  if not tags[key] then return end
  local list = move(ctx, 'labelled', catalogue.label(key, value))
  list[#list + 1], list[#list + 2] = created, id
end

local function unlabel(ctx, id, tags, key, value)
  if not tags[key] then return end
  local list = move(ctx, 'unlabelled', catalogue.label(key, value))
  list[#list + 1] = id
end

-- add lists a new execution; tags are its tags, each key before its value.
function catalogue.add(ctx, route_id, created, id, tags)
  local kept = catalogue.of(ctx)
  if kept.routes then
    local list = move(ctx, 'made', route_id)
    list[#list + 1], list[#list + 2] = created, id
  end
  for i = 1, kept.tags and #tags or 0, 2 do label(ctx, id, created, kept.tags, tags[i], tags[i + 1]) end
end

-- add_all lists the new executions of a call that have one route and the same tags, created and id in turn.
function catalogue.add_all(ctx, route_id, list, tags)
  local kept = catalogue.of(ctx)
  if kept.routes then ctx.moves.made = { [route_id] = list } end
  for i = 1, kept.tags and #tags or 0, 2 do
    if kept.tags[tags[i]] then
      ctx.moves.labelled = ctx.moves.labelled or {}
      ctx.moves.labelled[catalogue.label(tags[i], tags[i + 1])] = list
    end
  end
end

-- drop takes a purged execution out.
function catalogue.drop(ctx, c, id)
  local kept = catalogue.of(ctx)
  if kept.routes then
    local list = move(ctx, 'unmade', c.route)
    list[#list + 1] = id
  end
  if kept.tags and c.has_tags then
    local names = {}
    for key in pairs(kept.tags) do names[#names + 1] = key end
    local values = redis.call('HMGET', keys.tags(ctx.r, id), unpack(names))
    for i = 1, #names do
      if values[i] then unlabel(ctx, id, kept.tags, names[i], values[i]) end
    end
  end
end

-- reroute lists an execution under another route.
function catalogue.reroute(ctx, c, id, to)
  if not catalogue.of(ctx).routes then return end
  local list = move(ctx, 'unmade', c.route)
  list[#list + 1] = id
  list = move(ctx, 'made', to)
  list[#list + 1], list[#list + 2] = c.created_at, id
end

-- retag lists an execution by its tags as they come to be; both are tables of values by key.
function catalogue.retag(ctx, c, id, before, after)
  local tags = catalogue.of(ctx).tags
  for key in pairs(tags or {}) do
    if before[key] ~= after[key] then
      if before[key] then unlabel(ctx, id, tags, key, before[key]) end
      if after[key] then label(ctx, id, c.created_at, tags, key, after[key]) end
    end
  end
end

-- tall is longer than a member of the server's compact form of a small set may be. There an entry costs time by the
-- size of the set, ten times as much as in a set that is not compact, which a set remains after one such member.
local tall = '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~'

-- put writes entries of one tag and value, unless that is a value too many. A batch has the set not compact first.
local function put(ctx, name, list)
  local key = keys.labelled(ctx.r, name)
  local count = redis.call('ZCARD', key)
  if count == 0 then
    local tag, value = string.match(name, '^([^=]*)=(.*)$')
    local values = keys.values(ctx.r, tag)
    if redis.call('SADD', values, value) == 1 and redis.call('SCARD', values) > catalogue.most then
      redis.call('SREM', values, value)
      redis.call('HSETNX', ctx.r, 'full:' .. tag, ctx.t)
      return
    end
  end
  local batch = #list >= 32 and count < 128
  if batch then redis.call('ZADD', key, '0', tall) end
  redis.call('ZADD', key, unpack(list))
  if batch then redis.call('ZREM', key, tall) end
end

local function take(ctx, name, list)
  local key = keys.labelled(ctx.r, name)
  redis.call('ZREM', key, unpack(list))
  if redis.call('EXISTS', key) == 1 then return end
  local tag, value = string.match(name, '^([^=]*)=(.*)$')
  redis.call('SREM', keys.values(ctx.r, tag), value)
end

-- apply writes what a call changed.
function catalogue.apply(ctx)
  local moves, r = ctx.moves, ctx.r
  if moves.unmade then
    for id, list in pairs(moves.unmade) do redis.call('ZREM', keys.made(r, id), unpack(list)) end
    moves.unmade = nil
  end
  if moves.made then
    for id, list in pairs(moves.made) do redis.call('ZADD', keys.made(r, id), unpack(list)) end
    moves.made = nil
  end
  if moves.unlabelled then
    for name, list in pairs(moves.unlabelled) do take(ctx, name, list) end
    moves.unlabelled = nil
  end
  if moves.labelled then
    for name, list in pairs(moves.labelled) do put(ctx, name, list) end
    moves.labelled = nil
  end
end

-- matching lists the routes that a key asks for: namespace, lane and kind, joined by the unit separator, each of which
-- may be empty for any. Nil when there are too many to look at, and what is wrong with a key.
function catalogue.matching(ctx, key)
  local namespace, lane_name, kind = string.match(key, '^([^\31]*)\31([^\31]*)\31([^\31]*)$')
  if not namespace then return nil, 'key: namespace, lane and kind' end
  if redis.call('HLEN', keys.routes(ctx.r)) > catalogue.routes then return nil end
  local all, out = redis.call('HGETALL', keys.routes(ctx.r)), {}
  for i = 1, #all, 2 do
    local a, b, c = string.match(all[i + 1], '^([^\31]*)\31([^\31]*)\31([^\31]*)')
    if (namespace == '' or namespace == a) and (lane_name == '' or lane_name == b) and (kind == '' or kind == c) then
      out[#out + 1] = all[i]
    end
  end
  return out
end

-- routes are the sets of the routes that a key asks for; nil when they are not kept, and what is wrong with the key.
local function routes(ctx, key)
  local list, wrong = catalogue.matching(ctx, key)
  if not list or not catalogue.of(ctx).listed then return nil, wrong end
  for i = 1, #list do list[i] = keys.made(ctx.r, list[i]) end
  return list
end

-- labelled is the set of what has a tag and value, joined by =; nil likewise.
local function labelled(ctx, key)
  local tag = string.match(key, '^([^=]+)=')
  if not tag then return nil, 'key: tag=value' end
  local tags = catalogue.of(ctx).tags
  if not tags or tags[tag] ~= '+' or redis.call('HEXISTS', ctx.r, 'full:' .. tag) == 1 then return nil end
  return { keys.labelled(ctx.r, key) }
end

-- sets are those that have what a list asks for, created or tagged; nil and an error if there are none.
function catalogue.sets(ctx, index, key)
  local out, wrong = (index == 'created' and routes or labelled)(ctx, key)
  if out then return out end
  return nil, wrong and reply.err('invalid_input', wrong) or reply.err('not_indexed', index)
end
