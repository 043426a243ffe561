-- ff_put_quota: makes a quota, or with an expected revision changes one. 0 is no limit, of starts a window and of how
-- many at once. Those who wait, 256 of each kind at most, are answered after a change, to be woken, and when it is
-- repeated, those who wait then.
-- Flags:   none
-- Go:      Engine.PutQuota
-- Args:    protocol name:label expected:n(1..)? scope:bytes(128) rate:n(0..1000000) window:ms(1..2592000000)
--          cap:n(0..1000000) jitter:ms(0..60000) by:bytes(64)
-- Replies: OK revision:n waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_quota_spec quota_conflict quota_policy_not_found
local ff_put_quota_do = {}

-- woken adds those who are to be woken to an answer.
function ff_put_quota_do.woken(ctx, q, out)
  local waiters = {}
  budget.waiters(keys.cap_waiters(ctx.r, q.name), 256, waiters)
  budget.waiters(keys.rate_waiters(ctx.r, q.name), 256, waiters)
  reply.add(out, waiters)
  return out
end

local function ff_put_quota(ctx, argv)
  local q = args.named(argv, 2, { 'name', 'expected', 'scope', 'rate', 'window', 'cap', 'jitter', 'by' })
  local name, expected, scope = budget.name(q.name), q.expected, q.scope
  if not name then return reply.err('invalid_input', 'quota: 1..64 letters, digits, _ . -, a letter or digit first') end
  if expected ~= '' and not args.int(expected, 1, 9007199254740991) then
    return reply.err('invalid_input', 'expected revision')
  end
  if not scope or #scope > 128 then return reply.err('invalid_quota_spec', 'scope: at most 128 bytes') end
  local rate, window = args.int(q.rate, 0, 1000000), args.int(q.window, 0, 2592000000)
  if not rate then return reply.err('invalid_quota_spec', 'rate: 0..1000000 starts') end
  if not window or rate > 0 and window == 0 then return reply.err('invalid_quota_spec', 'window: 1 ms to 30 days') end
  if not args.int(q.cap, 0, 1000000) then return reply.err('invalid_quota_spec', 'cap: 0..1000000') end
  if not args.int(q.jitter, 0, 60000) then return reply.err('invalid_quota_spec', 'jitter: 0..60000 ms') end
  if not q.by or #q.by > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  local text = table.concat({ scope, q.rate, q.window, q.cap, q.jitter }, ' ')
  local old = quota.read(ctx, name)
  if not old and expected ~= '' then return reply.err('quota_policy_not_found', name) end
  if old and old.d.df == text then return ff_put_quota_do.woken(ctx, old, reply.already(old.d.up)) end
  if old and expected ~= old.d.up then return reply.err('quota_conflict', name, old.d.up) end

  local revision = reply.int(old and tonumber(old.d.up) + 1 or 1)
  redis.call('HSET', keys.quota(ctx.r, name), 'df', text, 'sc', scope, 'rt', q.rate, 'wn', q.window, 'cp', q.cap, 'jt',
    q.jitter, 'up', revision, 'by', q.by, 'ct', old and old.d.ct or ctx.t)
  if not old then redis.call('ZADD', keys.quotas(ctx.r), '0', name) end
  quota.note(ctx, name, old and 'changed' or 'created', q.by, text)
  if not old then return reply.ok(revision, '0') end
  -- it may be longer now
  if window > 0 then redis.call('PEXPIRE', keys.window(ctx.r, name), reply.int(window + 1000)) end
  return ff_put_quota_do.woken(ctx, old, reply.ok(revision))
end
