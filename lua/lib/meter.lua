-- meter: a gate lives in a partition of its own kind, "{g:n}", and has up to three meters: amounts that may be used in
-- a period, starts in a window, and how many run at once (lib/starts.lua). Its definition has
--   df its text, to compare   sc scope, for people   md strict or warn   hd reject, fail, block or ask   sf allow or
--   warn
--   iv reset interval, ms      st 1 = strict dimensions      rf outcomes that are refunded      h:<dim> s:<dim> limits
--   rt starts a window   wn window, ms   cp how many at once   jt jitter, ms; 0 is no limit   pa the gate above it
--   sv and others, of a service (lib/service.lua), whose gate has none of these meters
-- and what happened to it:
--   ct created up revision by who changed it nx next reset rc resets, the number of the period ps period began lr
--   last reset
--   ms periods missed by the last reset   bc bs breaches, hard and soft   ba bd last hard breach, when and where
--   v:<dim> what is reserved of what is used (ledger)   x:<dim> by how much a limit is raised in this period
--   al the period in which an execution was last given an allowance (ledger.spare)
--   w:<dim> the period in which a soft breach was told   z:<dim> what was refused in this period, if it is limited
--   hr the hour that was used of last, since 1970 (meter.hour)
--   nd the period and revision in which work was refused last that waits for room (ledger.first)
-- Periods end by themselves: a write to a gate whose time has come resets it first, and a read shows it as if it
-- were reset.
-- It counts amounts if it limits some, or limits nothing at all. A limit of a key has no definition (args.limit): its
-- name says it, and it counts no amounts.
local meter = {}

local US, most = '\31', 9007199254740991

meter.kept = 604800000 -- ms that the ledger of an execution is kept after its last report, at least
meter.late = 1800000 -- ms that it is kept after a purge of the execution, for what is under way
meter.pause = 30000 -- ms until a route that a gate refused asks again, if nobody wakes it
meter.dimensions = 64 -- that are counted in a period, and that have limits

local function hash(key)
  local v, h = redis.call('HGETALL', key), {}
  for i = 1, #v, 2 do h[v[i]] = v[i + 1] end
  return h
end

meter.hash = hash

-- roll begins the next period of what was read, if its time has come.
local function roll(ctx, b)
  local nx, iv = tonumber(b.d.nx or ''), tonumber(b.d.iv or '0')
  if not nx or iv == 0 or ctx.now < nx then return end
  local missed = math.floor((ctx.now - nx) / iv)
  meter.reset(ctx, b, missed, nx + (missed + 1) * iv, 'time')
end

-- some runs a command on any number of fields.
function meter.some(command, key, list)
  for first = 1, #list, 1000 do redis.call(command, key, unpack(list, first, math.min(first + 999, #list))) end
end

