-- gate: work that asks gates before it runs. The gates of an execution are fixed when it is created and are the fifth
-- part of its route: their names, sorted, joined by commas. A claim grants
-- such work (state G1, held by the session like what runs); the worker asks the gates, which are in other partitions,
-- and claims what was granted, or returns it and closes the route until a time or a wake. What they have to know is
-- told through the outbox, in the same call, as entries "g <name> <execution> <what> <epoch>": gone, of what was
-- admitted and runs no more, never, if it never ran, failed, cancelled or expired, of an attempt that ended so, and
-- purged. A route remembers what its gates measure, once a claim has told (keys.closings, "m"): holds hear of gone,
-- amounts of how it ended. Until then all hear of everything. Of never all hear: a gate may hold since it was asked for
-- what did not run. Notices to other executions are in lib/wait_others.lua,
-- those of events in lib/subject.lua and lib/expect.lua.
local gate = { ttl = 5000 } -- ms that a grant lasts

local US = '\31'
local outcomes = { T2 = 'failed', T3 = 'cancelled', T4 = 'expired' }

-- of returns the gates of a route, '' mostly.
function gate.of(ctx, route_id)
  if not ctx.gates or route.plain(route_id) then return '' end
  return string.match(route.read(ctx, route_id), '\31([^\31]*)$') or ''
end

function gate.open(ctx, route_id)
  return gate.of(ctx, route_id) == '' or not redis.call('ZSCORE', keys.closed(ctx.r), route_id)
end

-- closed is why a gate has closed a route, '' if none has.
function gate.closed(ctx, route_id)
  if gate.of(ctx, route_id) == '' then return '' end
  return redis.call('HGET', keys.closings(ctx.r), route_id) or ''
end

-- removed forgets what was known of a route that goes.
function gate.removed(ctx, route_id)
  redis.call('ZREM', keys.closed(ctx.r), route_id)
  redis.call('HDEL', keys.closings(ctx.r), route_id, 'w' .. route_id, 'm' .. route_id)
end

