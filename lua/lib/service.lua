-- service: a gate whose meters are of the calls of one service: how much of each dimension in a minute, and how many
-- calls at once. It is asked for each call, not for each execution. Of a dimension there is a bucket that holds burst
-- and is refilled with what is left of a minute's amount, evenly: so no minute lets more through than that, of calls
-- that are not larger than the bucket. Such a call goes when the bucket is full, and leaves it in debt.
-- Fields of the definition: sv dimensions, as <dimension>=<a minute's>/<burst>,…   cl calls at once   pt ms that is
-- waited in a slot   t:<namespace> its weight. Of the pace:
--   at when the buckets were filled last   l:<dimension> what is in one, in parts   v the turn of who went last
--   f fa how much of the rate is used, per mille, and since when (service.factor)   du how long a call takes, ms
--   cu closed until   n la ln how often the service refused since a call succeeded, when it did last, and in all
--   w:<dimension> wn what is waited for, in parts of nothing, and by how many
-- Namespaces take turns (start-time fair queueing, Goyal, Vin and Cheng 1996): a call costs the larger share of a
-- minute, divided by the weight of its namespace. In a namespace it is by priority, then by age. Who is in a slot and
-- does not fit stops those behind it, so that no large call starves. Who is away does not: it is woken when its turn is
-- near, and has its place until a minute after it was to ask again. While several namespaces wait, who would wait for
-- longer than a quarter of the patience gives its slot up: else those of one that is claimed more often than by its
-- weight would hold the slots in which others were to come.
local service = {}

local parts = 60000 -- of one: so a ms refills a whole number of them
local scale = 1000000000 -- a minute's share, as turns count it

service.most = 65536 -- who may wait in line for a service
service.looked = 32 -- at so many who wait a call looks
service.late = 1000 -- ms after which who is in a slot and has not asked again is away
service.near = 1000 -- ms before its turn when one that is away is woken
service.again = 5000 -- ms until it is woken once more
service.idle = 7200000 -- ms that the pace of a service is kept when nobody calls: longer than any bucket needs
service.longest = 3600000 -- ms: the longest pause

local function need_of(s, by)
  local need = {}
  for i = 1, #s.dims do
    local dim = s.dims[i].dim
    need[dim] = by[dim] or dim == 'requests' and 1 or 0
  end
  return need
end

