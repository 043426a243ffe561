-- ff_pass_ring: a worker that was woken and has no free slot forwards that: one other waiter is woken for each ready
-- route of its interest.
-- Flags:   allow-oom
-- Go:      Engine.ForwardRing
-- Args:    protocol interest:hex(1..64)
-- Replies: OK heard:n
-- Errors:  @root invalid_input
local function ff_pass_ring(ctx, argv)
  local digest = argv[2]
  if not digest or #digest < 1 or #digest > 64 or string.find(digest, '[^%x]') then
    return reply.err('invalid_input', 'interest: 1..64 hex digits')
  end
  return reply.ok(reply.int(urgent.forward(ctx, digest)))
end
