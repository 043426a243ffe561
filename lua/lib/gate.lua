-- gate: work that asks budgets and quotas before it runs. The gates of an execution are fixed when it is
-- created and are the fifth part of its route: "b:" or "q:" and a name each, sorted, joined by commas. A claim grants
-- such work (state G1, held by the session like what runs); the worker asks the gates, which are in other partitions,
-- and claims what was granted, or returns it and closes the route until a time or a wake. Whatever stops running, and
-- was admitted by quotas, is told to them through the outbox, in the same call: entries "q <name> <execution> <epoch>
-- <1 if it ran>" and, of what failed or was cancelled or expired, for its budgets "b <name> <execution> <outcome>
-- <epoch of the attempt that ended>". What was purged is told to its budgets as "b <name> <execution> purged 0".
-- Notices to other executions are in lib/wait_others.lua.
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
  redis.call('HDEL', keys.closings(ctx.r), route_id, 'w' .. route_id)
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

-- valid tells whether a text names at most 16 budgets, and 8 quotas and limits of keys.
function gate.valid(text)
  if #text > 2500 then return false end
  if text == '' then return true end
  local n = { b = 0, q = 0 }
  for g in string.gmatch(text .. ',', '([^,]*),') do
    local kind, name = string.match(g, '^([bq]):(%w[%w_.-]*)$')
    if kind and #name > 64 then return false end
    if not kind and not args.limit(string.match(g, '^q:(.*)$')) then return false end
    n[kind or 'q'] = n[kind or 'q'] + 1
  end
  return n.b <= 16 and n.q <= 8
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
  if not gate.valid(own) then return caps, '', '-invalid_input gates: at most 16 budgets and 8 quotas by name' end
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
    return caps, '', '-invalid_input gates: with those of its scopes more than 16 budgets or 8 quotas'
  end
  return caps, all
end

-- note puts a notice into the outbox when the call ends.
function gate.note(ctx, kind, text)
  local out = ctx.moves.outgoing or {}
  ctx.moves.outgoing = out
  out[#out + 1], out[#out + 2] = kind, text
end

-- named goes over the names of the budgets (kind b) or quotas (q) of a route. A comma begins each: "b:" may also stand
-- within the name of a limit, whose key may have it.
local function named(ctx, route_id, kind)
  return string.gmatch(',' .. gate.of(ctx, route_id), ',' .. kind .. ':([^,]+)')
end

-- leave tells the quotas of a route that an execution does not run any more under an epoch, or never ran.
function gate.leave(ctx, route_id, id, epoch, ran)
  for name in named(ctx, route_id, 'q') do
    gate.note(ctx, 'q', name .. ' ' .. id .. ' ' .. (epoch or '0') .. ' ' .. ran)
  end
end

-- ended tells the budgets of a route how an execution ended that did not succeed.
function gate.ended(ctx, c, id, code)
  local outcome = outcomes[string.sub(code, 1, 2)]
  if not outcome then return end
  for name in named(ctx, c.route, 'b') do
    gate.note(ctx, 'b', name .. ' ' .. id .. ' ' .. outcome .. ' ' .. (c.epoch or '0'))
  end
end

-- purged tells the budgets of a route that an execution was purged, whatever it had used.
function gate.purged(ctx, route_id, id)
  for name in named(ctx, route_id, 'b') do gate.note(ctx, 'b', name .. ' ' .. id .. ' purged 0') end
end

-- flush writes what was noted, and has it delivered at once.
function gate.flush(ctx)
  local out = ctx.moves.outgoing
  ctx.moves.outgoing = nil
  for first = 1, #out, 200 do
    redis.call('XADD', keys.outbox(ctx.r), '*', unpack(out, first, math.min(first + 199, #out)))
  end
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
