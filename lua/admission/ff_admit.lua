-- ff_admit: asks a quota for starts, in order: it admits the first ones, as many as it has room for, each under a hold
-- "<partition>.<execution>:<epoch>"; one that was admitted before is not admitted twice. Why it stopped is rate or
-- cap, and retry in how many ms to ask again; a route that is refused is woken earlier if there is room. Suspects are
-- holds that nobody has heard of for a while: their executions' partitions know (ff_check_holds, ff_settle_holds).
-- ttl is how long a hold is not suspect, ms. Without a hold it is asked whether there is room for one: who has closed
-- a route asks, so that a wake that came before the closing is not lost.
-- Flags:   none
-- Go:      Engine.Admit
-- Args:    protocol name:quota partition:n(0..65535) route:n(1..) ttl:ms(1000..600000) holds:rows(0..100)
--          {hold:bytes(64)}
-- Replies: OK count:n why:text retry:ms suspects:rows {suspect:text}
-- Errors:  @root invalid_input quota_policy_not_found
local ff_admit_do = {}

-- why returns what has no room for one more, nil when everything has.
function ff_admit_do.why(q, started, held)
  if q.rate > 0 and started >= q.rate then return 'rate' end
  if q.cap > 0 and held >= q.cap then return 'cap' end
  return nil
end

local function ff_admit(ctx, q)
  local name, ttl, holds = q.name, q.ttl, q.holds
  for i = 1, #holds do
    if not string.find(holds[i], '^%d+%.[%x-]+:%d+$') then
      return reply.err('invalid_input', 'holds: hold: partition.execution:epoch')
    end
  end
  local rule = quota.read(ctx, name)
  if not rule then return reply.err('quota_policy_not_found', name) end

  local slots, window = keys.slots(ctx.r, name), keys.window(ctx.r, name)
  local who = reply.int(q.partition) .. ' ' .. reply.int(q.route)
  quota.trim(ctx, rule)
  local started, held, admitted, why = quota.started(ctx, rule), rule.cap > 0 and redis.call('ZCARD', slots) or 0, 0,
    nil
  local taken, began = {}, {}
  if #holds == 0 then why = ff_admit_do.why(rule, started, held) end
  for i = 1, #holds do
    local known = redis.call('ZSCORE', rule.cap > 0 and slots or window, holds[i])
    if not known then
      why = ff_admit_do.why(rule, started, held)
      if why then break end
      started, held = started + 1, held + 1
      began[#began + 1], began[#began + 2] = ctx.t, holds[i]
      taken[#taken + 1], taken[#taken + 2] = reply.int(ctx.now + ttl), holds[i]
    end
    admitted = admitted + 1
  end
  if #began > 0 and rule.rate > 0 then
    redis.call('ZADD', window, 'NX', unpack(began))
    redis.call('PEXPIRE', window, reply.int(rule.window + 1000)) -- an idle quota keeps nothing
  end
  if #taken > 0 and rule.cap > 0 then redis.call('ZADD', slots, unpack(taken)) end
  local retry, suspects = 0, {}
  -- Who asks whether there is room opens the route. What is admitted was perhaps granted before the route was closed,
  -- which stays closed, so that its wish for a slot must stay, too. A window wakes by time alone.
  if not why and #holds == 0 then redis.call('ZREM', keys.cap_waiters(ctx.r, name), who) end
  if not why then redis.call('ZREM', keys.rate_waiters(ctx.r, name), who) end
  if why == 'rate' then
    quota.wait(ctx, rule, keys.rate_waiters(ctx.r, name), q.partition, q.route, rule.window)
    retry = quota.until_rate(ctx, rule, who)
  elseif why == 'cap' then
    suspects = quota.suspects(ctx, rule)
    retry = quota.until_slot(ctx, rule, who)
    quota.wait(ctx, rule, keys.cap_waiters(ctx.r, name), q.partition, q.route, retry)
  end
  return reply.ok(reply.int(admitted), why or '', reply.int(retry), reply.int(#suspects), unpack(suspects))
end
