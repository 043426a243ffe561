-- waitpoint: an address for signals, with a key (the caller's name for it) and a token. All waitpoints of an
-- execution are in one record (wait_record), so one of another execution cannot even be named. A record is its parts
-- joined by the unit separator: state key kid digest nonce created activated expires suspension, signals matched last
-- closed reason bytes. States: p pending, a active, c closed, x expired. One that is recorded as a step says so behind
-- the instant of its creation: attempt, number of the step and, unless it is the key, its name, with blanks before
-- each. That step is stored nowhere else (lib/steps.lua), as it would repeat the waitpoint. One that takes a published
-- event (lib/expect.lua) says so behind its key: RS, what stands for the subject, a blank, and the subject.
local waitpoint = {}

local US, RS = '\31', '\30'
local most_open, most_kept = 64, 128

-- most is more than an execution ever has of them: open, closed, and those of the call that prunes.
waitpoint.most = 256

-- A record is the first nine parts and, unless all of them are as in one that got no signal and is open, the other
-- six. What an active one has in common with its suspension is '='; one that is a step and was created up to hours
-- before that has '=' and how many ms.
local two = '([^\31]*)\31([^\31]*)\31'
local nine = '^' .. two .. two .. two .. two .. '([^\31]*)()'
local six = '^\31' .. two .. two .. '([^\31]*)\31([^\31]*)$'

-- decode reads a record; u is the suspension that its execution is in, or was in last.
function waitpoint.decode(text, u)
  local state, key, kid, digest, nonce, created, activated, expires, of, rest = string.match(text, nine)
  if not state then
    local p = pack.split(text, US) -- a damaged one
    state, key, kid, digest, nonce, created, activated, expires, of = p[1], p[2] or '', p[3] or '', p[4] or '',
      p[5] or '', p[6] or '',
        p[7] or '', p[8] or '', ''
    rest = 1
  end
  local event, cut = nil, string.find(key, RS, 1, true)
  if cut then event, key = string.sub(key, cut + 1), string.sub(key, 1, cut - 1) end
  local step, behind = nil, string.find(created, ' ', 1, true)
  if behind then
    step = string.sub(created, behind + 1)
    created = string.sub(created, 1, behind - 1)
  end
  if of == '=' then
    of = u.id or ''
    if created == '=' then
      created = u.created_at or ''
    elseif string.byte(created, 1) == 61 then -- =
      created = reply.int((tonumber(u.created_at or '') or 0) - tonumber(string.sub(created, 2)))
    end
    if activated == '=' then activated = u.created_at or '' end
    if expires == '=' then expires = u.timeout_at or '' end
  end
  local w = { state = state, key = key, kid = kid, digest = digest, nonce = nonce, created = created, step = step,
    event = event, activated = activated, expires = expires, suspension = of, signals = '0', matched = '0', last = '',
    closed = '', reason = '', bytes = '0' }
  if rest <= #text then
    local came, matched, last, closed, reason, bytes = string.match(text, six, rest)
    w.signals, w.matched, w.last, w.closed, w.reason, w.bytes = came or '', matched or '', last or '', closed or '',
      reason or '',
        bytes or ''
  end
  return w
end

local function tail(w)
  return US .. w.signals .. US .. (w.matched or '0') .. US .. (w.last or '') .. US .. (w.closed or '') ..
    US .. (w.reason or '') .. US ..
      (w.bytes or '0')
end

-- encode is the reverse of decode.
function waitpoint.encode(w, u)
  local created, activated, expires, of = w.created, w.activated or '', w.expires or '', w.suspension or ''
  if of ~= '' and of == u.id then
    of = '='
    if created == u.created_at then
      created = '='
    elseif w.step then -- it was opened before, and mostly just before
      local before = (tonumber(u.created_at or '') or 0) - (tonumber(created) or 0)
      if before > 0 and before < 10000000 then created = '=' .. reply.int(before) end
    end
    if activated == u.created_at then activated = '=' end
    if expires == u.timeout_at then expires = '=' end
  end
  if w.step then created = created .. ' ' .. w.step end
  local key = w.event and w.key .. RS .. w.event or w.key
  return w.state .. US .. key .. US .. w.kid .. US .. w.digest .. US .. w.nonce .. US .. created .. US .. activated ..
    US .. expires ..
      US .. of .. ((w.signals ~= '0' or w.closed and w.closed ~= '') and tail(w) or '')
end

-- whole is a record with all its parts, for readers in Go; last the subject of the event that it takes.
function waitpoint.whole(text, u)
  local w = waitpoint.decode(text, u)
  return table.concat({ w.state, w.key, w.kid, w.digest, w.nonce, w.created, w.activated, w.expires, w.suspension },
    US) .. tail(w) .. US .. string.sub(w.event or '', 38)
end

-- read returns one waitpoint of an execution, or nil.
function waitpoint.read(ctx, id, wid)
  local all = wait_record.of(ctx, id)
  local text = all.points[wid]
  return text and waitpoint.decode(text, all.u) or nil
end

-- all returns every waitpoint of an execution by its id; there are at most most_kept and a few.
function waitpoint.all(ctx, id)
  local all, out = wait_record.of(ctx, id), {}
  for wid, text in pairs(all.points) do out[wid] = waitpoint.decode(text, all.u) end
  return out
end

function waitpoint.open(w) return w.state == 'p' or w.state == 'a' end

-- key: 1..256 bytes without control characters.
function waitpoint.key(text) return text and #text >= 1 and #text <= 256 and not string.find(text, '%c') end

-- judge checks what a new waitpoint needs and one that is taken up again does not: id, kid, digest of the token, nonce.
-- The call has been decoded, so what is there has the right form. Returns what is wrong.
function waitpoint.judge(x)
  if not args.uuid(x.waitpoint) then return 'waitpoint id' end
  if x.kid == '' then return 'kid: 1..32 of A-Z a-z 0-9 . _ -' end
  if #x.digest ~= 64 then return 'token digest: 64 hex digits' end
  if #x.nonce ~= 32 then return 'nonce: 32 hex digits' end
  return nil
end

-- count changes how many open waitpoints the core says there are.
function waitpoint.count(ctx, c, id, change)
  local n = tonumber(c.open_waitpoints or '0') + change
  c.open_waitpoints = n > 0 and reply.int(n) or nil
  if c.open_waitpoints then
    record.set(ctx, id, 'open_waitpoints', c.open_waitpoints, 'had_waits', '1')
  else
    record.clear(ctx, id, 'open_waitpoints')
  end
end

-- prefix begins the name of a step that records a waitpoint; names of users never begin so.
waitpoint.prefix = '\31w:'

-- wanting is what the step of a waitpoint says of the event that it takes.
function waitpoint.wanting(w)
  if not w.event then return '' end
  return RS .. (waitpoint.open(w) and w.signals == '0' and '1' or '0') .. string.sub(w.event, 1, 36)
end

-- step is what records a waitpoint: name, value, what the log of steps says of it, and its number; nil if nothing does.
-- The value is id, kid, nonce, until when it awaits signals (0 if the handler has closed it), and key; of one that
-- takes an event, RS, whether it still wants it, and what stands for the subject.
function waitpoint.step(wid, w)
  if not w.step then return nil end
  local attempt, order, name = string.match(w.step, '^(%d+) (%d+) ?(.*)$')
  local till = w.reason == 'proactive_close' and '0' or w.expires ~= '' and w.expires or '9999999999999'
  return waitpoint.prefix .. (name ~= '' and name or w.key), wid .. ' ' .. w.kid .. ' ' .. w.nonce .. ' ' .. till ..
    ' ' .. w.key .. waitpoint.wanting(w), attempt .. ' ' .. w.created .. ' 0 ' .. order, tonumber(order)
end

-- resize notes in the core that the step of a waitpoint is of another size now than it was as value.
function waitpoint.resize(ctx, c, id, wid, w, value)
  local _, now = waitpoint.step(wid, w)
  if not value or #now == #value then return end
  record.set(ctx, id, 'step_bytes', reply.int(tonumber(c.step_bytes) + #now - #value))
end

-- room tells whether more pending waitpoints may be opened.
function waitpoint.room(c) return tonumber(c.open_waitpoints or '0') < most_open end

function waitpoint.save(ctx, id, wid, w)
  local all = wait_record.of(ctx, id)
  all.points[wid] = waitpoint.encode(w, all.u)
  wait_record.touch(ctx, id)
end

-- index files an open waitpoint under its token key: who rotates keys must know until when tokens are needed.
function waitpoint.index(ctx, id, wid, w)
  redis.call('ZADD', keys.open(ctx.r, w.kid), w.expires ~= '' and w.expires or '9999999999999', id .. ':' .. wid)
end

-- pend stores a new pending waitpoint; core counts and indexes follow.
function waitpoint.pend(ctx, c, id, wid, w)
  waitpoint.save(ctx, id, wid, w)
  timers.put(ctx, timers.pending, tonumber(w.expires), id .. ':' .. wid)
  waitpoint.index(ctx, id, wid, w)
  waitpoint.count(ctx, c, id, 1)
end

-- reopen makes an active waitpoint pending again: its suspension is over without it. bytes is what it buffers then.
function waitpoint.reopen(ctx, id, wid, w, bytes)
  w.state, w.activated, w.suspension, w.matched, w.bytes = 'p', '', '', '0', reply.int(bytes or 0)
  w.expires = reply.int(ctx.now + 604800000)
  waitpoint.save(ctx, id, wid, w)
  timers.put(ctx, timers.pending, ctx.now + 604800000, id .. ':' .. wid)
  waitpoint.index(ctx, id, wid, w)
end

-- over has the subject of the event that a waitpoint took forget it.
local function over(ctx, id, wid, w)
  if w.event then gate.note(ctx, 'x', string.sub(w.event, 1, 37) .. id .. ' ' .. wid) end
end

-- close ends one open waitpoint for good: state c or x, and why. The caller counts.
function waitpoint.close(ctx, id, wid, w, state, reason)
  if w.state == 'p' then redis.call('ZREM', keys.pending(ctx.r), id .. ':' .. wid) end
  redis.call('ZREM', keys.open(ctx.r, w.kid), id .. ':' .. wid)
  w.state, w.closed, w.reason = state, ctx.t, reason
  waitpoint.save(ctx, id, wid, w)
  over(ctx, id, wid, w)
end

-- abandon closes what is still open when an execution ends.
function waitpoint.abandon(ctx, c, id, reason)
  if not c.open_waitpoints then return end
  local pending, kids = {}, {}
  for wid, w in pairs(waitpoint.all(ctx, id)) do
    if waitpoint.open(w) then
      local member = id .. ':' .. wid
      if w.state == 'p' then pending[#pending + 1] = member end
      kids[w.kid] = kids[w.kid] or {}
      kids[w.kid][#kids[w.kid] + 1] = member
      w.state, w.closed, w.reason = 'c', ctx.t, reason
      waitpoint.save(ctx, id, wid, w)
      over(ctx, id, wid, w)
    end
  end
  if #pending > 0 then redis.call('ZREM', keys.pending(ctx.r), unpack(pending)) end
  for kid, members in pairs(kids) do redis.call('ZREM', keys.open(ctx.r, kid), unpack(members)) end
  record.clear(ctx, id, 'open_waitpoints')
  c.open_waitpoints = nil
end

-- prune removes the waitpoints that were closed first, with their signals, once there are too many to keep; the steps
-- that record them are stored as others are from then on. Called where waitpoints are made; those named in keep stay.
function waitpoint.prune(ctx, id, keep)
  if #wait_record.ids(ctx, id) <= most_kept then return end
  local closed = {}
  for wid, w in pairs(waitpoint.all(ctx, id)) do
    if not waitpoint.open(w) and not keep[wid] then closed[#closed + 1] = { id = wid, at = tonumber(w.closed) or 0 } end
  end
  table.sort(closed, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.id < b.id
  end)
  for i = 1, #closed - most_kept / 2 do
    local name, value, log = waitpoint.step(closed[i].id, waitpoint.read(ctx, id, closed[i].id))
    if name then
      redis.call('HSET', keys.steps(ctx.r, id), name, value)
      redis.call('HSET', keys.step_log(ctx.r, id), name, log)
    end
    wait_record.of(ctx, id).points[closed[i].id] = nil
    signals.forget(ctx, id, closed[i].id)
    wait_record.touch(ctx, id)
  end
end

-- purge removes everything that is stored about an execution's waitpoints and suspensions.
function waitpoint.purge(ctx, id)
  local r, ids = ctx.r, wait_record.ids(ctx, id)
  local gone = {}
  for i = 1, #ids do gone[2 * i - 1], gone[2 * i] = keys.signals(r, id, ids[i]), keys.delivered(r, id, ids[i]) end
  for first = 1, #gone, 500 do redis.call('UNLINK', unpack(gone, first, math.min(first + 499, #gone))) end
  redis.call('UNLINK', keys.satisfied(r, id), keys.matched(r, id))
  wait_record.forget(ctx, id)
end
