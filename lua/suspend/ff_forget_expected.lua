-- ff_forget_expected: waitpoints of executions take no event of a subject any more (lib/expect.lua). forgotten is how
-- many of them would have.
-- Flags:   allow-oom
-- Go:      Engine.ForgetExpected
-- Args:    protocol items:rows(1..100) {subject:uuid waiter:ref waitpoint:uuid}
-- Replies: OK forgotten:n
-- Errors:  @root invalid_input
local function ff_forget_expected(ctx, q)
  local forgotten = 0
  for i = 1, #q.items do
    local x = q.items[i]
    if expect.forget(ctx, x.subject, expect.name(x.waiter, x.waitpoint)) then forgotten = forgotten + 1 end
  end
  return reply.ok(reply.int(forgotten))
end
