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
local function ff_release_usage(ctx, argv)
  local a, bad = decode.ff_release_usage(argv)
  if not a then return bad end
  local items, out, waiters, known = a.usages, { 1, 'OK', reply.int(#a.usages) }, {}, {}
  for i = 1, #items do
    local q, answer = items[i], '='
    local name, purged = q.name, q.outcome == 'purged'
    if known[name] == nil and not purged then known[name] = budget.read(ctx, name) or false end
    local b = known[name]
    if purged then
      budget.purged(ctx, name, q.execution)
    elseif not b then
      answer = '-budget_not_found ' .. name
    elseif q.outcome == 'asked' or string.find(',' .. (b.d.rf or '') .. ',', ',' .. q.outcome .. ',', 1, true) then
      budget.save(ctx, b)
      if budget.free(ctx, b, q.execution, q.outcome, q.epoch) then answer, b.freed = '+', true end
    end
    out[#out + 1] = answer
  end
  for name, b in pairs(known) do
    if b and b.freed and not budget.exhausted(b) then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  end
  reply.add(out, waiters)
  return out
end
