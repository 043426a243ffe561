-- ff_undo_usage: takes back the last report of the holder of an execution, if it was counted, so that what one of
-- several budgets refuses is counted by none. A report that was refused, taken back before, late, or followed by
-- another one stays as it is. What was given back meanwhile is not given back twice. Breaches that the report met
-- stay counted. Those who wait for the budget are answered, to be woken, and again if the call is repeated. The
-- execution is "<partition>.<uuid>". The report's key, if it had one, is forgotten, so that it can be reported again.
-- Flags:   allow-oom
-- Go:      Engine.UndoUsage
-- Args:    protocol name:label execution:ref epoch:n(1..) sequence:n(1..) key:bytes(128)
-- Replies: OK waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input budget_not_found
local function ff_undo_usage(ctx, q)
  local name, id, epoch, sequence = q.name, q.execution, q.epoch, q.sequence
  local b = budget.read(ctx, name)
  if not b then return reply.err('budget_not_found', name) end
  local l, request = budget.ledger(ctx, b, id), id .. ' ' .. reply.int(epoch) .. ' ' .. reply.int(sequence)
  if tonumber(l.e or '0') ~= epoch or tonumber(l.q or '0') ~= sequence or (l.la or '') == '' then
    return budget.said(ctx, name, request) or budget.room(ctx, b, reply.already())
  end

  budget.save(ctx, b)
  local fields, gone, sets = { 'la', '' }, {}, {}
  for dim, amount in string.gmatch(l.la, '([^,=]+)=(%d+)') do
    local field = 'd:' .. dim
    local mine = tonumber(l[field] or '0')
    local back = math.min(mine, tonumber(amount))
    if back == mine then
      gone[#gone + 1] = field
    else
      fields[#fields + 1], fields[#fields + 2] = field, reply.int(mine - back)
    end
    if l.p == b.d.rc and back > 0 then
      sets[#sets + 1], sets[#sets + 2] = dim, reply.int(math.max(0, budget.count(b, dim) - back))
      b.used[dim] = sets[#sets]
    end
  end
  budget.some('HSET', keys.ledger(ctx.r, name, id), fields)
  budget.some('HDEL', keys.ledger(ctx.r, name, id), gone)
  budget.some('HSET', keys.usage(ctx.r, name), sets)
  if q.key ~= '' then redis.call('DEL', keys.report(ctx.r, name, q.key)) end
  local out = #sets > 0 and budget.room(ctx, b, reply.ok()) or reply.ok('0')
  return out[4] and budget.say(ctx, name, request, out) or out
end
