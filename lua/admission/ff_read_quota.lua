-- ff_read_quota: one quota as it is now: its record, starts in the window, slots that are taken and how many of them
-- are suspect, routes that wait, the newest entries of its book, and holds, each "<partition>.<execution>:<epoch> <ms
-- when it becomes suspect>".
-- Flags:   no-writes
-- Go:      Engine.ReadQuota
-- Args:    protocol name:quota holds:n(0..1000) entries:n(0..256)
-- Replies: OK now:instant started:n held:n suspect:n for_slots:n for_rate:n fields:rows {field:text value:text}
--          entries:rows {entry:text} holds:rows {hold:text}
-- Errors:  @root invalid_input quota_policy_not_found
local function ff_read_quota(ctx, q)
  local name, holds, entries = q.name, q.holds, q.entries
  local rule = quota.read(ctx, name)
  if not rule then return reply.err('quota_policy_not_found', name) end
  local slots = keys.slots(ctx.r, name)
  local out = { 1, 'OK', ctx.t, reply.int(quota.started(ctx, rule)), reply.int(redis.call('ZCARD', slots)),
    reply.int(redis.call('ZCOUNT', slots, '-inf', ctx.t)),
    reply.int(redis.call('ZCARD', keys.cap_waiters(ctx.r, name))),
    reply.int(redis.call('ZCARD', keys.rate_waiters(ctx.r, name))) }
  reply.fields(out, rule.d)
  local book = entries > 0 and redis.call('LRANGE', keys.quota_book(ctx.r, name), reply.int(-entries), '-1') or {}
  reply.add(out, book)
  local list = holds > 0 and redis.call('ZRANGE', slots, '0', reply.int(holds - 1), 'WITHSCORES') or {}
  out[#out + 1] = reply.int(#list / 2)
  for i = 1, #list, 2 do out[#out + 1] = list[i] .. ' ' .. reply.int(args.score(list[i + 1])) end
  return out
end
