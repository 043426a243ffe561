-- ff_check_budgets: tells whether budgets have room for work of a route to begin; whoever is refused, or asks with wait 1, is woken when there is more. An
-- answer is + (there is room) or !<dimension> <used> <limit> <ms until the next period, 0 = none> or -<code> <detail>.
-- Flags:   none
-- Go:      Engine.CheckBudgets
-- Args:    protocol partition route wait count {name}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_check_budgets(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local partition, route_id, count = args.int(argv[2], 0, 65535), args.int(argv[3], 1, 9007199254740991), args.int(argv[5], 1, 16)
  if not partition or not route_id then return reply.err('invalid_input', 'partition and route') end
  local always = argv[4] == '1'
  if not always and argv[4] ~= '0' then return reply.err('invalid_input', 'wait: 0 or 1') end
  if not count or not argv[5 + count] or argv[6 + count] then return reply.err('invalid_input', 'count: 1..16 names') end
  local out = { 1, 'OK', argv[5] }
  for i = 6, 5 + count do
    local b, answer = budget.name(argv[i]) and budget.read(ctx, argv[i]), '+'
    if not b then
      answer = '-budget_not_found ' .. string.sub(argv[i], 1, 64)
    else
      local dim = budget.exhausted(b)
      if dim then
        answer = '!' .. dim .. ' ' .. reply.int(budget.count(b, dim)) .. ' ' .. reply.int(budget.hard(b, dim)) .. ' ' ..
            reply.int(budget.left(ctx, b))
      end
      local waiters = keys.budget_waiters(ctx.r, argv[i])
      if dim or always then
        budget.wait(ctx, waiters, argv[2], argv[3])
      else
        redis.call('ZREM', waiters, argv[2] .. ' ' .. argv[3])
      end
    end
    out[#out + 1] = answer
  end
  return out
end
