-- ff_remove_quota: forgets a quota with all it admitted. Executions that have it as a gate do not run any more until
-- it is made again.
-- Flags:   allow-oom
-- Go:      Engine.RemoveQuota
-- Args:    protocol name:label
-- Replies: OK revision:n; ALREADY_SATISFIED 0
-- Errors:  @root invalid_input
local function ff_remove_quota(ctx, q)
  local name, r = q.name, ctx.r
  local revision = redis.call('HGET', keys.quota(r, name), 'up')
  redis.call('ZREM', keys.quotas(r), name)
  redis.call('UNLINK', keys.quota(r, name), keys.window(r, name), keys.slots(r, name), keys.quota_book(r, name),
    keys.cap_waiters(r, name), keys.rate_waiters(r, name))
  if not revision then return reply.already('0') end
  return reply.ok(revision)
end
