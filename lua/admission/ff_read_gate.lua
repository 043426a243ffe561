-- ff_read_gate: one gate as it is now: routes that wait for its amounts, starts in its window, slots that are taken and
-- how many of them are suspect, routes that wait for these, its record, what is used, the newest of its audit log,
-- who spent last, and holds, each "<partition>.<execution>:<epoch> <ms when it becomes suspect>". A spender is
-- "<partition>.<uuid> <ms> <period> <reports that were late> <dimension>=<amount>,… <what it has reserved, likewise>";
-- they are fewer than asked for if they have more than about 2,560 amounts. As many of those who wait in line for
-- amounts, first the first, are each "<partition>.<uuid> <how often it was refused> <ms when it asked last> <amounts>".
-- With entries, hours are what was used in the last 24 hours and this one (meter.hours).
-- Of the gate of a service holds are calls, and line is who waits for one (service.line). An execution's place there is
-- answered with the time until its turn and what it wants, 0 if it has none.
-- Flags:   no-writes
-- Go:      Engine.ReadGate
-- Args:    protocol name:gate spenders:n(0..100) holds:n(0..1000) entries:n(0..256) execution:ref?
-- Replies: OK now:instant waiting:n started:n held:n suspect:n for_slots:n for_rate:n
--          fields:rows {field:text value:text} used entries:rows {entry:text} spenders:rows {spender:text}
--          holds:rows {hold:text} line:rows {waits:text} hours:rows {hour:text}
--          pace:rows {field:text value:text} place:n turn:ms wants:text
-- Errors:  @root invalid_input gate_not_found
local ff_read_gate_do = {}

-- spenders appends who spent last.
function ff_read_gate_do.spenders(ctx, name, most, out)
  local list = most > 0 and redis.call('ZREVRANGE', keys.spenders(ctx.r, name), '0', reply.int(most - 1),
    'WITHSCORES') or {}
  local at, count, amounts = #out + 1, 0, 0
  out[at] = '0'
  for i = 1, #list, 2 do
    if amounts > 2560 then break end
    local l, parts, held = meter.hash(keys.ledger(ctx.r, name, list[i])), {}, {}
    for field, n in pairs(l) do
      local area = string.sub(field, 1, 2)
      if area == 'd:' then parts[#parts + 1] = string.sub(field, 3) .. '=' .. n end
      for dim, amount in pairs(area == 'o:' and ledger.amounts(string.match(n, '[^ ]*$')) or {}) do
        held[dim] = (held[dim] or 0) + amount
      end
    end
    table.sort(parts)
    count, amounts = count + 1, amounts + #parts
    out[#out + 1] = table.concat({ list[i], reply.int(args.score(list[i + 1])), l.p or '0', l.lt or '0',
      table.concat(parts, ','), ledger.text(held) }, ' ')
  end
  out[at] = reply.int(count)
end

-- line lists who waits for amounts, as far as it is known for what.
function ff_read_gate_do.line(ctx, b, most)
  local list, out = most > 0 and redis.call('ZRANGE', keys.line(ctx.r, b.name), '0', reply.int(most - 1)) or {}, {}
  for i = 1, #list do
    local l = redis.call('HMGET', keys.ledger(ctx.r, b.name, list[i]), 'b', 'n')
    local need = l[1] == b.d.ct and meter.needs(b, l[2] or nil)
    if need then
      out[#out + 1] = table.concat({ list[i], reply.int(need.times), reply.int(need.at), need.amounts }, ' ')
    end
  end
  return out
end

-- service appends who waits for a service, and its pace.
function ff_read_gate_do.service(ctx, b, q, out)
  local s = service.read(ctx, b.name, '')
  local line, own = service.line(ctx, s, math.min(32, q.spenders), q.execution)
  s.p.f, s.p.held, s.p.cap = reply.int(service.factor(ctx, s)), reply.int(s.held), reply.int(s.cap)
  s.p.cu = s.closed > 0 and s.p.cu or nil
  for dim, n in pairs(s.level) do s.p['l:' .. dim] = reply.int(math.floor(n / 60000)) end
  reply.fields(reply.add(reply.add(out, line), {}), s.p)
  out[#out + 1], out[#out + 2], out[#out + 3] = reply.int(own[1]), reply.int(own[2]), ledger.text(own[3])
  return out
end

local function ff_read_gate(ctx, q)
  local name, holds, entries = q.name, q.holds, q.entries
  local b = meter.read(ctx, name)
  if not b then return reply.err('gate_not_found', name) end
  local slots = keys.slots(ctx.r, name)
  local out = { 1, 'OK', ctx.t, reply.int(redis.call('ZCARD', keys.amount_waiters(ctx.r, name))),
    reply.int(starts.started(ctx, b)), reply.int(redis.call('ZCARD', slots)),
    reply.int(redis.call('ZCOUNT', slots, '-inf', ctx.t)),
    reply.int(redis.call('ZCARD', keys.slot_waiters(ctx.r, name))),
    reply.int(redis.call('ZCARD', keys.rate_waiters(ctx.r, name))) }
  reply.fields(reply.fields(out, b.d), b.used)
  local log = entries > 0 and redis.call('LRANGE', keys.gate_log(ctx.r, name), reply.int(-entries), '-1') or {}
  reply.add(out, log)
  ff_read_gate_do.spenders(ctx, name, q.spenders, out)
  if b.d.sv then slots = keys.calls(ctx.r, name) end
  local list = holds > 0 and redis.call('ZRANGE', slots, '0', reply.int(holds - 1), 'WITHSCORES') or {}
  out[#out + 1] = reply.int(#list / 2)
  for i = 1, #list, 2 do out[#out + 1] = list[i] .. ' ' .. reply.int(args.score(list[i + 1])) end
  if b.d.sv then return ff_read_gate_do.service(ctx, b, q, out) end
  reply.add(out, ff_read_gate_do.line(ctx, b, q.spenders))
  reply.add(out, entries > 0 and meter.hours(ctx, b) or {})
  for i = 1, 3 do out[#out + 1] = '0' end
  out[#out + 1] = ''
  return out
end
