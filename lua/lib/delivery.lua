-- delivery: signals reach a waitpoint, pending or active, by a holder of its token or by an operator.
local delivery = {}

local limits = { { field = 'name', most = 128 }, { field = 'category', most = 64 },
  { field = 'source_type', most = 64 },
  { field = 'source', most = 256 }, { field = 'correlation', most = 256 }, { field = 'key', most = 256 } }
local encodings = { json = true, utf8 = true, bytes = true }
local buffered_signals, buffered_bytes, most_signals, matched_bytes = 1000, 262144, 10000, 262144

-- most_taken is how many bytes the signals may have that the condition of a wait takes.
delivery.most_taken = matched_bytes

-- parse reads eleven arguments from position i: signal id, name, category, source type, source, correlation,
-- idempotency key, ttl, created, encoding, payload.
function delivery.parse(argv, i)
  local g = { id = argv[i], name = argv[i + 1], category = argv[i + 2], source_type = argv[i + 3], source = argv[i + 4],
    correlation = argv[i + 5], key = argv[i + 6], ttl = args.int(argv[i + 7], 0, 604800000),
    created = argv[i + 8], encoding = argv[i + 9], payload = argv[i + 10] }
  if not args.uuid(g.id) then return nil, reply.err('invalid_input', 'signal id') end
  for i = 1, #limits do
    local limit = limits[i]
    local text = g[limit.field]
    if not text or text ~= '' and (#text > limit.most or string.find(text, '%c')) then
      return nil, reply.err('invalid_input', 'signal ' .. limit.field .. ': at most ' .. reply.int(limit.most) ..
          ' bytes without control characters')
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

-- known tells whether a signal was brought to a waitpoint before.
function delivery.known(ctx, id, wid, g) return signals.delivered(ctx, id, wid, g) ~= nil end

-- repeated answers a delivery that was made before: the first one's id and effect, and what became of the waitpoint.
function delivery.repeated(ctx, id, wid, w, g)
  if w.signals == '0' then return nil end -- nothing was brought to it yet
  local first, effect, expiry = signals.delivered(ctx, id, wid, g)
  if not first or (not waitpoint.open(w) and tonumber(expiry) <= ctx.now and first ~= g.id) then return nil end
  return reply.already(first, effect, w.state)
end

-- buffer keeps a signal for a waitpoint that nobody waits on yet.
local function buffer(ctx, id, wid, w, g)
  g.effect = signals.buffered
  local text = signals.encode(g, g.payload)
  local count, bytes = 0, #text -- as a condition counts them, so that what is buffered never overflows one
  for _, other in pairs(waitpoint.all(ctx, id)) do
    if other.state == 'p' then
      count = count + tonumber(other.signals)
      bytes = bytes + tonumber(other.bytes)
    end
  end
  if count >= buffered_signals then return reply.err('signal_limit_exceeded', 'buffered signals: at most 1000') end
  if bytes > buffered_bytes then return reply.err('signal_limit_exceeded', 'buffered bytes: at most 262144') end
  signals.keep(ctx, id, wid, w, g, text)
  record.set(ctx, id, 'last_signal', g.order)
  w.signals, w.bytes, w.last = reply.int(tonumber(w.signals) + 1), reply.int(tonumber(w.bytes) + #text), ctx.t
  waitpoint.save(ctx, id, wid, w)
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

-- number is the place of a waitpoint in the list of its suspension.
local function number(list, wid)
  for i = 1, #list do
    if list[i] == wid then return i end
  end
  return nil
end

-- evaluate delivers to an active waitpoint.
local function evaluate(ctx, c, id, wid, w, g)
  local u = suspension.read(ctx, id)
  local list = suspension.list(u)
  local at = core.suspended(c) and not u.closed_at and w.suspension == u.id and number(list, wid)
  if not at then return reply.err('waitpoint_closed', 'superseded', w.closed) end
  if tonumber(u.signals or '0') >= most_signals then
    return reply.err('signal_limit_exceeded', 'signals of a suspension: at most 10000')
  end
  local nodes = condition.parse(u.condition, #list)
  if not nodes then return reply.err('corrupt', 'condition') end
  local s = state(ctx, id, u, nodes)
  local effect, added, fits = condition.take(s, nodes, at, g)
  if u.question and not fits then -- it would count for nothing, and nobody would notice
    return reply.err('invalid_input', 'signal name: ' .. g.name .. ' is no choice of the question, want one of ' ..
        table.concat(condition.wanted(nodes, at), ', '))
  end
  g.effect = effect
  local text = signals.encode(g, g.payload)
  local bytes = tonumber(u.matched_bytes or '0') + #text
  if #added > 0 and bytes > matched_bytes then
    return reply.err('signal_limit_exceeded', 'bytes of the signals that a condition took: at most 262144')
  end

  u.signals, u.last_signal_at = reply.int(tonumber(u.signals or '0') + 1), ctx.t
  if #added > 0 then
    u.matched, u.matched_bytes = reply.int(tonumber(u.matched or '0') + 1), reply.int(bytes)
    w.matched = reply.int(tonumber(w.matched) + 1)
  end
  signals.keep(ctx, id, wid, w, g, text, #added > 0 and u)
  w.signals, w.last = reply.int(tonumber(w.signals) + 1), ctx.t
  if g.effect == 'resume_condition_satisfied' then
    suspension.resume(ctx, c, id, u, { reason = 'resumed', cause = 'signal', trigger = 'signal', closer = g.id,
      who = suspension.sender(g.source_type, g.source),
      what = g.name, known = { [wid] = w }, core = { last_signal = g.order } })
    return reply.ok(g.id, g.effect, 'c')
  end
  for i in pairs(s.changed) do u['n' .. reply.int(i)] = reply.int(s.counts[i]) end
  record.set(ctx, id, 'last_signal', g.order)
  waitpoint.save(ctx, id, wid, w)
  if u.several then suspension.settle(ctx, id, u, nodes, s, { [wid] = w }) end
  local tokens = {}
  for i = 1, #added do tokens[2 * i - 1], tokens[2 * i] = added[i], g.id end
  if #tokens > 0 then redis.call('HSET', keys.satisfied(ctx.r, id), unpack(tokens)) end
  return reply.ok(g.id, g.effect, w.state)
end

-- deliver takes a checked signal to a waitpoint whose token was verified, or that an operator named.
function delivery.deliver(ctx, id, wid, w, g)
  local again = delivery.repeated(ctx, id, wid, w, g)
  if again then return again end
  local c = core.read(ctx, id)
  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end
  if not waitpoint.open(w) then return reply.err('waitpoint_closed', w.reason, w.closed) end
  g.waitpoint, g.waitpoint_key, g.accepted = wid, w.key, ctx.t
  g.order = reply.int(tonumber(c.last_signal or '0') + 1)
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
      local inside = signals.within(ctx, id, list[at])
      local entries = #inside == 0 and redis.call('LRANGE', keys.signals(ctx.r, id, list[at]), 0, -1) or {}
      for i = 1, #inside do entries[i] = inside[i].text end
      plan.signals, logs = plan.signals + #entries, logs + 1
      plan.logs[at] = { inside = inside, entries = entries, changed = {}, matched = 0 }
      for i = 1, #entries do
        local g = signals.read(entries[i])
        g.at, g.i = at, i
        -- Else it cannot be read, or an earlier wait has passed it over.
        if g.id and string.sub(entries[i], g.from, g.upto - 1) == signals.buffered then came[#came + 1] = g end
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

local nothing = { bytes = 0, signals = 0, satisfied = false }

-- replay evaluates what pending waitpoints buffered, as their suspension begins: list names them, bound are their
-- records. It returns a plan without writing; satisfied is true when they suffice. Signals behind that stay as they
-- are.
function delivery.replay(ctx, id, nodes, list, bound)
  local some = false
  for at = 1, #list do some = some or bound[at].signals ~= '0' end
  if not some then return nothing end
  local plan = { logs = {}, matched = {}, bytes = 0, signals = 0, taken = 0, satisfied = false,
    state = { counts = {}, tokens = {}, changed = {} }, tokens = {} }
  local came = buffered(ctx, id, list, bound, plan)
  for n = 1, #came do
    local g = came[n]
    local l = plan.logs[g.at]
    local effect, added = condition.take(plan.state, nodes, g.at, g)
    local inside, text = #l.inside > 0, nil
    if #added > 0 then
      l.matched, plan.taken = l.matched + 1, plan.taken + 1
      text = signals.evaluated(g, effect, true)
      plan.bytes = plan.bytes + #text
      if not inside then plan.matched[#plan.matched + 1], plan.matched[#plan.matched + 2] = g.id, text end
      for t = 1, #added do plan.tokens[#plan.tokens + 1], plan.tokens[#plan.tokens + 2] = added[t], g.id end
    end
    g.text, g.effect = inside and text or signals.evaluated(g, effect), effect
    l.changed[#l.changed + 1] = g
    if effect == 'resume_condition_satisfied' then
      plan.satisfied, plan.closer = true, g.id
      break
    end
  end
  return plan
end

-- chunks calls write with parts of a list that unpack can take.
local function chunks(list, write)
  for first = 1, #list, 500 do write(first, unpack(list, first, math.min(first + 499, #list))) end
end

-- relabel puts the effects of evaluated signals into the records by which repeats are known. Those say of a signal
-- with a key how long that is.
local function relabel(key, changed)
  local updated, keyed, marks = {}, {}, {}
  for i = 1, #changed do
    local g = changed[i]
    if g.key == '' then
      updated[#updated + 1], updated[#updated + 2] = signals.mark(g),
        g.id .. ' ' .. g.effect .. ' ' .. signals.expiry(g, tonumber(g.accepted))
    else
      keyed[#keyed + 1], marks[#marks + 1] = g, signals.mark(g)
    end
  end
  chunks(marks, function(first, ...)
    local old = redis.call('HMGET', key, ...)
    for i = 1, #old do
      local id, expiry = string.match(old[i] or '', '^(%S+) %S+ (%d+)$')
      local n = first + i - 1
      if id then
        updated[#updated + 1], updated[#updated + 2] = marks[n], id .. ' ' .. keyed[n].effect .. ' ' .. expiry
      end
    end
  end)
  chunks(updated, function(_, ...) redis.call('HSET', key, ...) end)
end

-- rewrite puts evaluated signals into a log: one by one if they are few.
local function rewrite(key, l)
  if #l.changed <= 8 then
    for i = 1, #l.changed do redis.call('LSET', key, reply.int(l.changed[i].i - 1), l.changed[i].text) end
    return
  end
  for i = 1, #l.changed do l.entries[l.changed[i].i] = l.changed[i].text end
  redis.call('DEL', key)
  chunks(l.entries, function(_, ...) redis.call('RPUSH', key, ...) end)
end

-- apply writes a plan: effects into logs and delivery records, the matched signals, the parts they satisfied. u is
-- the new suspension.
function delivery.apply(ctx, id, u, list, bound, plan)
  if not plan.logs then return end
  local r = ctx.r
  for at, l in pairs(plan.logs) do
    if #l.inside > 0 then
      for i = 1, #l.changed do
        local item = l.inside[l.changed[i].i]
        item.text, item.effect = l.changed[i].text, l.changed[i].effect
      end
    elseif #l.changed > 0 then
      rewrite(keys.signals(r, id, list[at]), l)
      relabel(keys.delivered(r, id, list[at]), l.changed)
    end
    bound[at].matched = reply.int(l.matched)
  end
  if #plan.matched > 0 then u.has_matched = '1' end
  chunks(plan.matched, function(_, ...) redis.call('HSET', keys.matched(r, id), ...) end)
  if not plan.satisfied then
    chunks(plan.tokens, function(_, ...) redis.call('HSET', keys.satisfied(r, id), ...) end)
  end
end
