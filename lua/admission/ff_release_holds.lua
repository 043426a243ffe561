-- ff_release_holds: quotas are told that holds run no more; one that never ran (ran 0) did not start either. Repeating it changes nothing. Those
-- who wait are answered, as many as there is room for, to be woken; at most 256.
-- Flags:   allow-oom
-- Go:      Engine.ReleaseHolds
-- Args:    protocol count {name hold ran}
-- Replies: OK released count {waiter}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_release_holds(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 100)
  if not count or not argv[2 + 3 * count] or argv[3 + 3 * count] then return reply.err('invalid_input', 'count: 1..100 items') end
  for i = 3, 2 + 3 * count, 3 do
    if not quota.name(argv[i]) then return reply.err('invalid_input', 'quota') end
    if argv[i + 2] ~= '0' and argv[i + 2] ~= '1' then return reply.err('invalid_input', 'ran: 0 or 1') end
  end

  local seen, order, released, waiters = {}, {}, 0, {}
  for i = 3, 2 + 3 * count, 3 do
    local name = argv[i]
    local freed = redis.call('ZREM', keys.slots(ctx.r, name), argv[i + 1])
    if not seen[name] then
      seen[name], order[#order + 1] = true, name
    end
    if argv[i + 2] == '0' then
      local back = redis.call('ZREM', keys.window(ctx.r, name), argv[i + 1])
      freed = math.max(freed, back)
    end
    released = released + freed
  end
  for i = 1, #order do
    local q = quota.read(ctx, order[i])
    if q then quota.wake(ctx, q, waiters) end
  end
  return quota.woken(reply.int(released), waiters)
end
