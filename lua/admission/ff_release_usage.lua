-- ff_release_usage: gives back what executions reported in the current period of their budgets: because they ended in
-- a way that a budget refunds (failed, cancelled, expired), or at an operator's word. An item whose ledger has
-- nothing is answered =. Of what was purged nothing is given back; its ledger is forgotten half an hour later, and it
-- is no spender any more. The execution is "<partition>.<uuid>", the epoch that of the attempt that ended: if a later
-- one has reported, what is told is old, and nothing is given back; 0 is any.
-- Flags:   allow-oom
-- Go:      Engine.ReleaseUsage
-- Args:    protocol usages:rows(1..10) {name:label execution:ref outcome:text epoch:n}
-- Replies: OK answers:rows {answer:text} waiters:rows {waiter:text}
-- Errors:  @root invalid_input
local function ff_release_usage(ctx, q)
  local items, out, waiters, known = q.usages, { 1, 'OK', reply.int(#q.usages) }, {}, {}
  for i = 1, #items do
    local item, answer = items[i], '='
    local name, purged = item.name, item.outcome == 'purged'
    if known[name] == nil and not purged then known[name] = budget.read(ctx, name) or false end
    local b = known[name]
    if purged then
      budget.purged(ctx, name, item.execution)
    elseif not b then
      answer = '-budget_not_found ' .. name
    elseif item.outcome == 'asked' or
        string.find(',' .. (b.d.rf or '') .. ',', ',' .. item.outcome .. ',', 1, true) then
      budget.save(ctx, b)
      if budget.free(ctx, b, item.execution, item.outcome, item.epoch) then answer, b.freed = '+', true end
    end
    out[#out + 1] = answer
  end
  for name, b in pairs(known) do
    if b and b.freed and not budget.exhausted(b) then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  end
  return reply.add(out, waiters)
end
