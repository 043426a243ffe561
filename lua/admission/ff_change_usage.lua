-- ff_change_usage: an operator changes what was used of a gate, and those who wait for it are answered, to be woken.
-- adjust corrects amounts, up or down, never below zero; it is noted in the gate's audit log, with who asked, and 256
-- bytes of why. reset begins a new period now; when the next one begins by itself stays as it was, and with move it is
-- a whole interval away. raise lifts hard limits for this period, by amounts; with an execution it gives that one an
-- allowance, by which it alone may pass them in this period (ledger.excess). used tells then by how much limits are
-- higher, or what the allowance is. The same request again, within a day, answers what the first did.
-- Flags:   allow-oom
-- Go:      Engine.AdjustUsage
-- Args:    protocol name:label request:id how:adjust|reset|move|raise execution:ref?
--          dimensions:rows(0..64) {dimension:dimension !invalid_delta amount:int}
-- Replies: OK period:n left:ms used waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta gate_not_found
local ff_change_usage_do = {}

-- adjust returns an error, or nil and the rows of what is used now.
function ff_change_usage_do.adjust(ctx, b, _, deltas)
  local crowded = meter.crowded(b, deltas)
  if crowded then return meter.full(crowded) end
  local sets, list = {}, {}
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    local now = meter.count(b, dim) + deltas.by[dim]
    if now > 9007199254740991 then return reply.err('invalid_delta', dim, 'the total would pass 9007199254740991') end
    sets[#sets + 1], sets[#sets + 2] = dim, reply.int(math.max(0, now))
    list[i] = dim .. '=' .. reply.int(deltas.by[dim])
  end
  meter.save(ctx, b)
  meter.some('HSET', keys.usage(ctx.r, b.name), sets)
  for i = 1, #sets, 2 do b.used[sets[i]] = sets[i + 1] end
  meter.note(ctx, keys.gate_log(ctx.r, b.name), 'adjusted', trail.by(ctx),
    table.concat(list, ',') .. ' ' .. trail.why(ctx, 256))
  return nil, sets
end

-- sums returns an error, or nil and what amounts come to, of dimensions with a limit, and these as text.
function ff_change_usage_do.sums(b, deltas, before)
  local rows, list = {}, {}
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    local n = tonumber(before[dim] or '0') + deltas.by[dim]
    if deltas.by[dim] < 0 then return reply.err('invalid_delta', dim, 'a limit is raised by 0 or more') end
    if n > 9007199254740991 then return reply.err('invalid_delta', dim, 'the limit would pass 9007199254740991') end
    if tonumber(b.d['h:' .. dim] or '0') > 0 then
      rows[#rows + 1], rows[#rows + 2] = dim, reply.int(n)
      list[#list + 1] = dim .. '=' .. reply.int(deltas.by[dim])
    end
  end
  return nil, rows, table.concat(list, ',')
end

-- areas are fields of an area with the values of rows.
function ff_change_usage_do.areas(area, rows)
  local sets = {}
  for i = 1, #rows, 2 do sets[i], sets[i + 1] = area .. rows[i], rows[i + 1] end
  return sets
end

-- raise returns an error, or nil and rows: limits that there are are higher until the period ends.
function ff_change_usage_do.raise(ctx, b, _, deltas)
  local before = {}
  for i = 1, #deltas.order do before[deltas.order[i]] = b.d['x:' .. deltas.order[i]] end
  local bad, rows, text = ff_change_usage_do.sums(b, deltas, before)
  if bad then return bad end
  meter.save(ctx, b)
  local sets = ff_change_usage_do.areas('x:', rows)
  for i = 1, #sets, 2 do b.d[sets[i]] = sets[i + 1] end
  meter.some('HSET', keys.gate(ctx.r, b.name), sets)
  meter.note(ctx, keys.gate_log(ctx.r, b.name), 'raised', trail.by(ctx), text .. ' ' .. trail.why(ctx, 256))
  return nil, rows
end

-- allow returns an error, or nil and rows: one execution may pass limits that there are until the period ends.
function ff_change_usage_do.allow(ctx, b, q, deltas)
  local l = meter.ledger(ctx, b, q.execution)
  local bad, rows, text = ff_change_usage_do.sums(b, deltas, ledger.spare(b, l) or {})
  if bad then return bad end
  meter.save(ctx, b)
  ledger.write(ctx, b, q.execution, l, ff_change_usage_do.areas('a:', rows), {})
  b.d.al = b.d.rc
  redis.call('HSET', keys.gate(ctx.r, b.name), 'al', b.d.al)
  meter.note(ctx, keys.gate_log(ctx.r, b.name), 'allowed', trail.by(ctx),
    q.execution .. ' ' .. text .. ' ' .. trail.why(ctx, 256))
  return nil, rows
end

-- reset begins a new period.
function ff_change_usage_do.reset(ctx, b, q)
  meter.save(ctx, b)
  local nx, iv = tonumber(b.d.nx or ''), tonumber(b.d.iv)
  if q.how == 'move' and iv > 0 then nx = ctx.now + iv end
  meter.reset(ctx, b, 0, nx, trail.by(ctx))
  meter.save(ctx, b)
  return nil, {}
end

ff_change_usage_do.move = ff_change_usage_do.reset

local function ff_change_usage(ctx, q)
  local name, deltas, wrong = q.name, meter.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
  if (q.how == 'adjust' or q.how == 'raise') ~= (#deltas.order > 0) then
    return reply.err('invalid_input', 'dimensions: some to adjust or raise, none to reset')
  end
  if q.execution ~= '' and q.how ~= 'raise' then
    return reply.err('invalid_input', 'execution: of a raise')
  end
  local before = meter.said(ctx, name, q.request)
  if before then return before end
  local b = meter.read(ctx, name)
  if not b then return reply.err('gate_not_found', name) end
  local allows = q.how == 'raise' and q.execution ~= ''
  local bad, used = ff_change_usage_do[allows and 'allow' or q.how](ctx, b, q, deltas)
  if bad then return bad end
  local out = reply.add(reply.ok(b.d.rc, reply.int(meter.left(ctx, b))), used, 2)
  if not allows then return meter.say(ctx, name, q.request, ledger.room(ctx, b, out)) end
  local woken = {} -- where its queue is is not known here: all look
  meter.waiters(keys.amount_waiters(ctx.r, name), 256, woken)
  return meter.say(ctx, name, q.request, reply.add(out, woken))
end
