-- signal: delivery to a waitpoint, pending or active, by whoever holds its token or by an operator (spec 20 §3.4). A
-- signal is stored as its parts joined by the unit separator; the payload, any bytes, comes last.
local signal = {}

local US = '\31'
local limits = { name = 128, category = 64, source_type = 64, source = 256, correlation = 256, key = 256 }
local encodings = { json = true, utf8 = true, bytes = true }
local buffered_signals, buffered_bytes, most_signals, matched_bytes = 1000, 262144, 10000, 262144

-- parse reads eleven arguments from position i: signal id, name, category, source type, source, correlation, idempotency key,
-- ttl, created, encoding, payload.
function signal.parse(argv, i)
  local g = { id = argv[i], name = argv[i + 1], category = argv[i + 2], source_type = argv[i + 3], source = argv[i + 4],
    correlation = argv[i + 5], key = argv[i + 6], ttl = args.int(argv[i + 7], 0, 604800000),
    created = argv[i + 8], encoding = argv[i + 9], payload = argv[i + 10] }
  if not args.uuid(g.id) then return nil, reply.err('invalid_input', 'signal id') end
  for field, most in pairs(limits) do
    local text = g[field]
    if not text or #text > most or string.find(text, '%c') then
      return nil, reply.err('invalid_input', 'signal ' .. field .. ': at most ' .. reply.int(most) .. ' bytes without control characters')
    end
  end
  if g.name == '' or not condition.name(g.name) then
    return nil, reply.err('invalid_input', 'signal name: 1..128 bytes, not beginning with __')
  end
  if not g.ttl then return nil, reply.err('invalid_input', 'dedup ttl: 0..604800000 ms') end
  if g.created ~= '' and not args.int(g.created, 0, 9007199254740991) then
    return nil, reply.err('invalid_input', 'created at: whole ms')
  end
  if not encodings[g.encoding] then return nil, reply.err('invalid_input', 'encoding: json, utf8 or bytes') end
  if not g.payload then return nil, reply.err('invalid_input', 'payload') end
  if #g.payload > 65536 then return nil, reply.err('payload_too_large', 'signal: at most 65536 bytes') end
  return g
end

-- encode is the stored form; an ignored signal is kept without its payload. order numbers what the execution accepted: times of
-- a millisecond cannot tell which of two came first.
function signal.encode(g, payload)
  return table.concat({ g.id, g.waitpoint, g.waitpoint_key, g.name, g.category, g.source_type, g.source, g.correlation, g.key,
    g.created, g.accepted, g.encoding, g.effect, g.late, g.order, payload }, US)
end

function signal.decode(text)
  local p = pack.split(text, US, 16)
  return { id = p[1], waitpoint = p[2], waitpoint_key = p[3], name = p[4], category = p[5], source_type = p[6], source = p[7],
    correlation = p[8], key = p[9], created = p[10], accepted = p[11], encoding = p[12], effect = p[13], late = p[14],
    order = p[15], payload = p[16] }
end

-- mark is the field under which a delivery is remembered: its idempotency key, else its own id.
local function mark(g)
  if g.key ~= '' then return 'k' .. g.key end
  return 's' .. g.id
end

-- known tells whether a signal was brought to a waitpoint before.
function signal.known(ctx, id, wid, g)
  return redis.call('HEXISTS', keys.delivered(ctx.r, id, wid), mark(g)) == 1
end

-- repeated answers a delivery that was made before: the first one's id and effect, and what became of the waitpoint.
function signal.repeated(ctx, id, wid, w, g)
  if w.signals == '0' then return nil end -- nothing was brought to it yet
  local text = redis.call('HGET', keys.delivered(ctx.r, id, wid), mark(g))
  if not text then return nil end
  local first, effect, expiry = string.match(text, '^(%S+) (%S+) (%d+)$')
  if not first or (not waitpoint.open(w) and tonumber(expiry) <= ctx.now and first ~= g.id) then return nil end
  return reply.already(first, effect, w.state)
end

local function remember(ctx, id, wid, g)
  local expiry = reply.int(ctx.now + (g.key ~= '' and g.ttl or 86400000))
  redis.call('HSET', keys.delivered(ctx.r, id, wid), mark(g), g.id .. ' ' .. g.effect .. ' ' .. expiry)
  record.set(ctx, id, 'gq', g.order)
  feed.signal(ctx, id, wid, g)
end

local function log(ctx, id, wid, g, payload)
  local key = keys.signals(ctx.r, id, wid)
  if redis.call('RPUSH', key, signal.encode(g, payload)) > 1000 then redis.call('LTRIM', key, -1000, -1) end
end

