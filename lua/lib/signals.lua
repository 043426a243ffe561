-- signals: where accepted signals are stored. Small ones are kept once, in the waits of their execution, as long as all
-- of them take at most signals.inline bytes. Those of a waitpoint are all there or, since there were too many, all in
-- keys of their own: its log, what is known of repeats, and the ones that a condition took. Nobody else asks where.
-- The payload is kept while a signal waits to be evaluated, and as long as the suspension that took it is the last
-- one. A signal is stored as its parts joined by the unit separator; the payload, any bytes, comes last.
local signals = {}

-- inline is how many bytes the signals may have that are part of the waits.
signals.inline = 1024

local US = '\31'
local most_logged = 1000

-- encode is the stored form; an ignored signal is kept without its payload. order numbers what the execution
-- accepted: times of a millisecond cannot tell which of two came first.
function signals.encode(g, payload)
  return table.concat({ g.id, g.waitpoint, g.waitpoint_key, g.name, g.category, g.source_type, g.source, g.correlation,
    g.key,
    g.created, g.accepted, g.encoding, g.effect, g.late or '', g.order, payload }, US)
end

function signals.decode(text)
  local p = pack.split(text, US, 16)
  return { id = p[1], waitpoint = p[2], waitpoint_key = p[3], name = p[4], category = p[5], source_type = p[6],
    source = p[7], correlation = p[8], key = p[9], created = p[10], accepted = p[11], encoding = p[12], effect = p[13],
    late = p[14],
    order = p[15], payload = p[16] }
end

-- expiry is until when a repeat of a signal is known that was accepted at an instant.
function signals.expiry(g, at) return reply.int(at + (g.key ~= '' and g.ttl or 86400000)) end

-- mark is the field under which a delivery is remembered: its idempotency key, else its own id.
function signals.mark(g)
  if g.key ~= '' then return 'k' .. g.key end
  return 's' .. g.id
end

local takes = { appended_to_waitpoint = true, resume_condition_satisfied = true }
signals.buffered = 'buffered_for_pending_waitpoint'

-- stood tells whether a signal with an effect counts, or may still.
function signals.stood(effect) return takes[effect] or effect == signals.buffered end

-- parts are id, waitpoint, idempotency key and effect of a stored signal, without those between.
local skip = '[^\31]*\31'
local parts = '^([^\31]*)\31([^\31]*)\31' .. skip .. skip .. skip .. skip .. skip .. skip .. '([^\31]*)\31' .. skip ..
  skip .. skip ..
    '([^\31]*)'

-- read returns of a stored signal what a condition asks for, and where its effect and its payload are, for evaluated.
local whole = '^([^\31]*)\31([^\31]*)\31' .. skip .. '([^\31]*)\31' .. skip .. '([^\31]*)\31([^\31]*)\31' .. skip ..
    '([^\31]*)\31' .. skip .. '([^\31]*)\31' .. skip .. '()[^\31]*()\31' .. skip .. '([^\31]*)\31()'

function signals.read(text)
  local id, wid, name, source_type, source, key, accepted, from, upto, order, payload = string.match(text, whole)
  return { id = id, waitpoint = wid, name = name, source_type = source_type, source = source, key = key,
    accepted = accepted, text = text, from = from, upto = upto, payload = payload, order = tonumber(order) or 0 }
end

-- evaluated is that signal with another effect, and with its payload if it is to be kept.
function signals.evaluated(g, effect, payload)
  return string.sub(g.text, 1, g.from - 1) .. effect .. string.sub(g.text, g.upto, payload and -1 or g.payload - 1)
end

local function look(item)
  if not item.id then item.id, item.waitpoint, item.key, item.effect = string.match(item.text, parts) end
  return item
end

-- member tells whether a waitpoint is one of a suspension's.
local function member(u, wid) return string.find(u.waitpoints or '', wid, 1, true) and true or false end

