-- ff_spend: counts amounts of a gate that an execution, or somebody else, uses (lib/ledger.lua).
-- report adds to what was used, all dimensions or none: what would pass a hard limit is refused, unless the gate only
-- warns; what is refused is counted as such. With block, the ledger of a holder's execution keeps what it waits for. A
-- report is known again by its key (for a day; the same amounts are answered as the first time) or, from the holder of
-- an execution, by epoch and sequence. A holder whose epoch is not the newest that was seen spent all the same: it
-- counts, and is marked late; one before the second newest is answered as late and counted already, for its sequence is
-- not known any more.
-- undo takes back the last report of the holder of an execution, if it was counted, so that what one of several gates
-- refuses is counted by none. A report that was refused, taken back before, late, or followed by another one stays as
-- it is. What was given back meanwhile is not given back twice. Breaches that the report met stay counted. The report's
-- key, if it had one, is forgotten, so that it can be reported again.
-- A gate counts at most 64 dimensions in a period, of which those with limits have theirs kept free: another one is
-- refused. One that counts no amounts answers applied 0 and no breach. The execution is "<partition>.<uuid>"; '' = of
-- none. A breach is "<dimension> <hard|soft> <used> <limit> <1 if crossed with this report>". Those who wait and may go
-- on are answered, to be woken.
-- Flags:   none
-- Go:      Engine.ReportUsage
-- Args:    protocol name:label how:report|undo execution:ref? epoch:n sequence:n key:bytes(128)
--          dimensions:rows(0..64) {dimension:dimension !invalid_delta amount:n}
-- Replies: OK verdict:OK|SOFT_BREACH|HARD_BREACH applied:flag late:flag action:text left:ms period:n parent:text
--          breaches:rows {breach:text} waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta unknown_dimension gate_not_found idempotency_conflict
local ff_report = {}

ff_report.day = 86400000

-- known looks for an earlier report of the same key: its reply, a conflict, or nothing. h tells that it was refused.
function ff_report.known(ctx, b, q)
  if q.key == '' then return nil end
  local text = redis.call('GET', keys.report(ctx.r, q.name, q.key))
  if not text then return nil end
  local digest, expiry, born, rest = string.match(text, '^(%x+) (%d+) (%d+) (.*)$')
  if not digest or tonumber(expiry) <= ctx.now or born ~= b.d.ct then return nil end -- of a gate that was removed
  if digest ~= q.digest then return reply.err('idempotency_conflict', q.key) end
  if rest == 'h' then
    q.breached = true
    return nil
  end
  return meter.again(rest)
end

-- place finds out where a holder's report stands among the others of its execution: new, late, or a repetition, whose
-- reply it returns.
function ff_report.place(q, l)
  local e, seq = tonumber(l.e or '0'), tonumber(l.q or '0')
  if q.epoch > e then return { e = q.epoch, q = q.sequence, e2 = e, q2 = seq } end
  if q.epoch == e then
    if q.sequence == seq then return nil, meter.again(l.rp or '') end
    if q.sequence < seq then return nil, reply.already('OK', '1', '0', '', '0', l.p or '0', '', '0', '0') end
    return { e = e, q = q.sequence, e2 = tonumber(l.e2 or '0'), q2 = tonumber(l.q2 or '0') }
  end
  local e2, seq2 = tonumber(l.e2 or '0'), tonumber(l.q2 or '0')
  if q.epoch < e2 or q.epoch == e2 and q.sequence <= seq2 then
    return nil, reply.already('OK', '1', '1', '', '0', l.p or '0', '', '0', '0')
  end
  return { e = e, q = seq, e2 = q.epoch, q2 = q.sequence, late = true }
end

