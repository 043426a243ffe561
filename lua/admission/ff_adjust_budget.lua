-- ff_adjust_budget: an operator corrects what was used, up or down, never below zero; it is written into the budget's
-- book, with who asked, and 256 bytes of why. Those who wait for it are answered, to be woken. The same request again,
-- within a day, answers what the first did.
-- Flags:   allow-oom
-- Go:      Engine.AdjustBudget
-- Args:    protocol name:label request:id dimensions:rows(1..64) {dimension:dimension !invalid_delta amount:int}
-- Replies: OK used waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta budget_not_found
local function ff_adjust_budget(ctx, q)
  local name, deltas, wrong = q.name, budget.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
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
    sets[#sets + 1], sets[#sets + 2] = dim, reply.int(math.max(0, now))
    list[i] = dim .. '=' .. reply.int(deltas.by[dim])
  end

  budget.save(ctx, b)
  redis.call('HSET', keys.usage(ctx.r, name), unpack(sets))
  for i = 1, #sets, 2 do b.used[sets[i]] = sets[i + 1] end
  budget.note(ctx, keys.budget_book(ctx.r, name), 'adjusted', trail.by(ctx),
    table.concat(list, ',') .. ' ' .. trail.why(ctx, 256))
  return budget.say(ctx, name, q.request, budget.room(ctx, b, reply.add({ 1, 'OK' }, sets, 2)))
end
