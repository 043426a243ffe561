-- ledger: what a gate keeps of an execution that uses of its amounts, and of what it has reserved. Fields of a ledger:
--   b when the gate was made   p the period of d:<dim>, what was used in it   x when it is forgotten
--   e q e2 q2 the newest epochs and the numbers of their last reports   lt late reports   rp la the last report
--   n what it waits for room for (meter.needs)
--   k the oldest epoch whose reservations are known when they are over, the newest epoch at a time, and that time
--   a:<dim> an allowance: by how much more it alone may pass a limit in this period (ledger.excess)
--   o:<epoch>.<number> an open reservation: its period, the gate whose word decides, and the amounts
--   o:0.1 a share: what is left of what a parent has reserved for its child, which uses that and no more; sh all of it
--   so the parent of a share, of whose own share it is a part, if that has one
--   os how many of the shares that it has set aside for children are open
--   f:<epoch>.<number> one that is over: s settled, c charged because its lease was over, r that and refunded, v void,
--   and the amounts; of s all that were told, also those that a strict gate does not count
-- What is reserved counts as used, and v:<dim> of a gate says how much of that it is. A reservation in several gates is
-- decided by one of them: the last that is asked. What it does not know when the lease is over was never held by all,
-- and is given back; else all settle as it says, in full if nobody told what was used: the call may have been paid.
local ledger = {}

local most, day = 9007199254740991, 86400000

ledger.vouched = 60000 -- ms that a reservation is good until it is asked about
ledger.place = 120000 -- ms that a place in line counts after its execution has asked
ledger.again = 60000 -- ms after which one in line asks again at the latest, if this period can serve it
ledger.asked = 600000 -- ms that it is known how the reservations of an epoch ended that is not one of the newest two

