-- ff_settle_gates: gates are told what became of executions that they admitted, or that used of them. held: the hold is
-- good for starts.vouched ms more; gone: it runs no more; never: and never ran, so it did not start either. failed,
-- cancelled and expired: it ended so, and what it reported in the current period is given back, if the gate refunds
-- that; asked: it is given back at an operator's word. Nothing is given back if an attempt of a later epoch has
-- reported; epoch 0 is any. Of what was purged nothing is given back: its ledger is forgotten half an hour later, and
-- it is no spender any more. What ended so or was purged leaves the line, and those behind it are woken. held with a
-- number is of a reservation. Without news up to 64 reservations are answered that nobody has vouched for in a while,
-- and the gate whose word decides (ledger.suspects). The execution is "<partition>.<uuid>". An answer is + where
-- something was freed or given back, else =; a gate that is gone has nothing. Those who wait are answered, as many as
-- there is room for, to be woken; at most 256 for a meter.
-- Flags:   allow-oom
-- Go:      Engine.SettleGates
-- Args:    protocol news:rows(0..100) {name:gate execution:ref epoch:n number:n
--          what:held|gone|never|failed|cancelled|expired|asked|purged}
-- Replies: OK answers:rows {answer:text} waiters:rows {waiter:text} suspects:rows {gate:text hold:text last:text}
-- Errors:  @root invalid_input
local ff_settle = {}

-- hold settles the hold of an execution, and returns whether it was freed.
function ff_settle.hold(ctx, b, x)
  if x.number > 0 then
    ledger.vouch(ctx, b, x.name, x.execution, reply.int(x.epoch) .. '.' .. reply.int(x.number))
    return false
  end
  local hold, slots = x.execution .. ':' .. reply.int(x.epoch), keys.slots(ctx.r, x.name)
  if x.what == 'held' then
    redis.call('ZADD', slots, 'XX', reply.int(ctx.now + starts.vouched), hold)
    return false
  end
  local gone = redis.call('ZREM', slots, hold)
  if x.what == 'never' then gone = gone + redis.call('ZREM', keys.window(ctx.r, x.name), hold) end
  return gone > 0
end

-- refund gives back what an execution used, and returns whether there was something.
function ff_settle.refund(ctx, b, x)
  if not b or x.what ~= 'asked' and not string.find(',' .. b.d.rf .. ',', ',' .. x.what .. ',', 1, true) then
    return false
  end
  meter.save(ctx, b)
  local given = meter.free(ctx, b, x.execution, x.what, x.epoch)
  b.freed = b.freed or given
  return given
end

ff_settle.holds = { held = true, gone = true, never = true }
ff_settle.over = { failed = true, cancelled = true, expired = true, purged = true }

local function ff_settle_gates(ctx, q)
  local out, known, order, waiters = { 1, 'OK', reply.int(#q.news) }, {}, {}, {}
  for i = 1, #q.news do
    local x, done = q.news[i], false
    if known[x.name] == nil then known[x.name], order[#order + 1] = meter.read(ctx, x.name) or false, x.name end
    local b = known[x.name]
    if b and ff_settle.over[x.what] and ledger.quit(ctx, b, x.execution, x.epoch) then b.freed = true end
    if ff_settle.holds[x.what] then
      done = ff_settle.hold(ctx, b, x)
      if b and x.number == 0 then b.told = true end
    elseif x.what == 'purged' then
      meter.purged(ctx, x.name, x.execution)
    else
      done = ff_settle.refund(ctx, b, x)
    end
    out[#out + 1] = done and '+' or '='
  end
  for i = 1, #order do
    local b = known[order[i]]
    if b and b.told then starts.wake(ctx, b, waiters) end
    if b and b.freed then ledger.woken(ctx, b, waiters) end
  end
  return reply.add(reply.add(out, waiters), #q.news == 0 and ledger.suspects(ctx) or {}, 3)
end
