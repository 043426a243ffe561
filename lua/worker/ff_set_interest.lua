-- ff_set_interest: stores the set of routes that a kind of worker can serve, under its digest. Route 0 exists
-- nowhere; it keeps the set of a worker that can serve nothing yet from vanishing. Expires 10 minutes after the
-- last idle claim that used it.
-- Flags:   allow-oom
-- Go:      Engine.SetInterest
-- Args:    protocol digest count {route}
-- Replies: OK digest
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_set_interest(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local digest, count = argv[2], args.int(argv[3], 0, 1024)
  if not digest or #digest < 1 or #digest > 64 or string.find(digest, '[^%x]') then
    return reply.err('invalid_input', 'digest: 1..64 hex digits')
  end
  if not count or #argv ~= 3 + count then return reply.err('invalid_input', 'count: 0..1024') end
  local members = { '0' }
  for i = 4, 3 + count do
    if not args.int(argv[i], 1, 9007199254740991) then return reply.err('invalid_input', 'route') end
    members[#members + 1] = argv[i]
  end
  local key = keys.interest(ctx.r, digest)
  redis.call('DEL', key)
  for first = 1, #members, 500 do
    redis.call('SADD', key, unpack(members, first, math.min(first + 499, #members)))
  end
  redis.call('EXPIRE', key, 600)
  return reply.ok(digest)
end
