-- ff_set_interest: stores the set of routes that a kind of worker can serve, under its digest. Route 0 exists
-- nowhere; it keeps the set of a worker that can serve nothing yet from vanishing. Expires 10 minutes after the
-- last idle claim that used it.
-- Flags:   allow-oom
-- Go:      Engine.SetSubscription
-- Args:    protocol digest count {route}
-- Replies: OK digest
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_set_interest(ctx, argv)
  local digest, members, behind = argv[2], args.list(argv, 3, 0, 1024)
  if not digest or #digest < 1 or #digest > 64 or string.find(digest, '[^%x]') then
    return reply.err('invalid_input', 'digest: 1..64 hex digits')
  end
  if not members or argv[behind] then return reply.err('invalid_input', 'count: 0..1024') end
  for i = 1, #members do
    if not args.int(members[i], 1, 9007199254740991) then return reply.err('invalid_input', 'route') end
  end
  members[#members + 1] = '0'
  local key = keys.interest(ctx.r, digest)
  redis.call('DEL', key)
  for first = 1, #members, 500 do
    redis.call('SADD', key, unpack(members, first, math.min(first + 499, #members)))
  end
  redis.call('EXPIRE', key, 600)
  return reply.ok(digest)
end
