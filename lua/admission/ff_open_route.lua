-- ff_open_route: opens routes that a gate closed: there may be room. An answer is 1 if something waits there that is
-- handed out, else 0.
-- Flags:   allow-oom
-- Go:      Engine.OpenRoutes
-- Args:    protocol routes:rows(1..64) {route:text}
-- Replies: OK answers:rows {answer:flag}
-- Errors:  @root invalid_input
local function ff_open_route(ctx, argv)
  local routes, behind = args.list(argv, 2, 1, 64)
  if not routes or argv[behind] then return reply.err('invalid_input', 'count: 1..64 routes') end
  local out = { 1, 'OK', argv[2] }
  for i = 1, #routes do
    if gate.of(ctx, routes[i]) ~= '' then gate.woken(ctx, routes[i]) end
    gate.forget(ctx, routes[i])
    out[#out + 1] = indexes.reopen(ctx, routes[i]) and '1' or '0'
  end
  return out
end
