-- ff_reset_budget: begins a new period now, at an operator's word. When the next one begins by itself stays as it
-- was, unless move. The same request again, within a day, answers what the first did.
-- Flags:   allow-oom
-- Go:      Engine.ResetBudget
-- Args:    protocol name:label move:flag request:id
-- Replies: OK period:n left:ms waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input budget_not_found
local function ff_reset_budget(ctx, q)
  local name, move = q.name, q.move
  local before = budget.said(ctx, name, q.request)
  if before then return before end
  local b = budget.read(ctx, name)
  if not b then return reply.err('budget_not_found', name) end

  budget.save(ctx, b)
  local nx, iv, waiters = tonumber(b.d.nx or ''), tonumber(b.d.iv), {}
  if move and iv > 0 then nx = ctx.now + iv end
  budget.reset(ctx, b, 0, nx, trail.by(ctx))
  budget.save(ctx, b)
  budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters)
  return budget.say(ctx, name, q.request,
    reply.ok(b.d.rc, reply.int(budget.left(ctx, b)), reply.int(#waiters), unpack(waiters)))
end
