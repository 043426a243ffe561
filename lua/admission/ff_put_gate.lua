-- ff_put_gate: makes a gate, or with an expected revision changes one. A gate that exists as it is described is
-- ALREADY_SATISFIED, another one of the same name a conflict. A change may free those who wait: they are answered, 256
-- for each meter at most, as "<partition> <route>", and no longer wait here; the same call again answers the same ones,
-- and 256 for each meter more. 0 is no limit, of starts in a window and of how many at once. With rates or calls it
-- is the gate of a service (lib/service.lua), which has none of the other meters: amounts in a minute, of which burst
-- may come at once, a fortieth if it is 0; calls at once; what is waited in a slot; and weights of namespaces.
-- Flags:   none
-- Go:      Engine.PutGate
-- Args:    protocol name:service expected:n(1..)? !invalid_gate_spec scope:bytes(128) mode:strict|warn
--          on_hard:reject|fail|block|ask on_soft:allow|warn interval:ms(0..315360000000) strict:flag refund:bytes(64)
--          rate:n(0..1000000) window:ms(0..2592000000) concurrency:n(0..1000000) jitter:ms(0..60000) parent:text
--          dimensions:rows(0..64) {dimension:dimension hard:n soft:n} calls:n(0..1000000) patience:ms(0..60000)
--          rates:rows(0..8) {dimension:dimension minute:n(2..1000000000) burst:n(0..500000000)}
--          weights:rows(0..256) {namespace:name(64) weight:n(1..1000)}
-- Replies: OK revision:n waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_gate_spec gate_conflict gate_not_found
local ff_gate = {}

