-- ff_trim_outbox: forgets entries of the outbox that were delivered.
-- Flags:   allow-oom
-- Go:      Engine.TrimOutbox
-- Args:    protocol count {entry}
-- Replies: OK removed left
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_trim_outbox(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 100)
  if not count or not argv[2 + count] or argv[3 + count] then return reply.err('invalid_input', 'count: 1..100 entries') end
  for i = 3, 2 + count do
    if not string.find(argv[i], '^%d+%-%d+$') or #argv[i] > 40 then return reply.err('invalid_input', 'entry') end
  end
  local n = redis.call('XDEL', keys.outbox(ctx.r), unpack(argv, 3, 2 + count))
  return reply.ok(reply.int(n), reply.int(redis.call('XLEN', keys.outbox(ctx.r))))
end
