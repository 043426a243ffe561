-- ff_put_quota: makes a quota, or with an expected revision changes one. 0 is no limit, of starts a window and of how many at once. Those
-- who wait, 256 of each kind at most, are answered after a change, to be woken, and when it is repeated, those who wait then.
-- Flags:   none
-- Go:      Engine.PutQuota
-- Args:    protocol name expected scope rate window cap jitter by
-- Replies: OK revision count {waiter}; ALREADY_SATISFIED revision count {waiter}
-- Errors:  invalid_input invalid_quota_spec quota_conflict quota_policy_not_found partition_missing partition_frozen protocol_mismatch
local ff_put_quota_do = {}

-- woken adds those who are to be woken to an answer.
function ff_put_quota_do.woken(ctx, q, out)
  local waiters = {}
  budget.waiters(keys.cap_waiters(ctx.r, q.name), 256, waiters)
  budget.waiters(keys.rate_waiters(ctx.r, q.name), 256, waiters)
  out[#out + 1] = reply.int(#waiters)
  for i = 1, #waiters do out[#out + 1] = waiters[i] end
  return out
end

local function ff_put_quota(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local name, expected, scope = quota.name(argv[2]), argv[3], argv[4]
  if not name then return reply.err('invalid_input', 'quota: 1..64 letters, digits, _ . -, a letter or digit first') end
  if expected ~= '' and not args.int(expected, 1, 9007199254740991) then return reply.err('invalid_input', 'expected revision') end
  if not scope or #scope > 128 then return reply.err('invalid_quota_spec', 'scope: at most 128 bytes') end
  local rate, window = args.int(argv[5], 0, 1000000), args.int(argv[6], 0, 2592000000)
  if not rate then return reply.err('invalid_quota_spec', 'rate: 0..1000000 starts') end
  if not window or rate > 0 and window == 0 then return reply.err('invalid_quota_spec', 'window: 1 ms to 30 days') end
  if not args.int(argv[7], 0, 1000000) then return reply.err('invalid_quota_spec', 'cap: 0..1000000') end
  if not args.int(argv[8], 0, 60000) then return reply.err('invalid_quota_spec', 'jitter: 0..60000 ms') end
  if not argv[9] or #argv[9] > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  local text = table.concat({ scope, argv[5], argv[6], argv[7], argv[8] }, ' ')
  local q = quota.read(ctx, name)
  if not q and expected ~= '' then return reply.err('quota_policy_not_found', name) end
  if q and q.d.df == text then return ff_put_quota_do.woken(ctx, q, reply.already(q.d.up)) end
  if q and expected ~= q.d.up then return reply.err('quota_conflict', name, q.d.up) end

  local revision = reply.int(q and tonumber(q.d.up) + 1 or 1)
  redis.call('HSET', keys.quota(ctx.r, name), 'df', text, 'sc', scope, 'rt', argv[5], 'wn', argv[6], 'cp', argv[7], 'jt', argv[8],
    'up', revision, 'by', argv[9], 'ct', q and q.d.ct or ctx.t)
  if not q then redis.call('ZADD', keys.quotas(ctx.r), '0', name) end
  quota.note(ctx, name, q and 'changed' or 'created', argv[9], text)
  if not q then return reply.ok(revision, '0') end
  if window > 0 then redis.call('PEXPIRE', keys.window(ctx.r, name), reply.int(window + 1000)) end -- it may be longer now
  return ff_put_quota_do.woken(ctx, q, reply.ok(revision))
end
