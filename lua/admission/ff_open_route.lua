-- ff_open_route: opens routes that a gate closed: there may be room. An answer is 1 if something waits there that is handed out, else 0.
-- Flags:   allow-oom
-- Go:      Engine.OpenRoutes
-- Args:    protocol count {route}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_open_route(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 64)
  if not count or not argv[2 + count] or argv[3 + count] then return reply.err('invalid_input', 'count: 1..64 routes') end
  local out = { 1, 'OK', argv[2] }
  for i = 3, 2 + count do
    if gate.of(ctx, argv[i]) ~= '' then gate.woken(ctx, argv[i]) end
    gate.forget(ctx, argv[i])
    out[#out + 1] = home.reopen(ctx, argv[i]) and '1' or '0'
  end
  return out
end
