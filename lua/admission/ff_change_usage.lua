-- ff_change_usage: an operator changes what was used of a gate, and those who wait for it are answered, to be woken.
-- adjust corrects amounts, up or down, never below zero; it is written into the gate's book, with who asked, and 256
-- bytes of why. reset begins a new period now; when the next one begins by itself stays as it was, and with move it is
-- a whole interval away. raise lifts hard limits for this period, by amounts. The same request again, within a day,
-- answers what the first did.
-- Flags:   allow-oom
-- Go:      Engine.AdjustUsage
-- Args:    protocol name:label request:id how:adjust|reset|move|raise dimensions:rows(0..64)
--          {dimension:dimension !invalid_delta amount:int}
-- Replies: OK period:n left:ms used waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta gate_not_found
local ff_change_usage_do = {}

-- adjust returns an error, or nil and the rows of what is used now.
function ff_change_usage_do.adjust(ctx, b, deltas)
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
  meter.note(ctx, keys.gate_book(ctx.r, b.name), 'adjusted', trail.by(ctx),
    table.concat(list, ',') .. ' ' .. trail.why(ctx, 256))
  return nil, sets
end

-- raise returns an error, or nil: limits that there are are higher until the period ends.
function ff_change_usage_do.raise(ctx, b, q, deltas)
  local sets, list = {}, {}
  for i = 1, #deltas.order do
    local dim, field = deltas.order[i], 'x:' .. deltas.order[i]
    local n = tonumber(b.d[field] or '0') + deltas.by[dim]
    if deltas.by[dim] < 0 then return reply.err('invalid_delta', dim, 'a limit is raised by 0 or more') end
    if n > 9007199254740991 then return reply.err('invalid_delta', dim, 'the limit would pass 9007199254740991') end
    if tonumber(b.d['h:' .. dim] or '0') > 0 then
      b.d[field] = reply.int(n)
      sets[#sets + 1], sets[#sets + 2] = field, b.d[field]
      list[#list + 1] = dim .. '=' .. reply.int(deltas.by[dim])
    end
  end
  meter.save(ctx, b)
  meter.some('HSET', keys.gate(ctx.r, b.name), sets)
  meter.note(ctx, keys.gate_book(ctx.r, b.name), 'raised', trail.by(ctx),
    table.concat(list, ',') .. ' ' .. trail.why(ctx, 256))
  return nil
end

local function ff_change_usage(ctx, q)
  local name, deltas, wrong = q.name, meter.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
  if (q.how == 'adjust' or q.how == 'raise') ~= (#deltas.order > 0) then
    return reply.err('invalid_input', 'dimensions: some to adjust or raise, none to reset')
  end
  local before = meter.said(ctx, name, q.request)
  if before then return before end
  local b = meter.read(ctx, name)
  if not b then return reply.err('gate_not_found', name) end
  local used, bad = {}, nil
  if q.how == 'adjust' then
    bad, used = ff_change_usage_do.adjust(ctx, b, deltas)
    if bad then return bad end
  elseif q.how == 'raise' then
    bad = ff_change_usage_do.raise(ctx, b, q, deltas)
    if bad then return bad end
  else
    meter.save(ctx, b)
    local nx, iv = tonumber(b.d.nx or ''), tonumber(b.d.iv)
    if q.how == 'move' and iv > 0 then nx = ctx.now + iv end
    meter.reset(ctx, b, 0, nx, trail.by(ctx))
    meter.save(ctx, b)
  end
  local out = reply.add(reply.ok(b.d.rc, reply.int(meter.left(ctx, b))), used, 2)
  return meter.say(ctx, name, q.request, ledger.room(ctx, b, out))
end