-- write notes what an execution reported, and what was said.
function ff_report.write(ctx, b, q, l, said)
  if q.id == '' then return end
  local fields, gone, place, applied = said.fields, {}, said.at, said.by ~= nil
  local function put(field, value) fields[#fields + 1], fields[#fields + 2] = field, value end
  if place then
    put('e', reply.int(place.e))
    put('q', reply.int(place.q))
    if place.e2 > 0 then
      put('e2', reply.int(place.e2))
      put('q2', reply.int(place.q2))
    end
    if place.late then
      put('lt', reply.int(tonumber(l.lt or '0') + 1))
    else
      put('rp', said.text)
      put('la', applied and q.amounts or '')
    end
  end
  if not applied and q.sequence > 0 and q.action == 'block' then ledger.need(ctx, b, l, q, fields) end
  if applied and l.n then -- it has gone on
    gone[#gone + 1] = 'n'
    redis.call('ZREM', keys.line(ctx.r, b.name), q.id)
  end
  ledger.write(ctx, b, q.id, l, fields, gone, said.by)
end

-- judge returns what is wrong with the arguments, or nil. It notes what they come to.
function ff_report.judge(q)
  q.id = q.execution
  if (q.sequence > 0) ~= (q.epoch > 0) or q.sequence > 0 and q.id == '' then
    return reply.err('invalid_input', 'epoch: with a sequence, of the holder of an execution')
  end
  if string.find(q.key, '[^\33-\126]') then
    return reply.err('invalid_input', 'key: at most 128 bytes of printable ASCII without spaces')
  end
  if q.how == 'undo' then
    if q.sequence == 0 or #q.dimensions > 0 then
      return reply.err('invalid_input', 'sequence: of the report that is taken back, without dimensions')
    end
    return nil
  end
  if #q.dimensions == 0 then return reply.err('invalid_input', 'dimensions: 1..64') end
  if q.key == '' and q.sequence == 0 then return reply.err('invalid_input', 'key: required of who holds no lease') end
  local deltas, wrong = meter.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
  q.deltas, q.amounts = deltas, ledger.text(deltas.by)
  q.digest = redis.sha1hex(q.id .. ' ' .. q.amounts)
  return nil
end

-- judged says what a report does: breaches, and whether it is refused. What is left of a share it has; beyond that it
-- is refused, and else an allowance may cover it. It notes the fields of the ledger, and what is not counted yet.
function ff_report.judged(ctx, b, q, l, fields)
  local part, beyond = ledger.within(b, l, q.deltas)
  if not part then
    q.action = 'reject'
    return beyond, nil, true, 'HARD_BREACH'
  end
  q.deltas = part
  local breaches, overflow, refused, verdict = meter.judge(b, q.deltas)
  local take = refused and ledger.excess(b, l, q.deltas.by)
  if take then
    ledger.lift(ctx, b, l, take, fields)
    breaches, overflow, refused, verdict = meter.judge(b, q.deltas)
  end
  q.action = breaches and meter.action(b, q, breaches)
  return breaches, overflow, refused, verdict
end

-- report counts what was used.
function ff_report.report(ctx, b, q)
  local unknown = meter.unknown(b, q)
  if unknown and q.sequence > 0 then return unknown end -- a holder asks again without those, with the same key
  local before = ff_report.known(ctx, b, q) or unknown
  if before then return before end
  local l, place = q.id ~= '' and meter.ledger(ctx, b, q.id) or {}, nil
  if q.sequence > 0 then
    place, before = ff_report.place(q, l)
    if not place then return before end
  end
  local crowded = meter.crowded(b, q.deltas)
  if crowded then return meter.full(crowded) end
  local fields, by = {}, q.deltas.by
  local breaches, overflow, refused, verdict = ff_report.judged(ctx, b, q, l, fields)
  if not breaches then return reply.err('invalid_delta', overflow, 'the total would pass 9007199254740991') end
  local out = ledger.answer(ctx, b, q, verdict, not refused, place and place.late, breaches)
  out[#out + 1] = '0' -- nobody is woken
  local text = table.concat(out, '\31')
  meter.save(ctx, b)
  ledger.count(ctx, b, q, breaches, refused, not refused and ledger.draw(b, l, by, fields) or nil)
  ff_report.write(ctx, b, q, l, { at = place, fields = fields, text = text, by = not refused and by or nil })
  if q.key ~= '' then
    local mark = q.digest .. ' ' .. reply.int(ctx.now + ff_report.day) .. ' ' .. b.d.ct ..
      ' ' .. (refused and 'h' or text)
    redis.call('SET', keys.report(ctx.r, q.name, q.key), mark, 'PX', reply.int(ff_report.day))
  end
  return { 1, 'OK', unpack(out) }
end

-- kept is the answer of a report that is not taken back.
function ff_report.kept(b) return { 'OK', '0', '0', '', '0', b.d.rc, '', '0' } end

-- undo takes the last report back.
function ff_report.undo(ctx, b, q)
  local name, id = q.name, q.id
  local l = meter.ledger(ctx, b, id)
  local request = id .. ' ' .. reply.int(q.epoch) .. ' ' .. reply.int(q.sequence) .. ' ' .. b.d.ct
  if tonumber(l.e or '0') ~= q.epoch or tonumber(l.q or '0') ~= q.sequence or (l.la or '') == '' then
    return meter.said(ctx, name, request) or
      ledger.room(ctx, b, reply.already(unpack(ff_report.kept(b))))
  end

  meter.save(ctx, b)
  local fields, gone, sets, less, held = { 'la', '' }, {}, {}, {}, {}
  local rest, live = ledger.share(b, l)
  for dim, amount in string.gmatch(l.la, '([^,=]+)=(%d+)') do
    local field = 'd:' .. dim
    local mine = tonumber(l[field] or '0')
    local back = math.min(mine, tonumber(amount))
    if back == mine then
      gone[#gone + 1] = field
    else
      fields[#fields + 1], fields[#fields + 2] = field, reply.int(mine - back)
    end
    if rest and rest[dim] then
      local kept = ledger.restore(l, rest, dim, back)
      if live then back, held[dim] = back - kept, kept end
    end
    if l.p == b.d.rc and back > 0 then
      sets[#sets + 1], sets[#sets + 2] = dim, reply.int(math.max(0, meter.count(b, dim) - back))
      b.used[dim], less[dim] = sets[#sets], -back
    end
  end
  if rest then ledger.leave(l, rest, fields) end
  ledger.hold(ctx, b, held)
  meter.some('HSET', keys.ledger(ctx.r, name, id), fields)
  meter.some('HDEL', keys.ledger(ctx.r, name, id), gone)
  meter.some('HSET', keys.usage(ctx.r, name), sets)
  meter.hour(ctx, b, less)
  if q.key ~= '' then redis.call('DEL', keys.report(ctx.r, name, q.key)) end
  local out = reply.ok(unpack(ff_report.kept(b)))
  if #sets > 0 then ledger.room(ctx, b, out) else out[#out + 1] = '0' end
  return out[11] ~= '0' and meter.say(ctx, name, request, out) or out
end

local function ff_spend(ctx, q)
  local bad = ff_report.judge(q)
  if bad then return bad end
  local b = meter.read(ctx, q.name)
  if not b then return reply.err('gate_not_found', q.name) end
  if not b.counts and q.how == 'report' then
    return reply.ok('OK', '0', '0', '', '0', b.d.rc, b.d.pa, '0', '0')
  end
  return ff_report[q.how](ctx, b, q)
end