-- listed writes amounts into one line, as many as a gate counts.
function meter.listed(list)
  table.sort(list)
  return table.concat(list, ',', 1, math.min(#list, meter.dimensions))
end

-- reset begins a new period.
function meter.reset(ctx, b, missed, nx, by)
  local list = {}
  for dim, n in pairs(b.used) do list[#list + 1] = dim .. '=' .. n end
  local d = b.d
  b.past = { period = d.rc, began = d.ps, used = meter.listed(list), missed = missed, by = by }
  b.used, b.rolled = {}, true
  d.rc, d.ps, d.lr, d.ms, d.nx = reply.int(tonumber(d.rc) + 1), ctx.t, ctx.t, reply.int(missed),
    nx and reply.int(nx) or nil
  d.ba, d.bd = nil, nil
  b.stale = meter.refused(d)
  for i = 1, #b.stale do d[b.stale[i]] = nil end
end

-- refused lists the fields of a definition that are of one period: what was refused, is reserved, and was raised.
function meter.refused(d)
  local list = {}
  for field in pairs(d) do
    local area = string.sub(field, 1, 2)
    if area == 'z:' or area == 'v:' or area == 'x:' then list[#list + 1] = field end
  end
  return list
end

-- limited tells whether a definition limits an amount.
local function limited(d)
  for field in pairs(d) do
    if string.sub(field, 1, 2) == 'h:' then return true end
  end
  return false
end

-- read returns a gate as it is now, nil when there is none: d its definition, counts whether it counts amounts, used
-- what was used of them, also by one that counts no more.
function meter.read(ctx, name)
  local l = args.limit(name)
  if l then
    return { name = name, rate = l.rate, window = l.window, cap = l.cap, jitter = 0, idle = true, used = {},
      d = { rt = reply.int(l.rate), wn = reply.int(l.window), cp = reply.int(l.cap), jt = '0', up = '0', ct = '0' } }
  end
  local d = hash(keys.gate(ctx.r, name))
  if not d.ct then return nil end
  local b = { name = name, d = d, rate = tonumber(d.rt), window = tonumber(d.wn), cap = tonumber(d.cp),
    jitter = tonumber(d.jt), used = hash(keys.usage(ctx.r, name)) } -- also what it counted before it was changed
  b.counts = not d.sv and (b.rate == 0 and b.cap == 0 or limited(d))
  roll(ctx, b)
  return b
end

-- meters tells what a gate measures: a amounts, h holds of starts and slots.
function meter.meters(b)
  return (b.counts and 'a' or '') .. ((b.rate > 0 or b.cap > 0) and 'h' or '')
end

-- note keeps what was said of a gate in its audit log: at most 256 entries.
function meter.note(ctx, key, what, by, detail)
  local entry = table.concat({ ctx.t, what, by, detail }, US)
  if redis.call('RPUSH', key, entry) > 256 then redis.call('LTRIM', key, -256, -1) end
end

-- save writes a reset that read found due, or that was asked for.
function meter.save(ctx, b)
  if not b.rolled then return end
  b.rolled = nil
  local d, key, p = b.d, keys.gate(ctx.r, b.name), b.past
  redis.call('DEL', keys.usage(ctx.r, b.name))
  redis.call('HSET', key, 'rc', d.rc, 'ps', d.ps, 'lr', d.lr, 'ms', d.ms)
  if d.nx then redis.call('HSET', key, 'nx', d.nx) end
  redis.call('HDEL', key, 'ba', 'bd', unpack(b.stale))
  meter.note(ctx, keys.gate_log(ctx.r, b.name), 'period', p.by,
    table.concat({ p.period, p.began, reply.int(p.missed), p.used }, ' '))
end

-- hard is the hard limit of a dimension in this period, 0 for none.
function meter.hard(b, dim)
  local hard = tonumber(b.d['h:' .. dim] or '0')
  return hard > 0 and math.min(most, hard + tonumber(b.d['x:' .. dim] or '0')) or 0
end

function meter.soft(b, dim) return tonumber(b.d['s:' .. dim] or '0') end

function meter.count(b, dim) return tonumber(b.used[dim] or '0') end

-- hour counts amounts in this hour, whatever its period: for 24 hours and this one. One that gives back counts less. It
-- has no more than 64 dimensions an hour: others are not counted there.
function meter.hour(ctx, b, by)
  local key, hour = keys.hours(ctx.r, b.name), math.floor(ctx.now / 3600000)
  local now = reply.int(hour)
  local begins = b.d.hr ~= now
  if begins then
    local gone, list = {}, redis.call('HKEYS', key)
    for i = 1, #list do
      local at = tonumber(string.match(list[i], '^%d+'))
      if at < hour - 24 or at > hour then gone[#gone + 1] = list[i] end
    end
    meter.some('HDEL', key, gone)
    b.d.hr = now
    redis.call('HSET', keys.gate(ctx.r, b.name), 'hr', now)
  end
  for dim, n in pairs(by) do
    local field, text = now .. ':' .. dim, reply.int(n)
    if n ~= 0 and redis.call('HINCRBY', key, field, text) == n and
      redis.call('HLEN', key) > 25 * meter.dimensions then
      redis.call('HDEL', key, field)
    end
  end
  if begins then redis.call('PEXPIRE', key, '93600000') end
end

-- hours are what hour counted: 24 hours ago first, each "<hours ago> <dimension> <amount>".
function meter.hours(ctx, b)
  local out, hour = {}, math.floor(ctx.now / 3600000)
  for field, n in pairs(hash(keys.hours(ctx.r, b.name))) do
    local at, dim = string.match(field, '^(%d+):(.*)$')
    local ago = hour - tonumber(at)
    if ago >= 0 and ago <= 24 and tonumber(n) > 0 then
      out[#out + 1] = (ago > 14 and '0' or '') .. reply.int(24 - ago) .. ' ' .. dim .. ' ' .. n
    end
  end
  table.sort(out)
  return out
end

-- exhausted returns a dimension that has reached its hard limit, nil when there is room in all of them. A gate that
-- only warns is never exhausted.
function meter.exhausted(b)
  if b.d.md == 'warn' then return nil end
  local found = nil
  for field in pairs(b.d) do
    if string.sub(field, 1, 2) == 'h:' then
      local dim = string.sub(field, 3)
      local hard = meter.hard(b, dim)
      if hard > 0 and meter.count(b, dim) >= hard and (not found or dim < found) then found = dim end
    end
  end
  return found
end

-- stage is the period and the limits that a refusal is about.
function meter.stage(b) return b.d.rc .. '.' .. b.d.up end

-- needs is what a ledger says its execution waits for room for: its field n is the stage, how often it was refused,
-- when it asked last, and the amounts. Nothing of another stage counts.
function meter.needs(b, text)
  local stage, times, at, amounts = string.match(text or '', '^([%d.]+) (%d+) (%d+) (.*)$')
  if stage ~= meter.stage(b) then return nil end
  return { times = tonumber(times), at = tonumber(at), amounts = amounts }
end

-- patience is how long one that waits for room pauses: twice as long after each refusal, up to an hour.
function meter.patience(need) return math.min(3600000, meter.pause * 2 ^ math.min(need.times - 1, 7)) end

-- unknown refuses dimensions that a strict gate does not know, all of them by name.
function meter.unknown(b, q)
  if b.d.st ~= '1' then return nil end
  local list = {}
  for i = 1, #q.deltas.order do
    local dim = q.deltas.order[i]
    if not b.d['h:' .. dim] then list[#list + 1] = dim end
  end
  return list[1] and reply.err('unknown_dimension', unpack(list))
end

-- action is what the gate wants done about a breach: what is larger than a limit fits into no period, so it does not
-- wait for one.
function meter.action(b, q, breaches)
  if b.d.hd ~= 'block' then return b.d.hd end
  for i = 1, #breaches do
    local x = breaches[i]
    if x.kind == 'hard' and q.deltas.by[x.dim] > x.limit then return 'fail' end
  end
  return 'block'
end

-- left is for how many ms the period goes on, 0 when it does not end.
function meter.left(ctx, b)
  local nx = tonumber(b.d.nx or '')
  return nx and math.max(1, nx - ctx.now) or 0
end

-- deltas merges amounts by dimension, in their order. nil, and what is wrong, when they pass what can be counted.
function meter.deltas(rows)
  local order, by = {}, {}
  for n = 1, #rows do
    local dim = rows[n].dimension
    if not by[dim] then order[#order + 1] = dim end
    by[dim] = (by[dim] or 0) + rows[n].amount
    if by[dim] > most or by[dim] < -most then return nil, dim end
  end
  return { order = order, by = by }
end

-- crowded returns a dimension for which a gate has no place: it counts no more than 64 in a period, of which those
-- with limits have theirs kept free.
function meter.crowded(b, deltas)
  local used, limited, new, other = 0, 0, nil, nil
  for _ in pairs(b.used) do used = used + 1 end
  for field in pairs(b.d) do
    if string.sub(field, 1, 2) == 'h:' and not b.used[string.sub(field, 3)] then limited = limited + 1 end
  end
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    if not b.used[dim] then
      used, new = used + 1, dim
      if b.d['h:' .. dim] then limited = limited - 1 else other = dim end
    end
  end
  if new and used > meter.dimensions then return new end
  return other and used + limited > meter.dimensions and other or nil
end

-- full is the refusal of a dimension that has no place.
function meter.full(dim)
  return reply.err('invalid_input',
    'dimension ' .. dim .. ': a gate counts at most ' .. reply.int(meter.dimensions) .. ' in a period')
end

-- judge says what a report would do: breaches, each { dim, kind, used, limit, crossed }, and whether it is refused.
function meter.judge(b, deltas)
  local out, refused, hard_breach, soft_breach = {}, false, false, false
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    local hard, used = meter.hard(b, dim), meter.count(b, dim)
    if used + deltas.by[dim] > most then return nil, dim end
    if hard > 0 and used + deltas.by[dim] > hard then
      hard_breach = true
      out[#out + 1] = { dim = dim, kind = 'hard', used = used, limit = hard, crossed = false }
    end
  end
  refused = hard_breach and b.d.md ~= 'warn'
  for i = 1, #out do
    if not refused then out[i].used = out[i].used + deltas.by[out[i].dim] end
  end
  if not refused then
    for i = 1, #deltas.order do
      local dim = deltas.order[i]
      local soft, now = meter.soft(b, dim), meter.count(b, dim) + deltas.by[dim]
      if soft > 0 and now > soft then
        soft_breach = true
        out[#out + 1] = { dim = dim, kind = 'soft', used = now, limit = soft, crossed = b.d['w:' .. dim] ~= b.d.rc }
      end
    end
  end
  return out, nil, refused, hard_breach and 'HARD_BREACH' or soft_breach and 'SOFT_BREACH' or 'OK'
end

-- ledger is what an execution, a spender, reported to this budget (its field b is when the gate was made, so that
-- one that was removed and made anew begins with none), empty if nothing. Its field x is when that of a purged
-- execution is forgotten.
function meter.ledger(ctx, b, id)
  local l = hash(keys.ledger(ctx.r, b.name, id))
  return l.b == b.d.ct and (tonumber(l.x or '') or ctx.now + 1) > ctx.now and l or {}
end

-- purged has the ledger of an execution that was purged forgotten soon: repeated reports and refunds that are under
-- way find it meanwhile.
function meter.purged(ctx, name, id)
  local key = keys.ledger(ctx.r, name, id)
  redis.call('ZREM', keys.spenders(ctx.r, name), id)
  if redis.call('EXISTS', key) == 0 or redis.call('HEXISTS', key, 'x') == 1 then return end
  redis.call('HSET', key, 'x', reply.int(ctx.now + meter.late))
  redis.call('PEXPIRE', key, reply.int(meter.late))
end

-- free gives the ledger's part of this period back, and returns whether there was any. Nothing is given back for the
-- end of an attempt, of this epoch, if a later one reported since; epoch 0 is any. Who did it is who asked, or the
-- outbox that tells of an end.
function meter.free(ctx, b, id, why, epoch)
  local key = keys.ledger(ctx.r, b.name, id)
  local l = meter.ledger(ctx, b, id)
  if l.p ~= b.d.rc then return false end
  if epoch > 0 and tonumber(l.e or '0') > epoch then return false end
  local list, gone, sets, final, back = {}, {}, {}, {}, {}
  for field, n in pairs(l) do
    if string.sub(field, 1, 2) == 'd:' then
      local dim = string.sub(field, 3)
      gone[#gone + 1] = field
      sets[#sets + 1], sets[#sets + 2] = dim, reply.int(math.max(0, meter.count(b, dim) - tonumber(n)))
      b.used[dim], back[dim] = sets[#sets], -tonumber(n)
      list[#list + 1] = dim .. '=' .. n
    elseif string.sub(field, 1, 2) == 'f:' and string.byte(n) == 99 then
      final[#final + 1], final[#final + 2] = field, 'r' .. string.sub(n, 2) -- no late settlement corrects it any more
    end
  end
  if #gone == 0 then return false end
  gone[#gone + 1] = 'la' -- the last report is given back with all others
  meter.some('HSET', keys.usage(ctx.r, b.name), sets)
  meter.hour(ctx, b, back)
  meter.some('HDEL', key, gone)
  meter.some('HSET', key, final)
  meter.note(ctx, keys.gate_log(ctx.r, b.name), 'release', why == 'asked' and trail.by(ctx) or 'outbox',
    id .. ' ' .. why .. ' ' .. meter.listed(list))
  return true
end

-- said is what a call answered that was made before under the request id that its caller made up, nil when there was
-- none.
function meter.said(ctx, name, request)
  local text = redis.call('GET', keys.report(ctx.r, name, ' ' .. request))
  local expiry, rest = string.match(text or '', '^(%d+) (.*)$')
  if not expiry or tonumber(expiry) <= ctx.now then return nil end
  return meter.again(rest)
end

-- again is an answer that was kept as text, given once more.
function meter.again(text)
  local out = pack.split(US .. 'ALREADY_SATISFIED' .. US .. text, US)
  out[1] = 1
  return out
end

-- say keeps the answer of such a call for a day, and returns it.
function meter.say(ctx, name, request, out)
  local day = 86400000
  local text = reply.int(ctx.now + day) .. ' ' .. table.concat(out, US, 3)
  redis.call('SET', keys.report(ctx.r, name, ' ' .. request), text, 'PX', reply.int(day))
  return out
end

-- waiters takes those who wait for a gate, oldest first, as partition and route.
function meter.waiters(key, limit, out)
  local list = redis.call('ZRANGE', key, '0', reply.int(limit - 1))
  if #list > 0 then redis.call('ZREM', key, unpack(list)) end
  for i = 1, #list do out[#out + 1] = list[i] end
end

-- wait has a route woken when there is room.
function meter.wait(ctx, key, partition, route_id)
  redis.call('ZADD', key, ctx.t, partition .. ' ' .. route_id)
  if redis.call('ZCARD', key) > 8192 then redis.call('ZPOPMIN', key) end
end
