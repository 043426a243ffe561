-- ff_audit_executions: compares up to 100 executions with what the indexes say of them: the one index that the state
-- names, and the place in it; whether it is among the unsuccessful ones; the one alarm; the grant; the open
-- waitpoints, among the pending ones and under their token key; the session of a held one; the row of its route; its
-- key; the edges, group and children of a member of a flow (lib/audit_members.lua). With repair 1 what is missing or
-- misplaced is put right. Entries that no record names are found by ff_audit_index. It may look at fewer than it was
-- given, and answers at how many; a code is '' for an id without a core.
-- Flags:   allow-oom
-- Go:      Engine.AuditExecutions
-- Args:    protocol repair:flag executions:rows(1..100) {id:id}
-- Replies: OK now:instant executions:rows {code:text route:text created:text} findings
-- Errors:  @root invalid_input
local ff_audit = {}

-- readable tells whether the fields that an audit reckons with are whole numbers.
function ff_audit.readable(ctx, c, id)
  local fields = { 'created_at', 'priority', 'delay_until', 'deadline', 'attempt_deadline', 'suspension_deadline',
    'claim_number', 'ended_at', 'open_waitpoints', 'grant_deadline', 'grant_number', 'grant_epoch' }
  for i = 1, #fields do
    local f = fields[i]
    if c[f] and not audit.whole(c[f]) then
      audit.broken(ctx, 'x', id, 'field ' .. f .. ' is no whole number')
      return false
    end
  end
  if c.retention and not policy.spans(c.retention, '') then
    audit.broken(ctx, 'x', id, 'field retention is neither a number of seconds nor four of them')
    return false
  end
  if c.key and not string.find(c.key, '^[^:%s]+:[%d~-]+$') then
    audit.broken(ctx, 'x', id, 'field key is no key and how long it is held')
    return false
  end
  local own = core.delayed(c) and 'delay_until' or core.terminal(c) and 'ended_at' or c.state == 'A1' and 'claim_number'
    or 'created_at'
  local needs = { 'created_at', 'route', own, c.state == 'A1' and 'session' or 'route' }
  if core.granted(c) then
    needs = { 'created_at', 'route', 'grant_deadline', 'grant_session', 'grant_number', 'grant_epoch' }
  end
  for i = 1, #needs do
    if not c[needs[i]] then
      audit.broken(ctx, 'x', id, 'state ' .. c.state .. ' without field ' .. needs[i])
      return false
    end
  end
  return true
end

-- pinned tells whether an ended member may lie behind its own time, because its flow had not ended when that came.
function ff_audit.pinned(ctx, c, at, score)
  local h = core.terminal(c) and c.flow and graph.head(ctx, c.flow)
  if not h or at < score then return false end
  return at <= math.max(ctx.now + 3600000, indexes.over(ctx, c, audit.whole(h.en) or 0))
end

-- refiled tells whether an ended execution may lie elsewhere because somebody changed for how long its lane keeps
-- things.
function ff_audit.refiled(ctx, c)
  if not core.terminal(c) or policy.span(c.retention, policy.outcome(c.state)) > 0 then return false end
  local row = redis.call('HGET', keys.routes(ctx.r), c.route) or ''
  return redis.call('HEXISTS', keys.lanes(ctx.r), string.match(row, '^([^\31]*\31[^\31]*)') or '') == 1
end

function ff_audit.place(ctx, c, id)
  if c.state == 'A3' then return end -- in no index
  local index, key, score = home.index(c), home.key(ctx, c), home.score(ctx, c, id)
  if not score then return audit.broken(ctx, 'u', id, 'a suspended execution without the record of its suspension') end
  if not audit.typed(ctx, key, index, 'zset') then return end
  local at = redis.call('ZSCORE', key, id)
  if at and (audit.score(at) == tonumber(score) or ff_audit.pinned(ctx, c, audit.score(at), tonumber(score))) then
    return
  end
  local kind = not at and 'missing' or ff_audit.refiled(ctx, c) and 'retention' or 'score'
  if audit.note(ctx, kind, index, id, (at or 'nowhere') .. ', belongs at ' .. score) then
    home.put(ctx, c, id, score)
  end
end

-- unsuccessful: what ended other than completed is listed by when it ended, too.
function ff_audit.unsuccessful(ctx, c, id)
  if not core.unsuccessful(c) or not audit.typed(ctx, keys.unsuccessful(ctx.r), 'unsuccessful', 'zset') then return end
  local at = redis.call('ZSCORE', keys.unsuccessful(ctx.r), id)
  if at and audit.score(at) == tonumber(c.ended_at) then return end
  if audit.note(ctx, at and 'score' or 'missing', 'unsuccessful',
    id, (at or 'nowhere') .. ', belongs at ' .. c.ended_at) then
    redis.call('ZADD', keys.unsuccessful(ctx.r), c.ended_at, id)
  end
