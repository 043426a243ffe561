-- ff_report_usage: adds to what was used of a budget, all dimensions or none: what would pass a hard limit is
-- refused, unless the budget only warns; what is refused is counted as such. With block, the ledger of a holder's
-- execution keeps what it waits for. A report is known again by its key (for a day; the same amounts are answered as
-- the first time) or, from the holder of an execution, by epoch and sequence. A holder whose epoch is not the newest
-- that was seen spent all the same: it counts, and is marked late; one before the second newest is answered as late
-- and counted already, for its sequence is not known any more. A budget counts at most 64 dimensions in a period, of
-- which those with limits have theirs kept free: another one is refused. The execution is "<partition>.<uuid>"; '' =
-- of none. A breach is "<dimension> <hard|soft> <used> <limit> <1 if crossed with this report>".
-- Flags:   none
-- Go:      Engine.ReportUsage
-- Args:    protocol name:label execution:ref? epoch:n sequence:n key:bytes(128) dimensions:rows(1..64)
--          {dimension:dimension !invalid_delta amount:n}
-- Replies: OK verdict:OK|SOFT_BREACH|HARD_BREACH applied:flag late:flag action:text left:ms period:n breaches:rows
--          {breach:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta unknown_dimension budget_not_found idempotency_conflict
local ff_report = {}

ff_report.day = 86400000

-- known looks for an earlier report of the same key: its reply, a conflict, or nothing. h tells that it was refused.
function ff_report.known(ctx, b, q)
  if q.key == '' then return nil end
  local text = redis.call('GET', keys.report(ctx.r, q.name, q.key))
  if not text then return nil end
  local digest, expiry, born, rest = string.match(text, '^(%x+) (%d+) (%d+) (.*)$')
  if not digest or tonumber(expiry) <= ctx.now or born ~= b.d.ct then return nil end -- of a budget that was removed
  if digest ~= q.digest then return reply.err('idempotency_conflict', q.key) end
  if rest == 'h' then
    q.breached = true
    return nil
  end
  return budget.again(rest)
end

-- place finds out where a holder's report stands among the others of its execution: new, late, or a repetition, whose
-- reply it returns.
function ff_report.place(q, l)
  local e, seq = tonumber(l.e or '0'), tonumber(l.q or '0')
  if q.epoch > e then return { e = q.epoch, q = q.sequence, e2 = e, q2 = seq } end
  if q.epoch == e then
    if q.sequence == seq then return nil, budget.again(l.rp or '') end
    if q.sequence < seq then return nil, reply.already('OK', '1', '0', '', '0', l.p or '0', '0') end
    return { e = e, q = q.sequence, e2 = tonumber(l.e2 or '0'), q2 = tonumber(l.q2 or '0') }
  end
  local e2, seq2 = tonumber(l.e2 or '0'), tonumber(l.q2 or '0')
  if q.epoch < e2 or q.epoch == e2 and q.sequence <= seq2 then
    return nil, reply.already('OK', '1', '1', '', '0', l.p or '0', '0')
  end
  return { e = e, q = seq, e2 = q.epoch, q2 = q.sequence, late = true }
end

-- ledger writes what an execution reported, and when.
function ff_report.ledger(ctx, b, q, l, place, text, applied)
  if q.id == '' then return end
  local key, r = keys.ledger(ctx.r, q.name, q.id), ctx.r
  if l.p and l.p ~= b.d.rc then -- of an earlier period
    local old = { 'la' } -- what was counted then is not taken back from what is now
    for field in pairs(l) do
      if string.sub(field, 1, 2) == 'd:' then
        old[#old + 1] = field
        l[field] = nil
      end
    end
    budget.some('HDEL', key, old)
  end
  if not l.b then redis.call('DEL', key) end -- what another budget of the name left
  local fields = { 'b', b.d.ct, 'p', b.d.rc }
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
      put('rp', text)
      put('la', applied and q.amounts or '')
    end
  end
  if not applied and q.sequence > 0 and q.action == 'block' then
    local before = budget.need(b, l.n)
    put('n', budget.stage(b) .. ' ' .. reply.int((before and before.times or 0) + 1) .. ' ' .. q.amounts)
  end
  if applied then
    if l.n then redis.call('HDEL', key, 'n') end -- it has gone on
    for i = 1, #q.deltas.order do
      local dim = q.deltas.order[i]
      put('d:' .. dim, reply.int(math.min(9007199254740991, tonumber(l['d:' .. dim] or '0') + q.deltas.by[dim])))
    end
  end
  budget.some('HSET', key, fields)
  local forget = tonumber(l.x or '')
  redis.call('PEXPIRE', key,
    reply.int(forget and forget - ctx.now or math.max(budget.kept, budget.left(ctx, b) + ff_report.day)))
  if not applied or forget then return end
  redis.call('ZADD', keys.spenders(r, q.name), ctx.t, q.id)
  local old = redis.call('ZRANGEBYSCORE', keys.spenders(r, q.name), '-inf', reply.int(ctx.now - budget.kept), 'LIMIT',
    '0', '10')
  if #old > 0 then redis.call('ZREM', keys.spenders(r, q.name), unpack(old)) end
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
  if q.key == '' and q.sequence == 0 then return reply.err('invalid_input', 'key: required of who holds no lease') end
  local deltas, wrong = budget.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
  local list = {}
  for dim, n in pairs(deltas.by) do list[#list + 1] = dim .. '=' .. reply.int(n) end
  table.sort(list)
  q.deltas, q.amounts = deltas, table.concat(list, ',')
  q.digest = redis.sha1hex(q.id .. ' ' .. q.amounts)
  return nil
end

-- unknown refuses dimensions that a strict budget does not know, all of them by name.
function ff_report.unknown(b, q)
  if b.d.st ~= '1' then return nil end
  local list = {}
  for i = 1, #q.deltas.order do
    local dim = q.deltas.order[i]
    if not b.d['h:' .. dim] then list[#list + 1] = dim end
  end
  return list[1] and reply.err('unknown_dimension', unpack(list))
end

-- action is what the budget wants done about a breach: what is larger than a limit fits into no period, so it does
-- not wait for one.
function ff_report.action(b, q, breaches)
  if b.d.hd ~= 'block' then return b.d.hd end
  for i = 1, #breaches do
    local x = breaches[i]
    if x.kind == 'hard' and q.deltas.by[x.dim] > x.limit then return 'fail' end
  end
  return 'block'
end

-- apply counts a report that is not refused, and a breach whether it is or not.
function ff_report.apply(ctx, b, q, breaches, refused)
  local key, fields = keys.budget(ctx.r, q.name), {}
  local hard, soft = nil, false
  for i = 1, #breaches do
    local x = breaches[i]
    if x.kind == 'hard' then hard = hard or x.dim else soft = true end
    if x.crossed then
      fields[#fields + 1], fields[#fields + 2] = 'w:' .. x.dim, b.d.rc
      if b.d.sf == 'warn' then
        budget.note(ctx, keys.budget_book(ctx.r, q.name), 'soft_limit', q.id,
          x.dim .. ' ' .. reply.int(x.used) .. ' ' .. reply.int(x.limit))
      end
    end
  end
  if hard and not q.breached then
    local more = { 'bc', reply.int(tonumber(b.d.bc) + 1), 'ba', ctx.t, 'bd', hard }
    for i = 1, #more do fields[#fields + 1] = more[i] end
  end
  if soft then fields[#fields + 1], fields[#fields + 2] = 'bs', reply.int(tonumber(b.d.bs) + 1) end
  if refused and not q.breached then
    for dim, n in pairs(q.deltas.by) do
      if b.d['h:' .. dim] then
        fields[#fields + 1] = 'z:' .. dim
        fields[#fields + 1] = reply.int(math.min(9007199254740991, tonumber(b.d['z:' .. dim] or '0') + n))
      end
    end
  end
  if refused and q.sequence > 0 and q.action == 'block' then
    fields[#fields + 1], fields[#fields + 2] = 'nd', budget.stage(b)
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  if refused then return end
  local sets = {}
  for i = 1, #q.deltas.order do
    local dim = q.deltas.order[i]
    sets[#sets + 1], sets[#sets + 2] = dim, reply.int(budget.count(b, dim) + q.deltas.by[dim])
  end
  redis.call('HSET', keys.usage(ctx.r, q.name), unpack(sets))
end

local function ff_report_usage(ctx, q)
  local bad = ff_report.judge(q)
  if bad then return bad end
  local b = budget.read(ctx, q.name)
  if not b then return reply.err('budget_not_found', q.name) end
  local unknown = ff_report.unknown(b, q)
  if unknown and q.sequence > 0 then return unknown end -- a holder asks again without those, with the same key
  local before = ff_report.known(ctx, b, q) or unknown
  if before then return before end
  local l, place = q.id ~= '' and budget.ledger(ctx, b, q.id) or {}, nil
  if q.sequence > 0 then
    place, before = ff_report.place(q, l)
    if not place then return before end
  end
  local crowded = budget.crowded(b, q.deltas)
  if crowded then return budget.full(crowded) end
  local breaches, overflow, refused, verdict = budget.judge(b, q.deltas)
  if not breaches then return reply.err('invalid_delta', overflow, 'the total would pass 9007199254740991') end

  q.action = ff_report.action(b, q, breaches)
  local out = { verdict, refused and '0' or '1', place and place.late and '1' or '0', q.action,
    reply.int(budget.left(ctx, b)), b.d.rc, reply.int(#breaches) }
  for i = 1, #breaches do
    local x = breaches[i]
    out[#out + 1] = x.dim .. ' ' .. x.kind .. ' ' .. reply.int(x.used) .. ' ' .. reply.int(x.limit) ..
      ' ' .. (x.crossed and '1' or '0')
  end
  local text = table.concat(out, '\31')
  budget.save(ctx, b)
  ff_report.apply(ctx, b, q, breaches, refused)
  ff_report.ledger(ctx, b, q, l, place, text, not refused)
  if q.key ~= '' then
    local mark = q.digest .. ' ' .. reply.int(ctx.now + ff_report.day) .. ' ' .. b.d.ct ..
      ' ' .. (refused and 'h' or text)
    redis.call('SET', keys.report(ctx.r, q.name, q.key), mark, 'PX', reply.int(ff_report.day))
  end
  return { 1, 'OK', unpack(out) }
end
