-- ff_check_budgets: tells whether budgets have room for work of a route to begin; a route that is refused, or asks with wait 1, is woken when there is more. An
-- answer is + (there is room) or !<dimension> <used> <limit> <ms until the next period, 0 = none> or -<code> <detail>.
-- Flags:   none
-- Go:      Engine.CheckBudgets
-- Args:    protocol partition route wait count {name}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_check_budgets(ctx, argv)
  local q, names, behind = args.named(argv, 2, { 'partition', 'route', 'wait' }), args.list(argv, 5, 1, 16)
  if not args.int(q.partition, 0, 65535) or not args.int(q.route, 1, 9007199254740991) then
    return reply.err('invalid_input', 'partition and route')
  end
  if q.wait ~= '0' and q.wait ~= '1' then return reply.err('invalid_input', 'wait: 0 or 1') end
  if not names or argv[behind] then return reply.err('invalid_input', 'count: 1..16 names') end
  local out = { 1, 'OK', argv[5] }
  for i = 1, #names do
    local b, answer = budget.name(names[i]) and budget.read(ctx, names[i]), '+'
    if not b then
      answer = '-budget_not_found ' .. string.sub(names[i], 1, 64)
    else
      local dim = budget.exhausted(b)
      if dim then
        answer = '!' .. dim .. ' ' .. reply.int(budget.count(b, dim)) .. ' ' .. reply.int(budget.hard(b, dim)) .. ' ' ..
            reply.int(budget.left(ctx, b))
      end
      local waiters = keys.budget_waiters(ctx.r, names[i])
      if dim or q.wait == '1' then
        budget.wait(ctx, waiters, q.partition, q.route)
      else
        redis.call('ZREM', waiters, q.partition .. ' ' .. q.route)
      end
    end
    out[#out + 1] = answer
  end
  return out
end
