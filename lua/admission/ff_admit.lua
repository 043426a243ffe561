-- ff_admit: asks a quota for starts, in order: it admits the first ones, as many as it has room for, each under a hold
-- "<partition>.<execution>:<epoch>"; one that was admitted before is not admitted twice. Why it stopped is rate or cap, and retry in how many ms to ask
-- again; whoever is refused is woken earlier if there is room. Suspects are holds that nobody has heard of for a while: their executions'
-- partitions know (ff_check_holds, ff_settle_holds). ttl is how long a hold is not suspect, ms. Without a hold it is asked whether there
-- is room for one: who has closed a route asks, so that a wake that came before the closing is not lost.
-- Flags:   none
-- Go:      Engine.Admit
-- Args:    protocol name partition route ttl count {hold}
-- Replies: OK admitted why retry count {suspect}
-- Errors:  invalid_input quota_policy_not_found partition_missing partition_frozen protocol_mismatch
local ff_admit_do = {}

-- why returns what has no room for one more, nil when everything has.
function ff_admit_do.why(q, started, held)
  if q.rate > 0 and started >= q.rate then return 'rate' end
  if q.cap > 0 and held >= q.cap then return 'cap' end
  return nil
end

local function ff_admit(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local name, partition, route_id = quota.name(argv[2]), args.int(argv[3], 0, 65535), args.int(argv[4], 1, 9007199254740991)
  if not name then return reply.err('invalid_input', 'quota') end
  if not partition or not route_id then return reply.err('invalid_input', 'partition and route') end
  local ttl, count = args.int(argv[5], 1000, quota.vouched), args.int(argv[6], 0, 100)
  if not ttl then return reply.err('invalid_input', 'ttl: 1000..600000') end
  if not count or not argv[6 + count] or argv[7 + count] then return reply.err('invalid_input', 'count: 0..100 holds') end
  for i = 7, 6 + count do
    if not string.find(argv[i], '^%d+%.[%x-]+:%d+$') or #argv[i] > 64 then
      return reply.err('invalid_input', 'hold: partition.execution:epoch')
    end
  end
  local q = quota.read(ctx, name)
  if not q then return reply.err('quota_policy_not_found', name) end

  local slots, window, who = keys.slots(ctx.r, name), keys.window(ctx.r, name), argv[3] .. ' ' .. argv[4]
  quota.trim(ctx, q)
  local started, held, admitted, why = quota.started(ctx, q), q.cap > 0 and redis.call('ZCARD', slots) or 0, 0, nil
  local taken, began = {}, {}
  if count == 0 then why = ff_admit_do.why(q, started, held) end
  for i = 7, 6 + count do
    local known = redis.call('ZSCORE', q.cap > 0 and slots or window, argv[i])
    if not known then
      why = ff_admit_do.why(q, started, held)
      if why then break end
      started, held = started + 1, held + 1
      began[#began + 1] = ctx.t
      began[#began + 1] = argv[i]
      taken[#taken + 1] = reply.int(ctx.now + ttl)
      taken[#taken + 1] = argv[i]
    end
    admitted = admitted + 1
  end
  if #began > 0 and q.rate > 0 then
    redis.call('ZADD', window, 'NX', unpack(began))
    redis.call('PEXPIRE', window, reply.int(q.window + 1000)) -- an idle quota keeps nothing
  end
  if #taken > 0 and q.cap > 0 then redis.call('ZADD', slots, unpack(taken)) end
  local retry, suspects = 0, {}
  if not why then
    redis.call('ZREM', keys.cap_waiters(ctx.r, name), who)
    redis.call('ZREM', keys.rate_waiters(ctx.r, name), who)
  end
  if why == 'rate' then
    budget.wait(ctx, keys.rate_waiters(ctx.r, name), argv[3], argv[4])
    retry = quota.until_rate(ctx, q, who)
  elseif why == 'cap' then
    suspects = quota.suspects(ctx, q)
    retry = quota.until_slot(ctx, q, who)
    budget.wait(ctx, keys.cap_waiters(ctx.r, name), argv[3], argv[4])
  end
  return reply.ok(reply.int(admitted), why or '', reply.int(retry), reply.int(#suspects), unpack(suspects))
end
