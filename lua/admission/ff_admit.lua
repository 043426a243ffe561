-- ff_admit: asks a gate to let executions run, in order: it admits the first ones, as many as it has room for, each
-- under a hold "<partition>.<execution>:<epoch>"; one that was admitted before is not admitted twice. Why it stopped is
-- amount, rate or cap, and retry in how many ms to ask again; a route that is refused is woken earlier if there is
-- room. An amount is told with the dimension, what is used of it, its limit, and what was refused: what a gate refused
-- one of the executions waits until there is room for all of that, or a new period or other limits, and those behind it
-- wait with it; 0 = there is no room at all. Suspects are holds that nobody has heard of for a while: their executions'
-- partitions know (ff_check_holds, ff_settle_gates). ttl is how long a hold is not suspect. meters is what the gate
-- measures (meter.meters), parent the gate above it. With look nothing is admitted: who has closed a route asks whether
-- there is room, so that a wake that came before the closing is not lost.
-- Flags:   none
-- Go:      Engine.Admit
-- Args:    protocol name:gate partition:n(0..65535) route:n(1..) ttl:ms(1000..600000) look:flag
--          holds:rows(0..100) {hold:bytes(64)}
-- Replies: OK count:n why:text retry:ms meters:text parent:text dimension:text used:n limit:n refused:n
--          suspects:rows {suspect:text}
-- Errors:  @root invalid_input gate_not_found
local ff_admit_do = {}

-- full returns what has no room for one more, nil when everything has.
function ff_admit_do.full(g, started, held)
  if g.rate > 0 and started >= g.rate then return 'rate' end
  if g.cap > 0 and held >= g.cap then return 'cap' end
  return nil
end

-- amounts returns how many of the executions, from the first, there is room for, and what is short for the next one.
function ff_admit_do.amounts(ctx, g, q)
  if not g.counts then return #q.holds end
  local dim, short = g.d.hd ~= 'ask' and meter.exhausted(g), nil -- who does not start asks nobody for more
  if dim then
    short = { dim = dim, amount = '0', first = ledger.allowed(ctx, g, q.holds), pause = meter.pause }
    if short.first == #q.holds and short.first > 0 then short = nil end
  else
    short = ledger.short(ctx, g, q.holds)
  end
  local waiters = keys.amount_waiters(ctx.r, g.name)
  if not short then
    redis.call('ZREM', waiters, q.partition .. ' ' .. q.route)
    return #q.holds
  end
  meter.wait(ctx, waiters, q.partition, q.route)
  local left = meter.left(ctx, g)
  short.retry = left > 0 and math.min(left, short.pause) or short.pause
  return short.first, short
end

-- admit lets the first most executions start, as long as there is room. It returns how many, and what is full.
function ff_admit_do.admit(ctx, g, q, most)
  local slots, window, began, taken = keys.slots(ctx.r, g.name), keys.window(ctx.r, g.name), {}, {}
  starts.trim(ctx, g)
  local started, held = starts.started(ctx, g), g.cap > 0 and redis.call('ZCARD', slots) or 0
  if q.look then return 0, ff_admit_do.full(g, started, held) end
  local count, why = 0, nil
  for i = 1, most do
    local hold = q.holds[i]
    if not redis.call('ZSCORE', g.cap > 0 and slots or window, hold) then
      why = ff_admit_do.full(g, started, held)
      if why then break end
      started, held = started + 1, held + 1
      began[#began + 1], began[#began + 2] = ctx.t, hold
      taken[#taken + 1], taken[#taken + 2] = reply.int(ctx.now + q.ttl), hold
    end
    count = count + 1
  end
  if #began > 0 and g.rate > 0 then
    redis.call('ZADD', window, 'NX', unpack(began))
    redis.call('PEXPIRE', window, reply.int(g.window + 1000)) -- an idle gate keeps nothing
  end
  if #taken > 0 and g.cap > 0 then redis.call('ZADD', slots, unpack(taken)) end
  return count, why
end

-- starts asks the window and the slots, and has the route wait for what is full: retry in how many ms, and suspects.
function ff_admit_do.starts(ctx, g, q, most)
  if g.rate == 0 and g.cap == 0 then return q.look and 0 or most, nil, 0, {} end
  local who, r = reply.int(q.partition) .. ' ' .. reply.int(q.route), ctx.r
  local count, why = ff_admit_do.admit(ctx, g, q, most)
  -- Who asks whether there is room opens the route. What is admitted was perhaps granted before the route was closed,
  -- which stays closed, so that its wish for a slot must stay, too. A window wakes by time alone.
  if not why and q.look then redis.call('ZREM', keys.slot_waiters(r, g.name), who) end
  if not why then redis.call('ZREM', keys.rate_waiters(r, g.name), who) end
  local retry, suspects = 0, {}
  if why == 'rate' then
    starts.wait(ctx, g, keys.rate_waiters(r, g.name), q.partition, q.route, g.window)
    retry = starts.until_rate(ctx, g, who)
  elseif why == 'cap' then
    suspects = starts.suspects(ctx, g)
    retry = starts.until_slot(ctx, g, who)
    starts.wait(ctx, g, keys.slot_waiters(r, g.name), q.partition, q.route, retry)
  end
  return count, why, retry, suspects
end

local function ff_admit(ctx, q)
  local name, holds = q.name, q.holds
  for i = 1, #holds do
    if not string.find(holds[i], '^%d+%.[%x-]+:%d+$') then
      return reply.err('invalid_input', 'holds: hold: partition.execution:epoch')
    end
  end
  local g = meter.read(ctx, name)
  if not g then return reply.err('gate_not_found', name) end
  local room, short = ff_admit_do.amounts(ctx, g, q)
  local count, why, retry, suspects = 0, nil, 0, {}
  if not short or room > 0 and not q.look then count, why, retry, suspects = ff_admit_do.starts(ctx, g, q, room) end
  local dim, used, limit, refused = '', 0, 0, '0'
  if short and not why then
    why, retry, dim, refused = 'amount', short.retry, short.dim, short.amount
    used, limit = meter.count(g, dim), meter.hard(g, dim)
  end
  return reply.add(reply.ok(reply.int(count), why or '', reply.int(retry), meter.meters(g), g.d.pa or '', dim,
    reply.int(used), reply.int(limit), refused), suspects)
end
