-- ff_open_route: opens routes that a gate closed: there may be room. An answer is 1 if something waits there that is
-- handed out, else 0.
-- Flags:   allow-oom
-- Go:      Engine.OpenRoutes
-- Args:    protocol routes:rows(1..64) {route:text}
-- Replies: OK answers:rows {answer:flag}
-- Errors:  @root invalid_input
local function ff_open_route(ctx, q)
  local routes, out = q.routes, { 1, 'OK', reply.int(#q.routes) }
  for i = 1, #routes do
    if gate.of(ctx, routes[i]) ~= '' then gate.woken(ctx, routes[i]) end
    gate.forget(ctx, routes[i])
    out[#out + 1] = indexes.reopen(ctx, routes[i]) and '1' or '0'
  end
  return out
end
