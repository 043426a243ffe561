-- ff_adjust_budget: an operator corrects what was used, up or down, never below zero; it is written into the budget's
-- book. Those who wait for it are answered, to be woken. The same request again, within a day, answers what the first
-- did.
-- Flags:   allow-oom
-- Go:      Engine.AdjustBudget
-- Args:    protocol name:label by:bytes(64) reason:bytes(256) request:uuid dimensions:rows(1..16)
--          {dimension:name(64) amount:int}
-- Replies: OK used waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta budget_not_found
local function ff_adjust_budget(ctx, argv)
  local q = args.named(argv, 2, { 'name', 'by', 'reason', 'request' })
  local name = budget.name(q.name)
  if not name then return reply.err('invalid_input', 'budget') end
  if not q.by or #q.by > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  if not q.reason or #q.reason > 256 then return reply.err('invalid_input', 'reason: at most 256 bytes') end
  if not args.id(q.request) then return reply.err('invalid_input', 'request') end
  local deltas, code, detail = budget.deltas(argv, 6, true)
  if not deltas then return reply.err(code, detail) end
  local before = budget.said(ctx, name, q.request)
  if before then return before end
  local b = budget.read(ctx, name)
  if not b then return reply.err('budget_not_found', name) end
  local crowded = budget.crowded(b, deltas)
  if crowded then return budget.full(crowded) end
  local sets, list = {}, {}
  for i = 1, #deltas.order do
    local dim = deltas.order[i]
    local now = budget.count(b, dim) + deltas.by[dim]
    if now > 9007199254740991 then return reply.err('invalid_delta', dim, 'the total would pass 9007199254740991') end
    sets[#sets + 1] = dim
    sets[#sets + 1] = reply.int(math.max(0, now))
    list[i] = dim .. '=' .. reply.int(deltas.by[dim])
  end

  budget.save(ctx, b)
  redis.call('HSET', keys.usage(ctx.r, name), unpack(sets))
  for i = 1, #sets, 2 do b.used[sets[i]] = sets[i + 1] end
  budget.note(ctx, name, 'adjusted', q.by, table.concat(list, ',') .. ' ' .. q.reason)
  local out, waiters = { 1, 'OK', reply.int(#sets / 2) }, {}
  for i = 1, #sets do out[#out + 1] = sets[i] end
  if not budget.exhausted(b) then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  reply.add(out, waiters)
  return budget.say(ctx, name, q.request, out)
end