-- read returns a service as it is now, for a call of a namespace; nil and what is wrong if there is none.
function service.read(ctx, name, namespace)
  local v = redis.call('HMGET', keys.gate(ctx.r, name), 'ct', 'sv', 'cl', 'pt', 't:' .. namespace)
  if not v[1] then return nil, reply.err('gate_not_found', name) end
  if not v[2] then return nil, reply.err('invalid_input', 'name: ' .. name .. ' is not the gate of a service') end
  local s = { name = name, dims = {}, calls = tonumber(v[3]), patience = tonumber(v[4]), p = meter.hash(keys.pace(
    ctx.r, name)), weights = { [namespace] = tonumber(v[5] or '1') } }
  for dim, rate, burst in string.gmatch(v[2], '([^,=]+)=(%d+)/(%d+)') do
    s.dims[#s.dims + 1] = { dim = dim, rate = tonumber(rate), burst = tonumber(burst) }
  end
  service.fill(ctx, s)
  return s
end

local function number(s, field) return tonumber(s.p[field] or '0') end

-- factor is how much of its rate a service is asked for, per mille: 700 of 1000 after a refusal, at most once a second
-- and never less than 50; and 50 more for each 10 s since.
function service.factor(ctx, s)
  local f = tonumber(s.p.f or '1000')
  return math.min(1000, f + 50 * math.floor(math.max(0, ctx.now - number(s, 'fa')) / 10000))
end

-- fill adds to the buckets what time has brought. A clock that stepped back brings nothing.
function service.fill(ctx, s)
  local factor, at = service.factor(ctx, s), tonumber(s.p.at or '')
  local passed = at and math.max(0, math.min(ctx.now - at, service.longest)) or service.longest
  s.level = {}
  for i = 1, #s.dims do
    local d = s.dims[i]
    d.refill = math.max(1, math.floor((d.rate - d.burst) * factor / 1000))
    s.level[d.dim] = math.min(d.burst * parts, (tonumber(s.p['l:' .. d.dim] or '') or d.burst * parts) +
      d.refill * passed)
  end
  s.held = redis.call('ZCARD', keys.calls(ctx.r, s.name))
  s.cap = s.calls
  if number(s, 'n') >= 2 then s.cap = 1 end -- one call tries whether it is up again
  s.closed = math.max(0, number(s, 'cu') - ctx.now)
  if s.closed > service.longest then s.closed = 0 end -- written before the clock stepped back
end

-- save writes what a call has changed.
function service.save(ctx, s, fields)
  fields[#fields + 1], fields[#fields + 2] = 'at', ctx.t
  for i = 1, #s.dims do
    local dim = s.dims[i].dim
    fields[#fields + 1], fields[#fields + 2] = 'l:' .. dim, reply.int(s.level[dim])
  end
  local key = keys.pace(ctx.r, s.name)
  redis.call('HSET', key, unpack(fields))
  redis.call('PEXPIRE', key, reply.int(number(s, 'wn') > 0 and meter.kept or service.idle)) -- as long as its line
end

-- large returns a dimension of which a call wants more than a minute has, and how much that is.
function service.large(s, by)
  for i = 1, #s.dims do
    local d = s.dims[i]
    if (by[d.dim] or 0) > d.rate then return d.dim, d.rate end
  end
  return nil
end

-- until_room is in how many ms there is room for a call, if levels are these and so many calls are under way.
local function until_room(s, need, level, held)
  local ms = 0
  for i = 1, #s.dims do
    local d = s.dims[i]
    local lack = math.min(need[d.dim], d.burst) * parts - level[d.dim]
    if lack > 0 then ms = math.max(ms, math.floor((lack + d.refill - 1) / d.refill)) end
  end
  if s.cap > 0 and held >= s.cap then
    ms = math.max(ms, math.floor((held + 1 - s.cap) * tonumber(s.p.du or '1000') / s.cap), 10)
  end
  return ms
end

local function take(s, need, level)
  for i = 1, #s.dims do
    local dim = s.dims[i].dim
    level[dim] = level[dim] - need[dim] * parts
  end
end

-- cost is by how much a call moves the turn of its namespace.
local function cost(s, need, weight)
  local share = 0
  for i = 1, #s.dims do share = math.max(share, need[s.dims[i].dim] / s.dims[i].rate) end
  if share == 0 then share = 1 / math.max(1, s.calls) end
  return math.max(1, math.floor(share * scale / weight))
end

-- asked reads what is kept of one that waits: when it was to ask again, s in a slot, a away or w woken, its namespace
-- and amounts.
local function asked(s, text)
  local due, state, namespace, amounts = string.match(text or '', '^(%d+) (%l) ([^\31]*)\31(.*)$')
  if not due then return nil end
  return { due = tonumber(due), state = state, namespace = namespace, need = need_of(s, ledger.amounts(amounts)) }
end

-- turn is when it is the turn of a namespace that has no place in line.
local function turn(ctx, s, namespace)
  local at = redis.call('ZSCORE', keys.turn(ctx.r, s.name), namespace)
  return math.max(number(s, 'v'), at and args.score(at) or 0)
end

-- leave takes one out of the line.
local function leave(ctx, s, id, w)
  local r, name = ctx.r, s.name
  redis.call('HDEL', keys.asking(r, name), id)
  local key = keys.queued(r, name, w.namespace)
  redis.call('ZREM', key, id)
  if redis.call('EXISTS', key) == 0 then redis.call('ZREM', keys.takers(r, name), w.namespace) end
  for i = 1, #s.dims do
    local dim = s.dims[i].dim
    s.p['w:' .. dim] = reply.int(math.max(0, number(s, 'w:' .. dim) - w.need[dim]))
  end
  s.p.wn = reply.int(math.max(0, number(s, 'wn') - 1))
end

-- due notes when one that waits asks again.
local function due(ctx, s, w, id, state, at)
  redis.call('HSET', keys.asking(ctx.r, s.name), id, reply.int(at) .. ' ' .. state .. ' ' .. w.namespace .. '\31' ..
    ledger.text(w.need))
end

-- enter gives one a place in line, nil if there is none.
local function enter(ctx, s, q, need)
  local r, name = ctx.r, s.name
  if number(s, 'wn') >= service.most then return nil end
  local week = reply.int(meter.kept)
  local key, takers = keys.queued(r, name, q.namespace), keys.takers(r, name)
  redis.call('ZADD', key, reply.int(q.since - q.priority * 1000000000000), q.execution)
  if redis.call('ZADD', takers, 'NX', reply.int(turn(ctx, s, q.namespace)), q.namespace) == 1 then
    redis.call('PEXPIRE', takers, week)
  end
  redis.call('PEXPIRE', key, week)
  local w = { due = ctx.now, state = 's', namespace = q.namespace, need = need }
  due(ctx, s, w, q.execution, 's', ctx.now)
  redis.call('PEXPIRE', keys.asking(r, name), week)
  for dim, n in pairs(need) do s.p['w:' .. dim] = reply.int(number(s, 'w:' .. dim) + n) end
  s.p.wn = reply.int(number(s, 'wn') + 1)
  return w
end

-- weigh learns the weights of namespaces.
local function weigh(ctx, s, list)
  if #list == 0 then return end
  local fields = {}
  for i = 1, #list do fields[i] = 't:' .. list[i] end
  local v = redis.call('HMGET', keys.gate(ctx.r, s.name), unpack(fields))
  for i = 1, #list do s.weights[list[i]] = tonumber(v[i] or '1') end
end

-- heads are the namespaces that wait, in the order of their turns, each with those in it that come first.
local function heads(ctx, s, most)
  local rows = redis.call('ZRANGE', keys.takers(ctx.r, s.name), '0', reply.int(most - 1), 'WITHSCORES')
  local list, names = {}, {}
  for i = 1, #rows, 2 do
    list[#list + 1] = { name = rows[i], at = math.max(number(s, 'v'), args.score(rows[i + 1])), next = 1 }
    names[#names + 1] = rows[i]
  end
  weigh(ctx, s, names)
  return list
end

-- fetch reads who waits in a namespace, first the first. Who is not heard of any more leaves.
local function fetch(ctx, s, head, most)
  local ids = redis.call('ZRANGE', keys.queued(ctx.r, s.name, head.name), '0', reply.int(most - 1))
  head.list = {}
  if #ids == 0 then return end
  local texts = redis.call('HMGET', keys.asking(ctx.r, s.name), unpack(ids))
  for i = 1, #ids do
    local w = asked(s, texts[i] or nil)
    if w and ctx.now <= w.due + 60000 and w.due <= ctx.now + service.longest then
      w.id = ids[i]
      head.list[#head.list + 1] = w
    elseif not s.reading then
      leave(ctx, s, ids[i], w or { namespace = head.name, need = need_of(s, {}) })
    end
  end
end

-- away tells whether one that waits is not in a slot, or has not asked when it was to.
local function away(ctx, w, id) return w.id ~= id and (w.state ~= 's' or ctx.now > w.due + service.late) end

-- order lists who comes next, at most so many, for one that asks. Who is away takes no turn from those behind it.
local function order(ctx, s, most, id)
  local list, out = heads(ctx, s, most), {}
  while #out < most do
    local first = nil
    for i = 1, #list do
      if not list[i].over and (not first or list[i].at < first.at) then first = list[i] end
    end
    if not first then return out end
    if not first.list then fetch(ctx, s, first, most) end
    local w = first.list[first.next]
    if w then
      out[#out + 1], first.next = w, first.next + 1
      w.away = away(ctx, w, id)
      if not w.away then first.at = first.at + cost(s, w.need, s.weights[first.name]) end
    else
      first.over = true
    end
  end
  return out
end

-- wake has one woken that is away, if its turn is near and it was not woken just now.
local function wake(ctx, s, w, wakes)
  if #wakes >= 8 or w.state == 'w' and ctx.now < w.due or w.state == 's' then return end
  wakes[#wakes + 1] = w.id
  due(ctx, s, w, w.id, 'w', ctx.now + service.again)
end

-- walk goes through the line as it comes next: who is in a slot and fits goes before who is behind it, those that are
-- away are woken when they are near. It returns whether the one with this id goes, its place, and in how many ms its
-- turn comes; place nil: it is further behind. Without an id only the others are woken.
local function walk(ctx, s, id, wakes)
  local level, ahead, held, before, stopped = {}, {}, s.held, s.held, s.closed > 0
  for i = 1, #s.dims do
    local dim = s.dims[i].dim
    level[dim], ahead[dim] = s.level[dim], s.level[dim]
  end
  local list = order(ctx, s, service.looked, id)
  for i = 1, #list do
    local w = list[i]
    local ms = s.closed + until_room(s, w.need, ahead, before)
    if w.away then
      if ms <= service.near then wake(ctx, s, w, wakes) end
    elseif stopped or until_room(s, w.need, level, held) > 0 then
      stopped = true
    else
      if w.id == id then return true, i, 0 end
      take(s, w.need, level)
      held = held + 1
    end
    if w.id == id then return false, i, ms end
    take(s, w.need, ahead)
    before = before + 1
  end
  return false, nil, nil
end

-- guess is the place, and the wait in ms, of one that is far behind.
local function guess(ctx, s, q, w)
  local count = math.max(1, number(s, 'wn'))
  local rank = redis.call('ZRANK', keys.queued(ctx.r, s.name, w.namespace), q.execution) or 0
  local place = math.max(service.looked + 1, math.min(count, (rank + 1) * redis.call('ZCARD', keys.takers(ctx.r,
    s.name))))
  local mean, level = {}, {}
  for i = 1, #s.dims do
    local d = s.dims[i]
    mean[d.dim] = math.min(w.need[d.dim], d.burst)
    level[d.dim] = s.level[d.dim] - number(s, 'w:' .. d.dim) / count * (place - 1) * parts
  end
  return place, s.closed + until_room(s, mean, level, s.held + place - 1)
end

-- line reads who comes next, for people, with the ms until its turn, and one that waits: its place, that time and what
-- it waits for.
function service.line(ctx, s, most, id)
  s.reading = true
  local ahead, list, out, own = {}, order(ctx, s, id ~= '' and service.looked or most, id), {}, nil
  for dim, n in pairs(s.level) do ahead[dim] = n end
  for i = 1, #list do
    local w = list[i]
    local ms = s.closed + until_room(s, w.need, ahead, s.held + i - 1)
    take(s, w.need, ahead)
    if w.id == id then own = { i, ms, w.need } end
    if i <= most then
      out[i] = table.concat({ w.id, w.state, reply.int(w.due), reply.int(ms), w.namespace }, ' ') .. '\31' ..
        ledger.text(w.need)
    end
  end
  local w = not own and id ~= '' and asked(s, redis.call('HGET', keys.asking(ctx.r, s.name), id) or nil)
  if w then
    local place, ms = guess(ctx, s, { execution = id }, w)
    own = { place, ms, w.need }
  end
  return out, own or { 0, 0, {} }
end

-- go lets a call through.
local function go(ctx, s, q, need, fields)
  local r, name = ctx.r, s.name
  take(s, need, s.level)
  s.held = s.held + 1
  redis.call('ZADD', keys.calls(r, name), ctx.t, q.hold)
  redis.call('PEXPIRE', keys.calls(r, name), reply.int(meter.kept))
  redis.call('ZADD', keys.reserved(r), reply.int(ctx.now + ledger.vouched), name .. ' ' .. q.hold)
  local takers, turns, place = keys.takers(r, name), keys.turn(r, name), nil
  if number(s, 'wn') > 0 then place = redis.call('ZSCORE', takers, q.namespace) end
  local start = place and math.max(number(s, 'v'), args.score(place)) or turn(ctx, s, q.namespace)
  local after = reply.int(start + cost(s, need, s.weights[q.namespace]))
  if place then redis.call('ZADD', takers, after, q.namespace) end
  if start > number(s, 'v') then
    redis.call('ZREMRANGEBYSCORE', turns, '-inf', reply.int(start))
    s.p.v = reply.int(start)
    fields[#fields + 1], fields[#fields + 2] = 'v', s.p.v
  end
  redis.call('ZADD', turns, after, q.namespace)
  redis.call('PEXPIRE', turns, reply.int(service.idle))
end

-- waiting are the fields of the pace that say what is waited for.
local function waiting(s, fields)
  fields[#fields + 1], fields[#fields + 2] = 'wn', s.p.wn
  for i = 1, #s.dims do
    local field = 'w:' .. s.dims[i].dim
    fields[#fields + 1], fields[#fields + 2] = field, s.p[field] or '0'
  end
end

-- acquire lets a call through, or says when to ask again: stay in how many ms from the slot, else after being away.
function service.acquire(ctx, s, q, by)
  local out = { stay = false, retry = 0, place = 0, wakes = {} }
  if redis.call('ZSCORE', keys.calls(ctx.r, s.name), q.hold) then
    out.admitted, out.already = true, true
    return out
  end
  local need, fields, w = need_of(s, by), {}, nil
  if number(s, 'wn') == 0 then
    out.admitted = s.closed == 0 and until_room(s, need, s.level, s.held) == 0
  end
  if not out.admitted then
    w = asked(s, redis.call('HGET', keys.asking(ctx.r, s.name), q.execution) or nil)
    if w and w.namespace ~= q.namespace then -- never of one execution
      leave(ctx, s, q.execution, w)
      w = nil
    end
    w = w or enter(ctx, s, q, need)
    if w then
      for dim, n in pairs(need) do s.p['w:' .. dim] = reply.int(number(s, 'w:' .. dim) + n - (w.need[dim] or 0)) end
      w.need = need
      due(ctx, s, w, q.execution, 's', ctx.now)
      out.admitted, out.place, out.retry = walk(ctx, s, q.execution, out.wakes)
      if not out.place then out.place, out.retry = guess(ctx, s, q, w) end
    else
      out.place, out.retry = guess(ctx, s, q, { namespace = q.namespace, need = need })
    end
  end
  if out.admitted then
    go(ctx, s, q, need, fields)
    if w then leave(ctx, s, q.execution, w) end
  else
    out.retry = math.max(10, math.min(out.retry, service.longest))
    local patience = s.patience
    if redis.call('ZCARD', keys.takers(ctx.r, s.name)) > 1 then patience = patience / 4 end
    out.stay = out.retry <= patience and q.waited <= 4 * s.patience
    if out.stay then out.retry = math.min(out.retry, 500) end
    if w then due(ctx, s, w, q.execution, out.stay and 's' or 'a', ctx.now + out.retry) end
  end
  if w then waiting(s, fields) end
  service.save(ctx, s, fields)
  return out
end

-- refused notes that a service refused a call: it is closed for everybody, for as long as it says or else 1 s, twice
-- as long each time until a call succeeds, at most a minute; and its rate falls (service.factor).
local function refused(ctx, s, pause, fields)
  local n, la = number(s, 'n'), number(s, 'la')
  local function put(field, value)
    s.p[field] = reply.int(value)
    fields[#fields + 1], fields[#fields + 2] = field, s.p[field]
  end
  if s.closed == 0 then -- else it was under way when the service was closed
    n = n + 1
    put('n', n)
  end
  if ctx.now >= la + 1000 or la > ctx.now then
    put('f', math.max(50, math.floor(service.factor(ctx, s) * 7 / 10)))
    put('fa', ctx.now)
  end
  if pause == 0 then pause = s.closed == 0 and math.min(60000, 1000 * 2 ^ math.min(n - 1, 6)) or 0 end
  put('cu', ctx.now + math.max(s.closed, math.min(pause, service.longest)))
  put('la', ctx.now)
  put('ln', number(s, 'ln') + 1)
end

-- finish ends a call, once: settle with what was used, release if it was not made, refused if the service refused it,
-- and over if nobody says: its lease is. What was estimated and not used is given back. It returns whether it was under
-- way, and who is woken.
function service.finish(ctx, s, q)
  local calls, wakes = keys.calls(ctx.r, s.name), {}
  local began = redis.call('ZSCORE', calls, q.hold)
  if not began then return false, wakes end
  redis.call('ZREM', calls, q.hold)
  redis.call('ZREM', keys.reserved(ctx.r), s.name .. ' ' .. q.hold)
  s.held = math.max(0, s.held - 1)
  local fields = {}
  if q.how == 'refused' then
    refused(ctx, s, q.pause, fields)
  elseif q.how == 'settle' then
    if s.closed == 0 and number(s, 'n') > 0 then fields = { 'n', '0' } end
    local took = math.max(0, math.min(ctx.now - args.score(began), 600000))
    fields[#fields + 1] = 'du'
    fields[#fields + 1] = reply.int(math.floor((4 * tonumber(s.p.du or reply.int(took)) + took) / 5))
  end
  for i = 1, q.how ~= 'over' and #s.dims or 0 do
    local d = s.dims[i]
    local estimate, used = math.min(d.rate, q.estimate[d.dim] or 0), q.used[d.dim] or 0
    if d.dim == 'requests' then
      estimate = q.estimate.requests or 1
      used = q.how == 'release' and 0 or math.max(used, 1)
    end
    s.level[d.dim] = math.max(-10 * d.rate * parts, math.min(d.burst * parts, s.level[d.dim] +
      (estimate - used) * parts))
  end
  if number(s, 'n') < 2 or q.how == 'settle' then s.cap = s.calls end
  if number(s, 'wn') > 0 then
    walk(ctx, s, '', wakes)
    waiting(s, fields)
  end
  service.save(ctx, s, fields)
  return true, wakes
end

-- purge forgets what a service counted and who waits for it.
function service.purge(ctx, name)
  local r = ctx.r
  local list = redis.call('ZRANGE', keys.takers(r, name), '0', '-1')
  for i = 1, #list do redis.call('UNLINK', keys.queued(r, name, list[i])) end
  redis.call('UNLINK', keys.pace(r, name), keys.calls(r, name), keys.takers(r, name), keys.turn(r, name),
    keys.asking(r, name))
end