-- buffer keeps a signal for a waitpoint that nobody waits on yet.
local function buffer(ctx, id, wid, w, g)
  g.effect = 'buffered_for_pending_waitpoint'
  local text = signal.encode(g, g.payload)
  local count, bytes = 0, #text -- as a condition counts them, so that what is buffered never overflows one
  for _, other in pairs(waitpoint.all(ctx, id)) do
    if other.state == 'p' then
      count = count + tonumber(other.signals)
      bytes = bytes + tonumber(other.bytes)
    end
  end
  if count >= buffered_signals then return reply.err('signal_limit_exceeded', 'buffered signals: at most 1000') end
  if bytes > buffered_bytes then return reply.err('signal_limit_exceeded', 'buffered bytes: at most 262144') end
  w.signals, w.bytes, w.last = reply.int(tonumber(w.signals) + 1), reply.int(tonumber(w.bytes) + #text), ctx.t
  waitpoint.save(ctx, id, wid, w)
  remember(ctx, id, wid, g)
  log(ctx, id, wid, g, g.payload)
  return reply.ok(g.id, g.effect, w.state)
end

-- state loads what was satisfied so far of an open suspension.
local function state(ctx, id, u, nodes)
  local s = { counts = {}, tokens = {}, changed = {} }
  for i = 1, #nodes do
    local n = u['n' .. reply.int(i)]
    if n then
      s.counts[i] = tonumber(n)
      s.key = keys.satisfied(ctx.r, id) -- else there is none
    end
  end
  return s
end

-- number is the place of a waitpoint in its suspension.
local function number(u, wid)
  local list = suspension.list(u)
  for i = 1, #list do
    if list[i] == wid then return i end
  end
  return nil
end

-- evaluate delivers to an active waitpoint.
local function evaluate(ctx, c, id, wid, w, g)
  local u = suspension.read(ctx, id)
  local at = core.suspended(c) and not u.cl and w.suspension == u.id and number(u, wid)
  if not at then return reply.err('waitpoint_closed', 'superseded', w.closed) end
  if tonumber(u.gn or '0') >= most_signals then return reply.err('signal_limit_exceeded', 'signals of a suspension: at most 10000') end
  local nodes = condition.parse(u.c, #suspension.list(u))
  if not nodes then return reply.err('corrupt', 'condition') end
  local s, added = state(ctx, id, u, nodes), nil
  g.effect, added = condition.take(s, nodes, at, g)
  local text = signal.encode(g, g.payload)
  local bytes = tonumber(u.gb or '0') + #text
  if #added > 0 and bytes > matched_bytes then
    return reply.err('signal_limit_exceeded', 'bytes of the signals that a condition took: at most 262144')
  end

  w.signals, w.last = reply.int(tonumber(w.signals) + 1), ctx.t
  local fields = { 'gn', reply.int(tonumber(u.gn or '0') + 1), 'gl', ctx.t }
  if #added > 0 then
    w.matched = reply.int(tonumber(w.matched) + 1)
    u.gm, u.gb = reply.int(tonumber(u.gm or '0') + 1), reply.int(bytes)
    fields[5], fields[6], fields[7], fields[8] = 'gm', u.gm, 'gb', u.gb
    redis.call('HSET', keys.matched(ctx.r, id), g.id, text)
  end
  remember(ctx, id, wid, g)
  log(ctx, id, wid, g, '')
  if g.effect == 'resume_condition_satisfied' then
    suspension.resume(ctx, c, id, u, { reason = 'resumed', cause = 'signal', trigger = 'signal', closer = g.id,
      who = g.source ~= '' and g.source_type .. ' ' .. g.source or 'signal ' .. g.id,
      known = { [wid] = w }, fields = fields })
    return reply.ok(g.id, g.effect, 'c')
  end
  for i in pairs(s.changed) do
    fields[#fields + 1], fields[#fields + 2] = 'n' .. reply.int(i), reply.int(s.counts[i])
  end
  waits.set(ctx, id, fields)
  waitpoint.save(ctx, id, wid, w)
  local tokens = {}
  for i = 1, #added do
    tokens[2 * i - 1], tokens[2 * i] = added[i], g.id
  end
  if #tokens > 0 then redis.call('HSET', keys.satisfied(ctx.r, id), unpack(tokens)) end
  return reply.ok(g.id, g.effect, w.state)
end

-- deliver takes a checked signal to a waitpoint whose token was verified, or that an operator named.
function signal.deliver(ctx, id, wid, w, g)
  local again = signal.repeated(ctx, id, wid, w, g)
  if again then return again end
  local c = core.read(ctx, id)
  if core.terminal(c) then return reply.err('target_not_signalable', c.s) end
  if not waitpoint.open(w) then return reply.err('waitpoint_closed', w.reason, w.closed) end
  g.waitpoint, g.waitpoint_key, g.accepted, g.late = wid, w.key, ctx.t, ''
  g.order = reply.int(tonumber(c.gq or '0') + 1)
  if w.expires ~= '' and tonumber(w.expires) <= ctx.now then
    if w.state == 'p' then return reply.err('waitpoint_closed', 'pending_expired', w.expires) end
    g.late = reply.int(ctx.now - tonumber(w.expires))
  end
  return w.state == 'p' and buffer(ctx, id, wid, w, g) or evaluate(ctx, c, id, wid, w, g)
end

-- buffered reads what pending waitpoints took, in the order in which it came, and plans the logs that it stays in.
local function buffered(ctx, id, list, bound, plan)
  local came, logs = {}, 0
  for at = 1, #list do
    local w = bound[at]
    if w.state ~= 'a' and w.signals ~= '0' then
      local entries = redis.call('LRANGE', keys.signals(ctx.r, id, list[at]), 0, -1)
      plan.signals, logs = plan.signals + #entries, logs + 1
      plan.logs[at] = { entries = entries, marks = {}, effects = {}, matched = 0 }
      for i = 1, #entries do
        local g = signal.decode(entries[i])
        came[#came + 1] = { at = at, i = i, g = g, order = tonumber(g.order) or 0 }
      end
    end
  end
  if logs > 1 then
    table.sort(came, function(a, b)
      if a.order ~= b.order then return a.order < b.order end
      if a.at ~= b.at then return a.at < b.at end
      return a.i < b.i
    end)
  end
  return came
end

-- replay evaluates what pending waitpoints buffered, as their suspension begins: list names them, bound are their
-- records. It returns a plan without writing; satisfied is true when they suffice.
function signal.replay(ctx, id, nodes, list, bound)
  local plan = { logs = {}, matched = {}, bytes = 0, signals = 0, satisfied = false,
    state = { counts = {}, tokens = {}, changed = {} }, tokens = {} }
  local came = buffered(ctx, id, list, bound, plan)
  for n = 1, #came do
    local g, l, payload = came[n].g, plan.logs[came[n].at], came[n].g.payload
    if not plan.satisfied then
      local effect, added = condition.take(plan.state, nodes, came[n].at, g)
      g.effect, payload = effect, ''
      if #added > 0 then
        l.matched = l.matched + 1
        local text = signal.encode(g, g.payload)
        plan.bytes = plan.bytes + #text
        plan.matched[#plan.matched + 1], plan.matched[#plan.matched + 2] = g.id, text
        for t = 1, #added do
          plan.tokens[#plan.tokens + 1], plan.tokens[#plan.tokens + 2] = added[t], g.id
        end
      end
      if effect == 'resume_condition_satisfied' then plan.satisfied, plan.closer = true, g.id end
    end
    local i = came[n].i
    l.entries[i], l.marks[i], l.effects[i] = signal.encode(g, payload), mark(g), g.effect
  end
  return plan
end

-- chunks calls write with parts of a list that unpack can take.
local function chunks(list, write)
  for first = 1, #list, 500 do write(first, unpack(list, first, math.min(first + 499, #list))) end
end

-- relabel puts the effects of evaluated signals into the records by which repeats are known.
local function relabel(key, l)
  local updated = {}
  chunks(l.marks, function(first, ...)
    local old = redis.call('HMGET', key, ...)
    for i = 1, #old do
      local id, expiry = string.match(old[i] or '', '^(%S+) %S+ (%d+)$')
      if id then
        updated[#updated + 1] = l.marks[first + i - 1]
        updated[#updated + 1] = id .. ' ' .. l.effects[first + i - 1] .. ' ' .. expiry
      end
    end
  end)
  chunks(updated, function(_, ...) redis.call('HSET', key, ...) end)
end

-- apply writes a plan: effects into logs and delivery records, the matched signals, the parts they satisfied.
function signal.apply(ctx, id, list, bound, plan)
  local r = ctx.r
  for at, l in pairs(plan.logs) do
    local key = keys.signals(r, id, list[at])
    redis.call('DEL', key)
    chunks(l.entries, function(_, ...) redis.call('RPUSH', key, ...) end)
    relabel(keys.delivered(r, id, list[at]), l)
    bound[at].matched = reply.int(l.matched)
  end
  chunks(plan.matched, function(_, ...) redis.call('HSET', keys.matched(r, id), ...) end)
  if not plan.satisfied then
    chunks(plan.tokens, function(_, ...) redis.call('HSET', keys.satisfied(r, id), ...) end)
  end
end