-- within lists the signals of a waitpoint that are in the waits.
function signals.within(ctx, id, wid)
  local came, out = wait_record.of(ctx, id).signals or {}, {}
  for i = 1, #came do
    if look(came[i]).waitpoint == wid then out[#out + 1] = came[i] end
  end
  return out
end

-- bare is a stored signal without its payload.
local function bare(text)
  local g = signals.decode(text)
  return g.payload == '' and text or signals.encode(g, '')
end

-- logged is how a log shows a signal: with the payload as long as nobody has evaluated it.
local function logged(item) return item.effect == signals.buffered and item.text or bare(item.text) end

-- log reads the signals of a waitpoint from a place in their order, at most count, and how many are kept.
function signals.log(ctx, id, wid, from, count)
  local came = signals.within(ctx, id, wid)
  if #came == 0 then
    local key = keys.signals(ctx.r, id, wid)
    return redis.call('LRANGE', key, reply.int(from), reply.int(from + count - 1)), redis.call('LLEN', key)
  end
  local out = {}
  for i = from + 1, math.min(#came, from + count) do out[#out + 1] = logged(came[i]) end
  return out, #came
end

-- delivered is what is known of a delivery: id, effect and until when it is known; nil if there was none.
function signals.delivered(ctx, id, wid, g)
  local came, field = signals.within(ctx, id, wid), signals.mark(g)
  for i = 1, #came do
    if signals.mark(came[i]) == field then return came[i].id, came[i].effect, came[i].expiry end
  end
  if #came > 0 then return nil end
  local text = redis.call('HGET', keys.delivered(ctx.r, id, wid), field)
  return string.match(text or '', '^(%S+) (%S+) (%d+)$')
end

-- overdue is the signal of a timeout: of a suspension, or of one of its waitpoints w.
function signals.overdue(ctx, sid, wid, w)
  return signals.encode({ id = sid, waitpoint = wid, waitpoint_key = w and w.key or '', name = '__timeout',
    category = '', source_type = 'system', source = '', correlation = '', key = '', created = '', accepted = ctx.t,
    encoding = 'json', effect = 'timeout', late = '', order = '0' }, '')
end

-- lapsed adds the signals of the waitpoints that ran into time limits of their own.
local function lapsed(u, out)
  for n = 1, u.settled and 16 or 0 do out[#out + 1] = u['z' .. reply.int(n)] end
  return out
end

-- taken lists the signals that the condition of the current or last suspension took. One that came again under
-- another key counts as one.
function signals.taken(ctx, id, u)
  if not u.matched or u.matched == '0' then return lapsed(u, {}) end
  if u.timeout_signal then return { u.timeout_signal } end
  local came, at = u.has_matched and redis.call('HVALS', keys.matched(ctx.r, id)) or {}, {}
  for i = 1, #came do at[string.sub(came[i], 1, 36)] = i end
  local inside = wait_record.of(ctx, id).signals or {}
  for i = 1, #inside do
    local g = look(inside[i])
    if takes[g.effect] and member(u, g.waitpoint) then
      local n = at[g.id] or #came + 1
      came[n], at[g.id] = g.text, n
    end
  end
  return lapsed(u, came)
end

-- fade drops the payloads of evaluated signals, once the suspension that took them is over or replaced.
function signals.fade(ctx, id)
  local came = wait_record.of(ctx, id).signals
  for i = 1, came and #came or 0 do
    if look(came[i]).effect ~= signals.buffered then came[i].text = bare(came[i].text) end
  end
end

-- unread makes signals that the condition of a suspension took buffered ones again, for the waitpoints in open: it is
-- over without them. It returns how many bytes those are by waitpoint.
function signals.unread(ctx, id, u, open)
  local inside, bytes, logs = wait_record.of(ctx, id).signals or {}, {}, {}
  local function again(text)
    local g = signals.decode(text)
    g.effect = signals.buffered
    text = signals.encode(g, g.payload)
    bytes[g.waitpoint] = (bytes[g.waitpoint] or 0) + #text
    return text
  end
  for i = 1, #inside do
    local g = look(inside[i])
    if takes[g.effect] and open[g.waitpoint] and member(u, g.waitpoint) then
      inside[i].text, inside[i].effect = again(g.text), signals.buffered
    end
  end
  local taken = u.has_matched and redis.call('HVALS', keys.matched(ctx.r, id)) or {}
  for i = 1, #taken do
    local sid, wid = string.match(taken[i], parts)
    if open[wid] and #signals.within(ctx, id, wid) == 0 then
      local log = keys.signals(ctx.r, id, wid)
      if not logs[wid] then
        logs[wid] = {}
        local entries = redis.call('LRANGE', log, 0, -1)
        for n = 1, #entries do logs[wid][string.sub(entries[n], 1, 36)] = n - 1 end
      end
      if logs[wid][sid] then
        redis.call('LSET', log, reply.int(logs[wid][sid]), again(taken[i]))
        local known, mark = keys.delivered(ctx.r, id, wid), signals.mark(signals.decode(taken[i]))
        local expiry = string.match(redis.call('HGET', known, mark) or '', ' (%d+)$')
        if expiry then redis.call('HSET', known, mark, sid .. ' ' .. signals.buffered .. ' ' .. expiry) end
      end
    end
  end
  return bytes
end

-- forget drops the signals of a waitpoint that is remembered no more.
function signals.forget(ctx, id, wid)
  local all, left = wait_record.of(ctx, id), {}
  for i = 1, all.signals and #all.signals or 0 do
    if look(all.signals[i]).waitpoint ~= wid then left[#left + 1] = all.signals[i] end
  end
  all.signals = left
  redis.call('UNLINK', keys.signals(ctx.r, id, wid), keys.delivered(ctx.r, id, wid))
end

-- apart stores a signal in keys of its own; u is the suspension whose condition took it, or nil.
local function apart(ctx, id, g, expiry, text, u)
  local log = keys.signals(ctx.r, id, g.waitpoint)
  if redis.call('RPUSH', log, g.effect == signals.buffered and text or bare(text)) > most_logged then
    redis.call('LTRIM', log, -most_logged, -1)
  end
  redis.call('HSET', keys.delivered(ctx.r, id, g.waitpoint), signals.mark(g), g.id .. ' ' .. g.effect .. ' ' .. expiry)
  if u then
    redis.call('HSET', keys.matched(ctx.r, id), g.id, text)
    u.has_matched = '1'
  end
end

-- part moves all signals from the waits to keys of their own.
local function part(ctx, id)
  local all = wait_record.of(ctx, id)
  local u = not all.u.timeout_signal and all.u.matched and all.u.matched ~= '0' and all.u
  for i = 1, #all.signals do
    local g = look(all.signals[i])
    if g.id then apart(ctx, id, g, g.expiry, g.text, u and takes[g.effect] and member(u, g.waitpoint) and u) end
  end
  all.signals = nil
end

-- keep stores an accepted signal, before its waitpoint w counts it; text is its stored form, u the suspension whose
-- condition took it, or nil.
function signals.keep(ctx, id, wid, w, g, text, u)
  local all = wait_record.of(ctx, id)
  local expiry, size = signals.expiry(g, ctx.now), #text
  feed.signal(ctx, id, wid, g)
  local came = all.signals or {}
  for i = 1, #came do size = size + #came[i].text end
  local inside = w.signals == '0' or #signals.within(ctx, id, wid) > 0
  if inside and size > signals.inline then
    if #came > 0 then part(ctx, id) end -- so the ones of earlier waits leave room, too
    inside = w.signals == '0' and #text <= signals.inline
    came = {}
  end
  if not inside then return apart(ctx, id, g, expiry, text, u) end
  came[#came + 1] = { expiry = expiry, text = (u or g.effect == signals.buffered) and text or signals.encode(g, '') }
  all.signals = came
end
