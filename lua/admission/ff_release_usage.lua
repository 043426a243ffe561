-- ff_release_usage: gives back what executions reported in the current period of their budgets: because they ended in a way that a
-- budget refunds (failed, cancelled, expired), or at an operator's word (by). An item whose ledger has nothing is answered =. Of what was
-- purged nothing is given back; its ledger is forgotten half an hour later, and it is no spender any more. The execution is
-- "<partition>.<uuid>", the epoch that of the attempt that ended: if a later one has reported, what is told is old, and nothing is given
-- back; 0 is any.
-- Flags:   allow-oom
-- Go:      Engine.ReleaseUsage
-- Args:    protocol by count {name execution outcome epoch}
-- Replies: OK count {answer} count {waiter}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_release_usage(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[3], 1, 10) -- of 64 dimensions each, and a note of it in the book
  if not argv[2] or #argv[2] > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  if not count or not argv[3 + 4 * count] or argv[4 + 4 * count] then return reply.err('invalid_input', 'count: 1..10 items') end
  for i = 4, 3 + 4 * count, 4 do
    if not budget.name(argv[i]) then return reply.err('invalid_input', 'budget') end
    if not budget.spender(argv[i + 1]) then return reply.err('invalid_input', 'execution: partition.uuid') end
    if not args.int(argv[i + 3], 0, 9007199254740991) then return reply.err('invalid_input', 'epoch') end
  end

  local out, waiters, known = { 1, 'OK', argv[3] }, {}, {}
  for i = 4, 3 + 4 * count, 4 do
    local name, answer = argv[i], '='
    local purged = argv[i + 2] == 'purged'
    if known[name] == nil and not purged then known[name] = budget.read(ctx, name) or false end
    local b = known[name]
    if purged then
      budget.purged(ctx, name, argv[i + 1])
    elseif not b then
      answer = '-budget_not_found ' .. name
    elseif argv[i + 2] == 'asked' or string.find(',' .. (b.d.rf or '') .. ',', ',' .. argv[i + 2] .. ',', 1, true) then
      budget.save(ctx, b)
      if budget.free(ctx, b, argv[i + 1], argv[i + 2], argv[2], tonumber(argv[i + 3])) then
        answer, b.freed = '+', true
      end
    end
    out[#out + 1] = answer
  end
  for name, b in pairs(known) do
    if b and b.freed and not budget.exhausted(b) then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  end
  out[#out + 1] = reply.int(#waiters)
  for i = 1, #waiters do out[#out + 1] = waiters[i] end
  return out
end
