-- ff_read_budget: one budget as it is now: its record, what is used, how many routes wait for it, the newest entries
-- of its book, and who spent last. A spender is "<partition>.<uuid> <ms> <period> <reports that were late>
-- <dimension>=<amount>,…"; they are fewer than asked for if they have more than about 2,560 amounts.
-- Flags:   no-writes
-- Go:      Engine.ReadBudget
-- Args:    protocol name:label spenders:n(0..100) entries:n(0..256)
-- Replies: OK now:instant waiting:n fields:rows {field:text value:text} used
--          entries:rows {entry:text} spenders:rows {spender:text}
-- Errors:  @root invalid_input budget_not_found
local function ff_read_budget(ctx, q)
  local name, spenders, entries = q.name, q.spenders, q.entries
  local b = budget.read(ctx, name)
  if not b then return reply.err('budget_not_found', name) end
  local out = { 1, 'OK', ctx.t, reply.int(redis.call('ZCARD', keys.budget_waiters(ctx.r, name))) }
  reply.fields(reply.fields(out, b.d), b.used)
  local book = entries > 0 and redis.call('LRANGE', keys.budget_book(ctx.r, name), reply.int(-entries), '-1') or {}
  reply.add(out, book)
  local list = spenders > 0 and redis.call('ZREVRANGE', keys.spenders(ctx.r, name), '0', reply.int(spenders - 1),
    'WITHSCORES') or {}
  local at, count, amounts = #out + 1, 0, 0
  out[at] = '0'
  for i = 1, #list, 2 do
    if amounts > 2560 then break end
    local l, parts = budget.hash(keys.ledger(ctx.r, name, list[i])), {}
    for field, n in pairs(l) do
      if string.sub(field, 1, 2) == 'd:' then parts[#parts + 1] = string.sub(field, 3) .. '=' .. n end
    end
    table.sort(parts)
    count, amounts = count + 1, amounts + #parts
    out[#out + 1] = table.concat({ list[i], reply.int(args.score(list[i + 1])), l.p or '0', l.lt or '0',
      table.concat(parts, ',') }, ' ')
  end
  out[at] = reply.int(count)
  return out
end
