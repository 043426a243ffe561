-- ff_put_quota: makes a quota, or with an expected revision changes one. 0 is no limit, of starts a window and of how
-- many at once. Those who wait, 256 of each kind at most, are answered after a change, to be woken, and when it is
-- repeated, those who wait then.
-- Flags:   none
-- Go:      Engine.PutQuota
-- Args:    protocol name:label expected:n(1..)? !invalid_quota_spec scope:bytes(128) rate:n(0..1000000)
--          window:ms(0..2592000000) cap:n(0..1000000) jitter:ms(0..60000)
-- Replies: OK revision:n waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_quota_spec quota_conflict quota_policy_not_found
local ff_put_quota_do = {}

-- woken adds those who are to be woken to an answer.
function ff_put_quota_do.woken(ctx, q, out)
  local waiters = {}
  budget.waiters(keys.cap_waiters(ctx.r, q.name), 256, waiters)
  budget.waiters(keys.rate_waiters(ctx.r, q.name), 256, waiters)
  return reply.add(out, waiters)
end

local function ff_put_quota(ctx, q)
  local name, expected, scope, window = q.name, q.expected and reply.int(q.expected) or '', q.scope, q.window
  if q.rate > 0 and window == 0 then return reply.err('invalid_quota_spec', 'window: 1..2592000000 ms with a rate') end
  local rate, wide, cap, jitter = reply.int(q.rate), reply.int(window), reply.int(q.cap), reply.int(q.jitter)
  local text = table.concat({ scope, rate, wide, cap, jitter }, ' ')
  local old = quota.read(ctx, name)
  if not old and expected ~= '' then return reply.err('quota_policy_not_found', name) end
  if old and old.d.df == text then return ff_put_quota_do.woken(ctx, old, reply.already(old.d.up)) end
  if old and expected ~= old.d.up then return reply.err('quota_conflict', name, old.d.up) end

  local revision, by = reply.int(old and tonumber(old.d.up) + 1 or 1), trail.by(ctx)
  redis.call('HSET', keys.quota(ctx.r, name), 'df', text, 'sc', scope, 'rt', rate, 'wn', wide, 'cp', cap, 'jt',
    jitter, 'up', revision, 'by', by, 'ct', old and old.d.ct or ctx.t)
  if not old then redis.call('ZADD', keys.quotas(ctx.r), '0', name) end
  budget.note(ctx, keys.quota_book(ctx.r, name), old and 'changed' or 'created', by, text)
  if not old then return reply.ok(revision, '0') end
  -- it may be longer now
  if window > 0 then redis.call('PEXPIRE', keys.window(ctx.r, name), reply.int(window + 1000)) end
  return ff_put_quota_do.woken(ctx, old, reply.ok(revision))
end