-- merge adds the gates of a text to a set.
local function merge(set, text)
  for g in string.gmatch(text, '[^,]+') do
    if not set[g] then
      set[g] = true
      set[#set + 1] = g
    end
  end
end

-- words are what a gate is told of.
gate.words = { gone = true, never = true, failed = true, cancelled = true, expired = true, purged = true }

-- valid tells whether a text names at most 16 gates, and 8 limits of keys.
function gate.valid(text)
  if #text > 2500 then return false end
  if text == '' then return true end
  local named, limits = 0, 0
  for g in string.gmatch(text .. ',', '([^,]*),') do
    if args.label(g) then named = named + 1 elseif args.limit(g) then limits = limits + 1 else return false end
  end
  return named <= 16 and limits <= 8
end

-- scopes lists the scopes of a group of new executions.
local function scopes(ctx, group)
  local list = { 'g', 'n' .. US .. group.namespace, 'l' .. US .. group.namespace .. US .. group.lane }
  for i = 1, ctx.gates == '3' and #group.tags or 0, 2 do
    list[#list + 1] = 't' .. US .. group.tags[i] .. US .. group.tags[i + 1]
  end
  return list
end

-- everything reads all that is attached, once: what to scopes, and by key what to the values of labels.
local function everything(ctx)
  local all = { scope = {}, label = {} }
  local rows = redis.call('HGETALL', keys.attached(ctx.r))
  for i = 1, #rows, 2 do
    local key, value = string.match(rows[i], '^t\31([^\31]*)\31(.*)$')
    if key then
      all.label[key] = all.label[key] or {}
      all.label[key][value] = rows[i + 1]
    else
      all.scope[rows[i]] = rows[i + 1]
    end
  end
  ctx.cache.everything = all
  return all
end

-- attached lists what is attached to the scopes of a group; false is nothing. A call that asks for many reads
-- everything.
local function attached(ctx, group)
  ctx.cache.asked = (ctx.cache.asked or 0) + 1
  if ctx.cache.asked <= 4 then return redis.call('HMGET', keys.attached(ctx.r), unpack(scopes(ctx, group))) end
  local all = ctx.cache.everything or everything(ctx)
  local namespace, tags = group.namespace, group.tags
  local list = { all.scope.g or false, all.scope['n' .. US .. namespace] or false,
    all.scope['l' .. US .. namespace .. US .. group.lane] or false }
  for i = 1, ctx.gates == '3' and #tags or 0, 2 do
    local values = all.label[tags[i]]
    if values and values[tags[i + 1]] then list[#list + 1] = values[tags[i + 1]] end
  end
  return list
end

-- resolve returns the capabilities of a group of new executions, all its gates, and a refusal if they are malformed
-- or too many.
function gate.resolve(ctx, group)
  local caps, own = group.capabilities, ''
  local cut = string.find(caps, US, 1, true)
  if cut then
    own = string.sub(caps, cut + 1)
    caps = string.sub(caps, 1, cut - 1)
  end
  if not gate.valid(own) then return caps, '', '-invalid_input gates: at most 16 by name and 8 limits of keys' end
  local set = {}
  merge(set, own)
  if ctx.gates and ctx.gates ~= '1' then
    local rows = attached(ctx, group)
    for n = 1, #rows do
      if rows[n] then merge(set, string.match(rows[n], '^[^ ]*')) end
    end
  end
  table.sort(set)
  local all = table.concat(set, ',')
  if not gate.valid(all) then
    return caps, '', '-invalid_input gates: with those of its scopes more than 16 by name or 8 limits of keys'
  end
  return caps, all
end

-- note puts a notice into the outbox when the call ends.
function gate.note(ctx, kind, text)
  local out = ctx.moves.outgoing or {}
  ctx.moves.outgoing = out
  out[#out + 1], out[#out + 2] = kind, text
end

-- measured reads what gates measure, by name, from "<name>=<letters>" joined by commas (meter.meters); nil if it is not
-- that.
function gate.measured(text)
  local by = {}
  for part in string.gmatch(text .. ',', '([^,]*),') do
    local name, letters = string.match(part, '^([%w_.-]+)=(a?h?)$')
    if not name and part ~= '' then return nil end
    if name then by[name] = letters end
  end
  return by
end

-- measure has a route remember what its gates measure, and those above them. What another process told stays: a gate is
-- rather told too much.
function gate.measure(ctx, route_id, text)
  local key, field = keys.closings(ctx.r), 'm' .. route_id
  local old = redis.call('HGET', key, field) or ''
  if old == text then return end
  local by, before, names, list = gate.measured(text), gate.measured(old) or {}, {}, {}
  if gate.of(ctx, route_id) == '' then return end
  for name in pairs(before) do by[name] = (by[name] or '') .. before[name] end
  for name, both in pairs(by) do
    if both ~= '' then names[#names + 1] = name end
  end
  table.sort(names)
  for i = 1, #names do
    local both = by[names[i]]
    list[i] = names[i] .. '=' .. (string.find(both, 'a', 1, true) and 'a' or '') ..
      (string.find(both, 'h', 1, true) and 'h' or '')
  end
  text = table.concat(list, ',')
  if text ~= old and #text <= 8192 then
    redis.call('HSET', key, field, text)
    ctx.cache.hearers = nil
  end
end

-- hearers lists the gates of a route, and those above them, that measure a or h, or with '' all. It is put together
-- once in a call.
local function hearers(ctx, route_id, letter)
  local key = letter .. route_id
  ctx.cache.hearers = ctx.cache.hearers or {}
  if ctx.cache.hearers[key] then return ctx.cache.hearers[key] end
  local gates, names = gate.of(ctx, route_id), {}
  ctx.cache.hearers[key] = names
  if gates == '' then return names end
  local by = gate.measured(redis.call('HGET', keys.closings(ctx.r), 'm' .. route_id) or '') or {}
  for name in string.gmatch(gates, '[^,]+') do
    by[name] = by[name] or string.byte(name, 1) == 64 and 'h' or 'ah'
  end
  for name, letters in pairs(by) do -- those above them, too
    if string.find(letters, letter, 1, true) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- tell notes something for those gates of a route that measure what it concerns.
local function tell(ctx, route_id, letter, text)
  local names = hearers(ctx, route_id, letter)
  for i = 1, #names do gate.note(ctx, 'g', names[i] .. ' ' .. text) end
end

-- leave tells the gates of a route that an execution does not run any more under an epoch, or never ran.
function gate.leave(ctx, route_id, id, epoch, ran)
  local letter, what = 'h', ' gone '
  if ran == '0' then letter, what = '', ' never ' end
  tell(ctx, route_id, letter, id .. what .. (epoch or '0'))
end

-- ended tells how an execution ended that did not succeed.
function gate.ended(ctx, c, id, code)
  local outcome = outcomes[string.sub(code, 1, 2)]
  if outcome then tell(ctx, c.route, 'a', id .. ' ' .. outcome .. ' ' .. (c.epoch or '0')) end
end

-- purged tells that an execution was purged, whatever it had used.
function gate.purged(ctx, route_id, id) tell(ctx, route_id, 'a', id .. ' purged 0') end

-- flush posts what was noted.
function gate.flush(ctx)
  local out = ctx.moves.outgoing
  ctx.moves.outgoing = nil
  for first = 1, #out, 200 do gate.post(ctx, out, first, math.min(first + 199, #out)) end
end

-- post puts one entry into the outbox, kinds and texts of notices, and has it delivered at once.
function gate.post(ctx, notices, first, last)
  redis.call('XADD', keys.outbox(ctx.r), '*', unpack(notices, first or 1, last or #notices))
  if not ctx.gates then -- else the tick looks at the outbox anyway
    redis.call('HSET', ctx.r, 'told', '1')
    ctx.told = '1' -- this call may be the tick
  end
  root.need(ctx, ctx.now)
end

-- wakes counts how often a route was woken, from 1: a grant carries it, so that a wake between a gate's refusal and
-- the closing of the route is not lost. A count that is no number is taken for none.
function gate.wakes(ctx, route_id)
  return reply.int((args.int(redis.call('HGET', keys.closings(ctx.r), 'w' .. route_id) or '0', 0, 9007199254740991)
    or 0) + 1)
end

-- woken counts one wake more.
function gate.woken(ctx, route_id)
  redis.call('HSET', keys.closings(ctx.r), 'w' .. route_id, gate.wakes(ctx, route_id))
end

-- close says that nothing of a route is handed out until an instant, and why; its caller takes it out (ready.drop).
function gate.close(ctx, route_id, at, why)
  redis.call('HSET', keys.closings(ctx.r), route_id, why)
  timers.put(ctx, timers.closed, at, route_id)
end

-- forget makes a closed route as if it had never been closed; its caller hands out again what waits.
function gate.forget(ctx, route_id)
  redis.call('HDEL', keys.closings(ctx.r), route_id)
  return redis.call('ZREM', keys.closed(ctx.r), route_id) == 1
end