-- text writes amounts by dimension.
function ledger.text(by)
  local list = {}
  for dim, n in pairs(by) do list[#list + 1] = dim .. '=' .. reply.int(n) end
  table.sort(list)
  return table.concat(list, ',')
end

-- amounts reads them.
function ledger.amounts(text)
  local by = {}
  for dim, n in string.gmatch(text, '([^,=]+)=(%d+)') do by[dim] = tonumber(n) end
  return by
end

-- lasts is how long a ledger stays, ms: a week, and longer than the period.
local function lasts(ctx, b) return math.max(meter.kept, meter.left(ctx, b) + day) end

-- share is what is left of the share of an execution, by dimension, and whether it is of this period, so that the gate
-- counts it as reserved; nil if there is none.
function ledger.share(b, l)
  local period, text = string.match(l['o:0.1'] or '', '^(%d+) [^ ]* (.*)$')
  if not period then return nil end
  return ledger.amounts(text), period == b.d.rc
end

-- leave notes what is left of a share now.
function ledger.leave(l, rest, fields)
  fields[#fields + 1] = 'o:0.1'
  fields[#fields + 1] = string.match(l['o:0.1'], '^%d+ [^ ]* ') .. ledger.text(rest)
end

-- within judges amounts of an execution with a share: what of them the gate does not count yet, or nil and a breach
-- of the first dimension by name of which less is left, unless the gate only warns.
function ledger.within(b, l, deltas)
  local rest, live = ledger.share(b, l)
  if not rest then return deltas end
  local out, all = { order = {}, by = {} }, ledger.amounts(l.sh)
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    local n, left = deltas.by[dim], rest[dim]
    if left and n > left and b.d.md ~= 'warn' then
      return nil, { { dim = dim, kind = 'hard', used = all[dim] - left, limit = all[dim] } }
    end
    if live and left then n = math.max(0, n - left) end
    if n > 0 or not left then out.order[#out.order + 1], out.by[dim] = dim, n end
  end
  return out
end

-- draw takes amounts out of a share, and returns by how much what is reserved changes, nil if it does not.
function ledger.draw(b, l, by, fields)
  local rest, live = ledger.share(b, l)
  if not rest then return nil end
  local held = {}
  for dim, n in pairs(by) do
    if rest[dim] then
      local part = math.min(n, rest[dim])
      rest[dim], held[dim] = rest[dim] - part, live and -part or nil
    end
  end
  ledger.leave(l, rest, fields)
  return held
end

-- restore puts amounts back into a share, as far as it had them, and returns how much of them.
function ledger.restore(l, rest, dim, n)
  local back = math.min(n, ledger.amounts(l.sh)[dim] - rest[dim])
  rest[dim] = rest[dim] + back
  return back
end

-- write puts fields into a ledger, takes some out, and adds what was used.
function ledger.write(ctx, b, id, l, fields, gone, by)
  local key, r = keys.ledger(ctx.r, b.name, id), ctx.r
  if l.p and l.p ~= b.d.rc then -- what was counted in an earlier period is not taken back from what is now
    gone[#gone + 1] = 'la'
    for field in pairs(l) do
      local area = string.sub(field, 1, 2)
      if area == 'd:' or area == 'a:' then
        gone[#gone + 1] = field
        l[field] = nil
      end
    end
  end
  if not l.b then redis.call('DEL', key) end -- what another gate of the name left
  fields[#fields + 1], fields[#fields + 2], fields[#fields + 3], fields[#fields + 4] = 'b', b.d.ct, 'p', b.d.rc
  for dim, n in pairs(by or {}) do
    fields[#fields + 1] = 'd:' .. dim
    fields[#fields + 1] = reply.int(math.max(0, math.min(most, tonumber(l['d:' .. dim] or '0') + n)))
  end
  meter.some('HDEL', key, gone)
  meter.some('HSET', key, fields)
  local forget = tonumber(l.x or '')
  redis.call('PEXPIRE', key, reply.int(forget and forget - ctx.now or lasts(ctx, b)))
  if not by or forget then return end
  redis.call('ZADD', keys.spenders(r, b.name), ctx.t, id)
  local old = redis.call('ZRANGEBYSCORE', keys.spenders(r, b.name), '-inf', reply.int(ctx.now - meter.kept), 'LIMIT',
    '0', '10')
  if #old > 0 then redis.call('ZREM', keys.spenders(r, b.name), unpack(old)) end
end

-- marks are the fields of a gate that a report or a reservation changes: what it breached, and what was refused.
local function marks(ctx, b, q, breaches, refused)
  local fields, hard, soft = {}, nil, false
  local function put(field, value) fields[#fields + 1], fields[#fields + 2] = field, value end
  for i = 1, #breaches do
    local x = breaches[i]
    if x.kind == 'hard' then hard = hard or x.dim else soft = true end
    if x.crossed then
      put('w:' .. x.dim, b.d.rc)
      if b.d.sf == 'warn' then
        meter.note(ctx, keys.gate_log(ctx.r, b.name), 'soft_limit', q.id,
          x.dim .. ' ' .. reply.int(x.used) .. ' ' .. reply.int(x.limit))
      end
    end
  end
  if hard and not q.breached then
    put('bc', reply.int(tonumber(b.d.bc) + 1))
    put('ba', ctx.t)
    put('bd', hard)
  end
  if soft then put('bs', reply.int(tonumber(b.d.bs) + 1)) end
  if refused and not q.breached then
    for dim, n in pairs(q.deltas.by) do
      if b.d['h:' .. dim] then put('z:' .. dim, reply.int(math.min(most, tonumber(b.d['z:' .. dim] or '0') + n))) end
    end
  end
  if refused and q.sequence > 0 and q.action == 'block' then put('nd', meter.stage(b)) end
  return fields
end

-- hold changes what is reserved of a gate.
function ledger.hold(ctx, b, held)
  local fields = {}
  for dim, n in pairs(held) do
    b.d['v:' .. dim] = reply.int(math.max(0, tonumber(b.d['v:' .. dim] or '0') + n))
    fields[#fields + 1], fields[#fields + 2] = 'v:' .. dim, b.d['v:' .. dim]
  end
  meter.some('HSET', keys.gate(ctx.r, b.name), fields)
end

-- count adds amounts to what is used of a gate, unless they are refused, and a breach whether they are or not. held is
-- what of them is reserved, or reserved no more.
function ledger.count(ctx, b, q, breaches, refused, held)
  meter.some('HSET', keys.gate(ctx.r, b.name), marks(ctx, b, q, breaches, refused))
  ledger.hold(ctx, b, held or {})
  if refused then return end
  local sets = {}
  for i = 1, #q.deltas.order do
    local dim = q.deltas.order[i]
    b.used[dim] = reply.int(math.max(0, math.min(most, meter.count(b, dim) + q.deltas.by[dim])))
    sets[#sets + 1], sets[#sets + 2] = dim, b.used[dim]
  end
  meter.some('HSET', keys.usage(ctx.r, b.name), sets)
  meter.hour(ctx, b, q.deltas.by)
end

-- answer is what a gate says: its verdict, whether the amounts count, and the breaches. Its caller appends who is
-- woken.
function ledger.answer(ctx, b, q, verdict, applied, late, breaches)
  local out = { verdict, applied and '1' or '0', late and '1' or '0', q.action or '', reply.int(meter.left(ctx, b)),
    b.d.rc, b.d.pa or '', reply.int(#breaches) }
  for i = 1, #breaches do
    local x = breaches[i]
    out[#out + 1] = x.dim .. ' ' .. x.kind .. ' ' .. reply.int(x.used) .. ' ' .. reply.int(x.limit) ..
      ' ' .. (x.crossed and '1' or '0')
  end
  return out
end

-- need writes what an execution waits for room for.
function ledger.need(ctx, b, l, q, fields)
  local before = meter.needs(b, l.n)
  fields[#fields + 1] = 'n'
  fields[#fields + 1] = meter.stage(b) .. ' ' .. reply.int((before and before.times or 0) + 1) .. ' ' .. ctx.t .. ' ' ..
    ledger.text(q.deltas.by)
end

-- stand puts an execution in line, in the order of queues: by priority, then by when it was created.
local function stand(ctx, b, q)
  local key = keys.line(ctx.r, b.name)
  redis.call('ZADD', key, reply.int(q.since - q.priority * 1000000000000), q.id)
  redis.call('PEXPIRE', key, reply.int(meter.kept))
  if redis.call('ZCARD', key) > 8192 then redis.call('ZREMRANGEBYRANK', key, '8192', '-1') end
end

-- rooms is how much there is room for, of each dimension that has a limit; with back, once everything that is reserved
-- in this period has been given back.
local function rooms(b, back)
  local free = {}
  for field in pairs(b.d) do
    if string.sub(field, 1, 2) == 'h:' then
      local dim = string.sub(field, 3)
      local hard = meter.hard(b, dim)
      if hard > 0 then
        free[dim] = hard - meter.count(b, dim) + (back and tonumber(b.d['v:' .. dim] or '0') or 0)
      end
    end
  end
  return free
end

-- beside is the room that others leave.
local function beside(free, others)
  local left = {}
  for dim, n in pairs(free) do left[dim] = n - (others[dim] or 0) end
  return left
end

-- lacking is the first dimension by name in which there is no room for amounts. nil: there is room.
local function lacking(free, by)
  local found = nil
  for dim, n in pairs(by) do
    if free[dim] and n > free[dim] and (not found or dim < found) then found = dim end
  end
  return found
end

-- first is who is first in line of those whom this period can serve, and what it waits for. Who has not asked for a
-- while is passed over until it asks again. Who does not wait any more, or has not asked for longer than it pauses,
-- leaves the line.
function ledger.first(ctx, b)
  if b.d.md == 'warn' or b.d.nd ~= meter.stage(b) then return nil end
  local key, free = keys.line(ctx.r, b.name), rooms(b, true)
  local list = redis.call('ZRANGE', key, '0', '63')
  for i = 1, #list do
    local l = redis.call('HMGET', keys.ledger(ctx.r, b.name, list[i]), 'b', 'n')
    local need = l[1] == b.d.ct and meter.needs(b, l[2] or nil)
    if not need or ctx.now - need.at > 2 * meter.patience(need) + ledger.vouched then
      redis.call('ZREM', key, list[i])
    elseif ctx.now - need.at <= ledger.place then
      local by = ledger.amounts(need.amounts)
      if not lacking(free, by) then return list[i], by end
    end
  end
  return nil
end

-- behind is the first dimension by name in which amounts do not fit beside what the first in line waits for, and that.
local function behind(ctx, b, id, by)
  local who, its = ledger.first(ctx, b)
  if not who or who == id then return nil end
  return lacking(beside(rooms(b), its), by), its
end

-- tight tells whether there is no room for amounts, as text.
local function tight(free, text)
  local number = tonumber
  for dim, n in string.gmatch(text, '([^=]+)=(%d+),?') do
    local room = free[dim]
    if room and number(n) > room then return true end
  end
  return false
end

-- pause is how long one waits that asked. One in line whom this period can serve asks often enough to keep its place.
local function pause(b, need, by, stands)
  local span = meter.patience(need)
  return stands and not lacking(rooms(b, true), by) and math.min(span, ledger.again) or span
end

-- spare is the allowance of an execution in this period, by dimension, nil if it has none.
function ledger.spare(b, l)
  if b.d.al ~= b.d.rc or l.p ~= b.d.rc then return nil end
  local by = nil
  for field, n in pairs(l) do
    if string.sub(field, 1, 2) == 'a:' and n ~= '0' then
      by = by or {}
      by[string.sub(field, 3)] = tonumber(n)
    end
  end
  return by
end

-- excess is what amounts of an execution lack, beside others if there are, by dimension; nil if its allowance does not
-- cover that. What the first in line waits for stays free for that one.
function ledger.excess(b, l, by, others)
  local spare, take = ledger.spare(b, l), {}
  if not spare then return nil end
  for dim, n in pairs(by) do
    local hard = meter.hard(b, dim)
    local over = meter.count(b, dim) + n - hard
    local lack = math.max(over, math.min(n, over + (others and others[dim] or 0)))
    if hard > 0 and lack > 0 then
      if lack > (spare[dim] or 0) then return nil end
      take[dim] = lack
    end
  end
  return take
end

-- lift takes what is lacking out of an allowance, and raises the limits of the period by it, so that the sums stay true
-- for everybody. It notes the fields of the ledger.
function ledger.lift(ctx, b, l, take, fields)
  local sets = {}
  for dim, n in pairs(take) do
    local mine, limit = 'a:' .. dim, 'x:' .. dim
    l[mine] = reply.int(tonumber(l[mine]) - n)
    b.d[limit] = reply.int(math.min(most, tonumber(b.d[limit] or '0') + n))
    fields[#fields + 1], fields[#fields + 2] = mine, l[mine]
    sets[#sets + 1], sets[#sets + 2] = limit, b.d[limit]
  end
  meter.some('HSET', keys.gate(ctx.r, b.name), sets)
end

-- covered tells whether the allowance of an execution covers what amounts lack beside those of another one.
local function covered(ctx, b, id, by, its)
  if b.d.al ~= b.d.rc then return false end
  return ledger.excess(b, meter.ledger(ctx, b, id), by, its) ~= nil
end

-- reached has 1 of each dimension that has reached its limit.
local function reached(b)
  local by = {}
  for field in pairs(b.d) do
    local dim = string.match(field, '^h:(.*)$')
    if dim and meter.hard(b, dim) > 0 and meter.count(b, dim) >= meter.hard(b, dim) then by[dim] = 1 end
  end
  return by
end

-- shared tells whether something is left of a share in each of these dimensions, or it has set shares aside: it goes on
-- when their children have ended, and gives them back.
local function shared(ctx, b, id, by)
  local v = redis.call('HMGET', keys.ledger(ctx.r, b.name, id), 'b', 'o:0.1', 'os')
  if v[1] == b.d.ct and (v[3] or '0') ~= '0' then return true end
  local rest, live = ledger.share(b, { ['o:0.1'] = v[1] == b.d.ct and v[2] or nil })
  for dim in pairs(rest and live and by or {}) do
    if (rest[dim] or 0) == 0 then return false end
  end
  return live
end

-- allowed counts the first of these holds whose executions go on though a limit is reached: each has set shares aside,
-- or has a share of each dimension that has reached its limit, or an allowance, for what it waits for, or if that is
-- not known, for something of each of these dimensions.
function ledger.allowed(ctx, b, list)
  local full = reached(b)
  for i = 1, #list do
    local id = string.match(list[i], '^[^:]*')
    if not shared(ctx, b, id, full) then
      if b.d.al ~= b.d.rc then return i - 1 end
      local l = meter.ledger(ctx, b, id)
      local need = meter.needs(b, l.n)
      if not ledger.excess(b, l, need and ledger.amounts(need.amounts) or full) then return i - 1 end
    end
  end
  return #list
end

-- short finds the first of these holds whose execution was refused more than there is room for, or waits behind the
-- first in line: a dimension, the amount, how many are before it, and how long to wait. That it asked is noted. Who is
-- first is looked up once.
function ledger.short(ctx, b, list)
  if b.d.md == 'warn' or b.d.nd ~= meter.stage(b) then return nil end
  local stage, line = meter.stage(b) .. ' ', keys.line(ctx.r, b.name)
  local free, left, who, its, last = rooms(b), nil, nil, nil, nil
  for i = 1, #list do
    local id = string.match(list[i], '^[^:]*')
    local key = keys.ledger(ctx.r, b.name, id)
    local l = redis.call('HMGET', key, 'b', 'n')
    local need = l[1] == b.d.ct and meter.needs(b, l[2] or nil)
    if need then
      redis.call('HSET', key, 'n', stage .. reply.int(need.times) .. ' ' .. ctx.t .. ' ' .. need.amounts)
      if not left then
        who, its = ledger.first(ctx, b)
        left = its and beside(free, its) or free
      end
      if need.amounts ~= last and tight(left, need.amounts) then
        local by, stands = ledger.amounts(need.amounts), redis.call('ZSCORE', line, id)
        local dim = lacking(free, by) or stands and who ~= id and lacking(left, by)
        if dim and not covered(ctx, b, id, by, who ~= id and its or nil) then
          return { dim = dim, amount = reply.int(by[dim]), first = i - 1, pause = pause(b, need, by, stands) }
        end
      else
        last = need.amounts -- there is room for them
      end
    end
  end
  return nil
end

-- quit takes an execution that has ended out of line, unless an attempt of a later epoch has asked since; epoch 0 is
-- any. It returns whether it stood there.
function ledger.quit(ctx, b, id, epoch)
  local key = keys.ledger(ctx.r, b.name, id)
  local l = redis.call('HMGET', key, 'b', 'e')
  if epoch > 0 and l[1] == b.d.ct and tonumber(l[2] or '0') > epoch then return false end
  redis.call('HDEL', key, 'n')
  return redis.call('ZREM', keys.line(ctx.r, b.name), id) == 1
end

-- woken takes up to 256 of those who wait for amounts of a gate, if there is room for the first in line.
function ledger.woken(ctx, b, out)
  if meter.exhausted(b) then return out end
  local who, by = ledger.first(ctx, b)
  if not who or not lacking(rooms(b), by) then meter.waiters(keys.amount_waiters(ctx.r, b.name), 256, out) end
  return out
end

-- room appends them to an answer.
function ledger.room(ctx, b, out) return reply.add(out, ledger.woken(ctx, b, {})) end

-- horizon reads the oldest epoch whose reservations are known when they are over, the newest at a time, and that time.
local function horizon(l)
  local low, newest, at = string.match(l.k or '', '^(%d+) (%d+) (%d+)$')
  return tonumber(low or '0'), tonumber(newest or '0'), tonumber(at or '0')
end

-- over are the fields of reservations that are over, of which nobody asks any more: those of an epoch before a number,
-- and those of all epochs that were neither of the newest two for ten minutes. It notes in fields which these are.
local function over(ctx, l, q, fields, newest, second)
  local list, old, low, before, at = {}, 0, horizon(l)
  if newest > before and ctx.now - at >= ledger.asked then
    old = math.max(low, math.min(before, second))
    fields[#fields + 1], fields[#fields + 2] = 'k', reply.int(old) .. ' ' .. reply.int(newest) .. ' ' .. ctx.t
  end
  for field in pairs(l) do
    local epoch, number = string.match(field, '^f:(%d+)%.(%d+)$')
    epoch = tonumber(epoch or '')
    if epoch and (epoch < old or epoch == q.epoch and tonumber(number) < q.below) then list[#list + 1] = field end
  end
  return list
end

-- taken answers a reservation that was made before, or may not be made any more; nil if it is new.
local function taken(ctx, b, q, l, name)
  local held = l['o:' .. name]
  if held then
    local was = q.epoch == 0 and l.sh or string.match(held, ' ([^ ]*)$')
    if was ~= q.amounts then return reply.err('idempotency_conflict', name) end
    local out = ledger.answer(ctx, b, q, 'OK', true, false, {})
    out[#out + 1], out[#out + 2] = '0', ''
    return reply.already(unpack(out))
  end
  if l['f:' .. name] or q.epoch < tonumber(l.e or '0') then return reply.err('stale_lease') end
  return nil
end

-- known tells whether there is, or was, a reservation of an execution under its number.
function ledger.known(ctx, b, q)
  local l, name = meter.ledger(ctx, b, q.id), reply.int(q.epoch) .. '.' .. reply.int(q.sequence)
  return (l['o:' .. name] or l['f:' .. name]) ~= nil
end

-- holds tells whether an execution has reserved something: it goes on, whoever waits in line.
local function holds(l)
  for field in pairs(l) do
    if string.sub(field, 1, 2) == 'o:' then return true end
  end
  return false
end

-- source is the ledger with the share that amounts are drawn from: that of the execution, or of a share the parent's.
local function source(ctx, b, l, of) return of ~= '' and meter.ledger(ctx, b, of) or l end

-- sets notes in the ledger of a parent that one more of its shares is open, or one less, and what is left of its own.
local function sets(ctx, b, of, from, n, fields)
  if n < 0 and not from.b then return end -- that one is gone
  fields[#fields + 1], fields[#fields + 2] = 'os', reply.int(math.max(0, tonumber(from.os or '0') + n))
  ledger.write(ctx, b, of, from, fields, {})
end

-- place judges a reservation: it is refused if it does not fit, alone or beside what the first in line waits for,
-- unless an allowance covers that, or if it is more than is left of the share that it is drawn from. It notes the
-- fields of the ledger, and what the gate does not count yet. nil, and a dimension: it cannot be counted.
local function place(ctx, b, q, l, fields)
  local part, beyond = ledger.within(b, q.from, q.deltas)
  if not part then return beyond, nil, true, 'HARD_BREACH', 'reject' end
  q.deltas = part
  local breaches, overflow, refused, verdict = meter.judge(b, q.deltas)
  if not breaches then return nil, overflow end
  local by, dim, its = q.deltas.by, nil, nil
  if not holds(l) and (not refused or ledger.spare(b, l)) then dim, its = behind(ctx, b, q.id, by) end
  if dim and not refused then
    refused, verdict = true, 'HARD_BREACH'
    breaches = { { dim = dim, kind = 'hard', used = meter.count(b, dim), limit = meter.hard(b, dim) } }
  end
  local take = refused and ledger.excess(b, l, by, its)
  if not take then return breaches, nil, refused, verdict end
  ledger.lift(ctx, b, l, take, fields)
  return meter.judge(b, q.deltas)
end

-- reserve sets amounts aside for an execution, all dimensions or none.
function ledger.reserve(ctx, b, q)
  local l, name = meter.ledger(ctx, b, q.id), reply.int(q.epoch) .. '.' .. reply.int(q.sequence)
  local before = taken(ctx, b, q, l, name)
  if before then return before end
  local fields, parts = {}, {}
  q.from = source(ctx, b, l, q.of)
  local breaches, overflow, refused, verdict, action = place(ctx, b, q, l, fields)
  if not breaches then return reply.err('invalid_delta', overflow, 'the total would pass 9007199254740991') end
  q.action = action or refused and meter.action(b, q, breaches) or b.d.hd
  local out = ledger.answer(ctx, b, q, verdict, not refused, false, breaches)
  meter.save(ctx, b)
  ledger.count(ctx, b, q, breaches, refused, not refused and q.deltas.by or nil)
  local e = tonumber(l.e or '0')
  local gone = over(ctx, l, q, fields, q.epoch, q.epoch > e and e or tonumber(l.e2 or '0'))
  if q.epoch > e then
    local list = { 'e', reply.int(q.epoch), 'q', '0', 'e2', reply.int(e), 'q2', l.q or '0', 'rp', '', 'la', '' }
    for i = 1, #list do fields[#fields + 1] = list[i] end
  end
  if refused then
    if q.action == 'block' and q.since > 0 then
      ledger.need(ctx, b, l, q, fields)
      stand(ctx, b, q)
    end
    ledger.write(ctx, b, q.id, l, fields, gone)
    out[#out + 1], out[#out + 2] = '0', ''
    return { 1, 'OK', unpack(out) }
  end
  if l.n then
    gone[#gone + 1] = 'n'
    redis.call('ZREM', keys.line(ctx.r, b.name), q.id)
  end
  ledger.draw(b, q.from, ledger.amounts(q.amounts), q.of == '' and fields or parts)
  if q.of ~= '' then
    sets(ctx, b, q.of, q.from, 1, parts)
    fields[#fields + 1], fields[#fields + 2] = 'so', q.of
  end
  fields[#fields + 1], fields[#fields + 2] = 'o:' .. name, b.d.rc .. ' ' .. q.last .. ' ' .. q.amounts
  if q.epoch == 0 then fields[#fields + 1], fields[#fields + 2] = 'sh', q.amounts end
  ledger.write(ctx, b, q.id, l, fields, gone, {})
  redis.call('ZADD', keys.reserved(ctx.r), reply.int(ctx.now + ledger.vouched), b.name .. ' ' .. q.id .. ':' .. name)
  if l.n then ledger.room(ctx, b, out) else out[#out + 1] = '0' end -- those behind it in line
  out[#out + 1] = ''
  return { 1, 'OK', unpack(out) }
end

-- change is by how much what is used differs from what was reserved, or charged. What was reserved in an earlier period
-- is that one's; what was used beyond it is this one's.
local function change(b, period, reserved, used)
  local deltas, own = { order = {}, by = {} }, {}
  local function add(dim)
    if deltas.by[dim] then return end
    local n = (used[dim] or 0) - (reserved[dim] or 0)
    if period ~= b.d.rc then n = math.max(0, n) end
    deltas.order[#deltas.order + 1], deltas.by[dim] = dim, n
    own[dim] = period == b.d.rc and (used[dim] or 0) or n
  end
  for dim in pairs(used) do add(dim) end
  for dim in pairs(reserved) do add(dim) end
  table.sort(deltas.order)
  return deltas, own
end

-- more is what is used beyond what was: nothing else passes a limit.
local function more(deltas)
  local out = { order = {}, by = deltas.by }
  for i = 1, #deltas.order do
    if deltas.by[deltas.order[i]] > 0 then out.order[#out.order + 1] = deltas.order[i] end
  end
  return out
end

-- refill puts what a reservation did not use back into the share that it was drawn from, and takes what it used beyond
-- out of that: neither changes what the gate counts. It notes the fields of the ledger.
local function refill(b, l, x, deltas, back, fields)
  local rest, live = ledger.share(b, l)
  for i = 1, rest and #deltas.order or 0 do
    local dim = deltas.order[i]
    if rest[dim] then
      local counts = live and x.period == b.d.rc
      local more = counts and deltas.by[dim] or (x.used[dim] or 0) - (x.reserved[dim] or 0)
      local change = more < 0 and ledger.restore(l, rest, dim, -more) or -math.min(more, rest[dim])
      if more >= 0 then rest[dim] = rest[dim] + change end
      if counts then deltas.by[dim], back[dim] = more + change, (back[dim] or 0) + change end
    end
  end
  if rest then ledger.leave(l, rest, fields) end
end

-- close ends a reservation: letter is s, settled with what was used, c, charged in full, or v, not made after all. What
-- was charged is corrected when what was used turns up. A settlement that finds no reservation is charged, but not one
-- of an epoch of which it is not known any more what was settled: that may have been charged. It returns whether it did
-- something, breaches, the verdict, and whether that is not known.
function ledger.close(ctx, b, q, letter, used)
  local l, name = meter.ledger(ctx, b, q.id), reply.int(q.epoch) .. '.' .. reply.int(q.sequence)
  local held, done = l['o:' .. name], l['f:' .. name]
  if q.epoch == 0 and not held then return false, {}, 'OK' end
  if not held and not done and q.epoch < horizon(l) then return false, {}, 'OK', true end
  if done and (letter ~= 's' or string.find(done, '^[sr]')) then return false, {}, 'OK' end
  local period, rest = string.match(held or done and string.sub(done, 2) or b.d.rc .. ' ', '^(%d+).* ([^ ]*)$')
  local reserved = (held or done) and ledger.amounts(rest) or {}
  if letter == 'c' then used = reserved end
  local told = letter == 's' and q.amounts or ledger.text(used) -- also what it does not count: others may
  local deltas, own = change(b, period, reserved, used)
  if done and period == b.d.rc then
    for dim, n in pairs(reserved) do -- they are in what it used, unless that was given back
      own[dim] = (own[dim] or 0) - n
      deltas.by[dim] = math.max(deltas.by[dim], -tonumber(l['d:' .. dim] or '0'))
    end
  end
  local back, fields = {}, { 'f:' .. name, letter .. period .. ' ' .. told }
  for dim, n in pairs(held and period == b.d.rc and reserved or {}) do back[dim] = -n end
  local of, parts = q.epoch == 0 and l.so or '', {}
  local from = source(ctx, b, l, of)
  if q.epoch == 0 then fields, own = {}, nil end
  if q.epoch > 0 or of ~= '' then
    refill(b, from, { period = period, reserved = reserved, used = used }, deltas, back, of == '' and fields or parts)
  end
  local breaches, _, _, verdict = meter.judge(b, more(deltas))
  meter.save(ctx, b)
  ledger.count(ctx, b, { id = q.id, sequence = 0, deltas = deltas }, breaches or {}, false, back)
  local gone = over(ctx, l, q, fields, tonumber(l.e or '0'), tonumber(l.e2 or '0'))
  gone[#gone + 1] = 'o:' .. name
  if q.epoch == 0 then gone[#gone + 1], gone[#gone + 2] = 'sh', 'so' end
  ledger.write(ctx, b, q.id, l, fields, gone, own)
  if of ~= '' then sets(ctx, b, of, from, -1, parts) end
  redis.call('ZREM', keys.reserved(ctx.r), b.name .. ' ' .. q.id .. ':' .. name)
  return true, breaches or {}, verdict or 'OK'
end

-- sample remembers what a call of a label used: the last 64, for 30 days.
function ledger.sample(ctx, b, label, by)
  if label == '' then return end
  local key = keys.samples(ctx.r, b.name, label)
  redis.call('RPUSH', key, ledger.text(by))
  redis.call('LTRIM', key, '-64', '-1')
  redis.call('PEXPIRE', key, '2592000000')
end

-- estimate is what nine of ten remembered calls of a label did not pass, by dimension; '' when there are too few.
function ledger.estimate(ctx, b, label)
  if label == '' then return '' end
  local list = redis.call('LRANGE', keys.samples(ctx.r, b.name, label), '0', '-1')
  if #list < 8 then return '' end
  local by, out = {}, {}
  for i = 1, #list do
    for dim, n in pairs(ledger.amounts(list[i])) do
      by[dim] = by[dim] or {}
      by[dim][#by[dim] + 1] = n
    end
  end
  for dim, seen in pairs(by) do
    for _ = #seen + 1, #list do seen[#seen + 1] = 0 end -- it was not used
    table.sort(seen)
    out[dim] = seen[math.floor((#seen * 9 + 9) / 10)]
  end
  return ledger.text(out)
end

-- suspects are up to 64 reservations of a partition that are to be asked about: the gate,
-- "<execution>:<epoch>.<number>" and the gate whose word decides, / for a call of a service. Those of gates and
-- ledgers that are gone are forgotten.
function ledger.suspects(ctx)
  local key, out = keys.reserved(ctx.r), {}
  local list = redis.call('ZRANGEBYSCORE', key, '-inf', ctx.t, 'LIMIT', '0', '64')
  for i = 1, #list do
    local name, id, number = string.match(list[i], '^([^ ]+) ([^:]+):(.*)$')
    local v = redis.call('HMGET', keys.ledger(ctx.r, name, id), 'o:' .. number, 'b')
    if v[1] and v[2] == redis.call('HGET', keys.gate(ctx.r, name), 'ct') then
      out[#out + 1], out[#out + 2], out[#out + 3] = name, id .. ':' .. number, string.match(v[1], '^%d+ ([^ ]*) ')
    elseif redis.call('ZSCORE', keys.calls(ctx.r, name), id .. ':' .. number) then
      out[#out + 1], out[#out + 2], out[#out + 3] = name, id .. ':' .. number, '/'
    else
      redis.call('ZREM', key, list[i])
    end
  end
  return out
end

-- vouch says that the lease of a reservation lasts, so that its ledger does.
function ledger.vouch(ctx, b, name, id, number)
  local member = name .. ' ' .. id .. ':' .. number
  redis.call('ZADD', keys.reserved(ctx.r), 'XX', reply.int(ctx.now + ledger.vouched), member)
  local key = keys.ledger(ctx.r, name, id)
  local l = b and redis.call('HMGET', key, 'o:' .. number, 'x') or {}
  if l[1] and not l[2] then redis.call('PEXPIRE', key, reply.int(lasts(ctx, b))) end
end
