-- ff_check_budgets: tells whether budgets have room for work of a route to begin; a route that is refused is woken
-- when there is more. What a budget refused one of the executions waits until there is room for all of that, or a new
-- period or other limits, and those behind it wait with it. An answer is + (there is room) or !<dimension> <used>
-- <limit> <ms until the next period, 0 = none> <what was refused, 0 = there is no room at all> <ms until it is worth
-- while to ask again> <how many executions, from the first, may begin> or -<code> <detail>.
-- Flags:   none
-- Go:      Engine.CheckBudgets
-- Args:    protocol partition:n(0..65535) route:n(1..) budgets:rows(1..16) {budget:text} executions:rows(0..100)
--          {execution:id}
-- Replies: OK answers:rows {answer:text}
-- Errors:  @root invalid_input
local function ff_check_budgets(ctx, q)
  local names, list, partition, route = q.budgets, q.executions, reply.int(q.partition), reply.int(q.route)
  local out = { 1, 'OK', reply.int(#names) }
  for i = 1, #names do
    local b, answer = args.label(names[i]) and budget.read(ctx, names[i]), '+'
    if not b then
      answer = '-budget_not_found ' .. string.sub(names[i], 1, 64)
    else
      local dim, short = budget.exhausted(b), nil
      if not dim then
        short = budget.short(ctx, b, partition, list)
        dim = short and short.dim
      end
      if dim then
        answer = '!' .. dim .. ' ' .. reply.int(budget.count(b, dim)) .. ' ' .. reply.int(budget.hard(b, dim)) .. ' ' ..
            reply.int(budget.left(ctx, b)) .. ' ' .. (short and short.amount or '0') .. ' ' ..
            reply.int(short and short.pause or budget.pause) .. ' ' .. reply.int(short and short.first or 0)
      end
      local waiters = keys.budget_waiters(ctx.r, names[i])
      if dim then
        budget.wait(ctx, waiters, q.partition, q.route)
      else
        redis.call('ZREM', waiters, q.partition .. ' ' .. q.route)
      end
    end
    out[#out + 1] = answer
  end
  return out
end
