-- ff_remove_budget: forgets a budget with all it counted. Executions that have it as a gate do not run any more until
-- it is made again.
-- Flags:   allow-oom
-- Go:      Engine.RemoveBudget
-- Args:    protocol name:label
-- Replies: OK revision:n; ALREADY_SATISFIED 0
-- Errors:  @root invalid_input
local function ff_remove_budget(ctx, q)
  local name = q.name
  local revision, r = redis.call('HGET', keys.budget(ctx.r, name), 'up'), ctx.r
  redis.call('ZREM', keys.budgets(r), name)
  redis.call('UNLINK', keys.budget(r, name), keys.usage(r, name), keys.spenders(r, name), keys.budget_book(r, name),
    keys.budget_waiters(r, name))
  if not revision then return reply.already('0') end
  return reply.ok(revision)
end