-- service returns what is wrong with what is said of a service, or nil. It notes the fields of one.
function ff_gate.service(q, limits)
  if #q.rates == 0 and q.calls == 0 then
    if #q.weights > 0 or q.patience > 0 then return 'service: a rate, or calls at once' end
    return not args.label(q.name) and 'name: with a slash it is of a service, which has rates or calls' or nil
  end
  if limits[1] or q.rate > 0 or q.concurrency > 0 or q.interval > 0 or q.parent ~= '' or q.refund ~= '' or q.strict or
      q.mode == 'warn' or q.on_hard ~= 'reject' then
    return 'service: without limits, starts, concurrency, a reset, a parent and what belongs to them'
  end
  local list, by, seen = {}, {}, {}
  for i = 1, #q.rates do
    local x = q.rates[i]
    local burst = x.burst > 0 and x.burst or math.max(1, math.floor(x.minute / 40))
    if burst * 2 > x.minute then return 'rates: ' .. x.dimension .. ': burst is at most half of a minute' end
    if seen[x.dimension] then return 'rates: ' .. x.dimension .. ' twice' end
    seen[x.dimension] = true
    list[i] = x.dimension .. '=' .. reply.int(x.minute) .. '/' .. reply.int(burst)
  end
  for i = 1, #q.weights do
    local x = q.weights[i]
    if seen['t:' .. x.namespace] then return 'weights: ' .. x.namespace .. ' twice' end
    seen['t:' .. x.namespace] = true
    by[#by + 1], by[#by + 2] = 't:' .. x.namespace, reply.int(x.weight)
  end
  q.service = { 'sv', table.concat(list, ','), 'cl', reply.int(q.calls), 'pt', reply.int(q.patience), unpack(by) }
  return nil
end

-- judge returns the limits, or nil and what is wrong.
function ff_gate.judge(q)
  if q.interval > 0 and q.interval < 1000 then return nil, 'interval: 0, or 1000..315360000000 ms' end
  if q.rate > 0 and q.window == 0 then return nil, 'window: 1..2592000000 ms with a rate' end
  if q.parent ~= '' and (not args.label(q.parent) or q.parent == q.name) then return nil, 'parent: another gate' end
  for outcome in string.gmatch(q.refund, '[^,]+') do
    if outcome ~= 'failed' and outcome ~= 'cancelled' and outcome ~= 'expired' then
      return nil, 'refund: failed, cancelled, expired'
    end
  end
  local rows, limits, seen = q.dimensions, {}, {}
  for i = 1, #rows do
    local dim, hard, soft = rows[i].dimension, rows[i].hard, rows[i].soft
    if seen[dim] then return nil, 'dimensions: ' .. dim .. ' twice' end
    if hard > 0 and soft > hard then return nil, 'dimensions: ' .. dim .. ': soft is above hard' end
    seen[dim] = true
    limits[#limits + 1], limits[#limits + 2] = 'h:' .. dim, reply.int(hard)
    limits[#limits + 1], limits[#limits + 2] = 's:' .. dim, reply.int(soft)
  end
  local wrong = ff_gate.service(q, limits)
  if wrong then return nil, wrong end
  return limits
end

-- woken takes those who wait for starts and slots, and for amounts, if there is room.
function ff_gate.woken(ctx, b, room)
  local waiters, r = {}, ctx.r
  if room then meter.waiters(keys.amount_waiters(r, b.name), 256, waiters) end
  meter.waiters(keys.slot_waiters(r, b.name), 256, waiters)
  meter.waiters(keys.rate_waiters(r, b.name), 256, waiters)
  return waiters
end

-- again is the reply when nothing is to be changed. It may be the change itself, made again because its reply was lost:
-- those whom that answered are answered again, before the others.
function ff_gate.again(ctx, b)
  local out = meter.said(ctx, b.name, 'put ' .. b.d.ct .. ' ' .. b.d.up) or reply.already(b.d.up, '0')
  local more = ff_gate.woken(ctx, b, not meter.exhausted(b))
  out[4] = reply.int(tonumber(out[4]) + #more)
  for i = 1, #more do out[#out + 1] = more[i] end
  return out
end

-- stale are the fields of a definition that another one does not have.
function ff_gate.stale(b, limits, interval)
  local old, stays = {}, {}
  for i = 1, #limits, 4 do stays['w' .. string.sub(limits[i], 2)] = true end
  for field in pairs(b.d) do
    local area = string.sub(field, 1, 2)
    if area == 'h:' or area == 's:' or area == 't:' or area == 'w:' and not stays[field] then old[#old + 1] = field end
  end
  if interval == '0' then old[#old + 1] = 'nx' end
  if b.d.sv then old[#old + 1], old[#old + 2], old[#old + 3] = 'sv', 'cl', 'pt' end
  return old
end

local function ff_put_gate(ctx, q)
  local name, expected = q.name, q.expected and reply.int(q.expected) or ''
  local interval, strict = reply.int(q.interval), q.strict and '1' or '0'
  local rate, window, cap, jitter = reply.int(q.rate), reply.int(q.window), reply.int(q.concurrency),
    reply.int(q.jitter)
  local limits, wrong = ff_gate.judge(q)
  if not limits then return reply.err('invalid_gate_spec', wrong) end
  local text = table.concat({ q.scope, q.mode, q.on_hard, q.on_soft, interval, strict, q.refund, rate, window, cap,
    jitter, q.parent, table.concat(limits, ',') }, '\31') .. (q.service and '\31' .. table.concat(q.service, ',') or
    '')
  local b = meter.read(ctx, name)
  if not b and expected ~= '' then return reply.err('gate_not_found', name) end
  if b and b.d.df == text then return ff_gate.again(ctx, b) end
  if b and expected ~= b.d.up then return reply.err('gate_conflict', name, b.d.up) end

  local key, revision, by = keys.gate(ctx.r, name), reply.int(b and tonumber(b.d.up) + 1 or 1), trail.by(ctx)
  local fields = { 'df', text, 'sc', q.scope, 'md', q.mode, 'hd', q.on_hard, 'sf', q.on_soft, 'iv', interval, 'st',
    strict, 'rf', q.refund, 'rt', rate, 'wn', window, 'cp', cap, 'jt', jitter, 'pa', q.parent, 'up', revision, 'by',
    by }
  if b then
    meter.save(ctx, b)
    meter.some('HDEL', key, ff_gate.stale(b, limits, interval))
  else
    local start = { 'ct', ctx.t, 'ps', ctx.t, 'rc', '0', 'bc', '0', 'bs', '0' }
    for i = 1, #start do fields[#fields + 1] = start[i] end
    redis.call('ZADD', keys.gates(ctx.r), '0', name)
  end
  if interval ~= '0' and (not b or b.d.iv ~= interval) then
    fields[#fields + 1], fields[#fields + 2] = 'nx', reply.int(ctx.now + q.interval)
  end
  for i = 1, #limits do fields[#fields + 1] = limits[i] end
  for i = 1, #(q.service or {}) do fields[#fields + 1] = q.service[i] end
  redis.call('HSET', key, unpack(fields))
  meter.note(ctx, keys.gate_log(ctx.r, name), b and 'changed' or 'created', by, (string.gsub(text, '\31', ' ')))
  if not b then return reply.ok(revision, '0') end
  -- the window may be longer now
  if q.window > 0 then redis.call('PEXPIRE', keys.window(ctx.r, name), reply.int(q.window + 1000)) end
  local waiters = ff_gate.woken(ctx, b, true)
  local out = reply.add(reply.ok(revision), waiters)
  return waiters[1] and meter.say(ctx, name, 'put ' .. b.d.ct .. ' ' .. revision, out) or out
end