end

-- listed: the catalogue has it, by its route and by each tag that is kept.
function ff_audit.listed(ctx, c, id)
  local kept = catalogue.of(ctx)
  local places = { kept.listed and { 'cr:' .. c.route, keys.made(ctx.r, c.route) } or nil }
  for tag, mark in pairs(c.has_tags and kept.tags or {}) do
    local value = mark == '+' and redis.call('HGET', keys.tags(ctx.r, id), tag)
    if value and redis.call('HEXISTS', ctx.r, 'full:' .. tag) == 0 then
      local label = catalogue.label(tag, value)
      places[#places + 1] = { 'ct:' .. label, keys.labelled(ctx.r, label) }
    end
  end
  for i = 1, #places do
    local at = audit.typed(ctx, places[i][2], places[i][1], 'zset') and redis.call('ZSCORE', places[i][2], id)
    if (not at or audit.score(at) ~= tonumber(c.created_at)) and audit.note(ctx, at and 'score' or 'missing',
        places[i][1], id, (at or 'nowhere') .. ', belongs at ' .. c.created_at) then
      redis.call('ZADD', places[i][2], c.created_at, id)
    end
  end
  return #places
end

function ff_audit.alarm(ctx, c, id)
  local due = audit.alarm(ctx, c)
  if not due or not audit.typed(ctx, keys.alarms(ctx.r), 'alarms', 'zset') then return end
  local at = redis.call('ZSCORE', keys.alarms(ctx.r), id)
  local set = at and audit.score(at)
  if set == due or c.state == 'A3' and set and set >= 0 and set <= due then return end
  if audit.note(ctx, at and 'score' or 'missing', 'alarms',
    id, (at or 'nowhere') .. ', belongs at ' .. reply.int(due)) then
    indexes.alarm(ctx, due, id)
  end
end

-- session: who is held under a session without a record is requeued by the next tick. Sessions with one are looked at
-- by ff_audit_index.
function ff_audit.session(ctx, c)
  local id = c.state == 'A1' and c.session or core.granted(c) and c.grant_session
  if not id or ctx.known[id] then return end
  ctx.known[id] = true
  if session.read(ctx, id).exp then return end
  local at = redis.call('ZSCORE', keys.sessions(ctx.r), id)
  if at and audit.score(at) <= ctx.now then return end
  if audit.note(ctx, 'missing', 'sessions', id, 'it holds work and has no record') then
    timers.put(ctx, timers.sessions, ctx.now, id)
  end
end

-- route reports a route without a row once a call, unless its id tells the row: that is for ff_audit_index to repair.
function ff_audit.route(ctx, c, id)
  if ctx.cache.reported[c.route] then return end
  ctx.cache.reported[c.route] = true
  if redis.call('HEXISTS', keys.routes(ctx.r), c.route) == 1 then return end
  local ids = redis.call('HVALS', keys.route_ids(ctx.r))
  for i = 1, #ids do
    if ids[i] == c.route then return end
  end
  audit.broken(ctx, 'routes', c.route, 'no row for execution ' .. id)
end

-- waitpoint compares one open waitpoint with the two indexes.
function ff_audit.waitpoint(ctx, id, wid, w)
  local member, ends = id .. ':' .. wid, w.expires ~= '' and w.expires or '9999999999999'
  if not audit.whole(ends) or not args.kid(w.kid) or (w.state == 'p' and w.expires == '') then
    audit.broken(ctx, 'wp', member, 'waitpoint without expiry or token key')
    return
  end
  local lists = { { 'open:' .. w.kid, keys.open(ctx.r, w.kid) },
    w.state == 'p' and { 'pending', keys.pending(ctx.r) } or nil }
  for i = 1, #lists do
    local at = redis.call('ZSCORE', lists[i][2], member)
    if not at or audit.score(at) ~= tonumber(ends) then
      if audit.note(ctx, at and 'score' or 'missing', lists[i][1],
        member, (at or 'nowhere') .. ', belongs at ' .. ends) then
        redis.call('ZADD', lists[i][2], ends, member)
        if i == 2 then root.need(ctx, tonumber(ends)) end
      end
    end
  end
end

-- waitpoints returns how many there are to look at.
function ff_audit.waitpoints(ctx, c, id)
  if not c.had_waits and not c.open_waitpoints then return 0 end
  local count, opened = 0, 0
  for wid, text in pairs(wait_record.of(ctx, id).points) do
    local state = string.sub(text, 1, 2)
    if state == 'p\31' or state == 'a\31' then
      opened = opened + 1
      if not core.terminal(c) then
        ff_audit.waitpoint(ctx, id, wid, waitpoint.decode(text, suspension.read(ctx, id)))
      end
    end
    count = count + 1
  end
  if core.terminal(c) and opened > 0 then
    audit.broken(ctx, 'wp', id, 'it has ended with open waitpoints')
  elseif opened ~= tonumber(c.open_waitpoints or '0') and
      audit.note(ctx, 'flag', 'x', id, 'wp ' .. (c.open_waitpoints or '0') .. ', open are ' .. reply.int(opened)) then
    if opened > 0 then
      record.set(ctx, id, 'open_waitpoints', reply.int(opened), 'had_waits', '1')
    else
      record.clear(ctx, id, 'open_waitpoints')
    end
  end
  return count
end

-- grant: only work with gates is granted, under an epoch of its own, and only what is granted says until when.
function ff_audit.grant(ctx, c, id)
  if core.granted(c) then
    if gate.of(ctx, c.route) == '' and redis.call('HEXISTS', keys.routes(ctx.r), c.route) == 1 then
      audit.broken(ctx, 'x', id, 'it is granted and its route has no gates')
    elseif tonumber(c.grant_epoch) <= (tonumber(c.epoch or '0') or 0) then
      audit.broken(ctx, 'x', id,
        'it is granted under epoch ' .. c.grant_epoch .. ', its last lease had ' .. (c.epoch or '0'))
    end
  elseif
    (c.grant_deadline or c.grant_session or c.grant_number)
      and audit.note(ctx, 'flag', 'x', id, 'of a grant that is over') then
    record.clear(ctx, id, 'grant_deadline', 'grant_session', 'grant_number')
  end
end

-- key: who has a key is found under it, unless another has it by now. Two that have not ended cannot have the same.
function ff_audit.key(ctx, c, id)
  local key, own, name = keyed.split(ctx, c, id)
  local found, rival = keyed.owner(key), keyed.rival(ctx, c, id)
  if keyed.names(found, own) then return end
  -- it debounces: one that was submitted later may have it, and what was claimed needs it no more
  if string.byte(own, -1) == 126 then
    local lost = keyed.open(c) and not (found and core.read(ctx, string.match(found, '^%S*')).state)
    if lost and audit.note(ctx, 'missing', 'y', name, (found or 'nothing') .. ', belongs to ' .. own) then
      redis.call('SET', key, own)
    end
    return
  end
  local held = not core.terminal(c) or string.sub(c.key, -2) == ':-' or policy.till(c.key) > ctx.now
  if rival and not core.terminal(c) then
    audit.broken(ctx, 'y', name, id .. ' has it as well as ' .. rival)
  elseif
    held and not rival and audit.note(ctx, 'missing', 'y', name, (found or 'nothing') .. ', belongs to ' .. own) then
    redis.call('SET', key, own)
  end
end

function ff_audit.execution(ctx, c, id)
  if not ff_audit.readable(ctx, c, id) then return 6 end
  if c.key then ff_audit.key(ctx, c, id) end
  ff_audit.grant(ctx, c, id)
  ff_audit.route(ctx, c, id)
  ff_audit.place(ctx, c, id)
  ff_audit.unsuccessful(ctx, c, id)
  ff_audit.alarm(ctx, c, id)
  ff_audit.session(ctx, c)
  if c.awaited and redis.call('EXISTS', keys.awaiting(ctx.r, id)) == 0
    and audit.note(ctx, 'flag', 'x', id, 'awaited, and by nobody') then
    record.clear(ctx, id, 'awaited')
  end
  local cost = (core.paused(c) and 8 or 6) + ff_audit.listed(ctx, c, id) + 2 * ff_audit.waitpoints(ctx, c, id)
  if c.flow then return cost + audit_members.look(ctx, c, id) end
  if core.blocked(c) then audit.broken(ctx, 'x', id, 'it waits for others and is in no flow') end
  if c.children_wait then return cost + audit_members.alone(ctx, c, id) end
  return cost
end

local function ff_audit_executions(ctx, q)
  audit.begin(ctx, q.repair)
  local ids = q.executions
  ctx.cache.reported, ctx.known = {}, {}
  local seen, touched = {}, 0
  for i = 1, #ids do
    if touched > 700 then break end
    local c = core.read(ctx, ids[i])
    local known = audit.codes[c.state or ''] or redis.call('EXISTS', keys.core(ctx.r, ids[i])) == 0
    if not known then
      local why = c.damaged or 'state ' .. string.sub(c.state or '', 1, 16)
      audit.aside(ctx, keys.core(ctx.r, ids[i]), 'x:' .. ids[i], 'x', ids[i], why)
      c = {}
    end
    seen[#seen + 1], seen[#seen + 2], seen[#seen + 3] = c.state or '', c.route or '', c.created_at or ''
    touched = touched + 1
    if c.state then touched = touched + ff_audit.execution(ctx, c, ids[i]) end
  end
  flow.apply(ctx)
  local out = { 1, 'OK', ctx.t, reply.int(#seen / 3) }
  for i = 1, #seen do out[#out + 1] = seen[i] end
  return audit.finish(ctx, out)
end
