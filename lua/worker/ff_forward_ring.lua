-- ff_forward_ring: a worker that was woken and has no free slot forwards that: one other waiter is woken for each ready
-- route of its subscription.
-- Flags:   allow-oom
-- Go:      Engine.ForwardRing
-- Args:    protocol subscription:hex(1..64)
-- Replies: OK heard:n
-- Errors:  @root invalid_input
local function ff_forward_ring(ctx, q)
  return reply.ok(reply.int(urgent.forward(ctx, q.subscription)))
end
