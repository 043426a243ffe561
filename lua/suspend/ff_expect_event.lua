-- ff_expect_event: a waitpoint takes the next event of a subject that has all of these terms (lib/expect.lua). waiter
-- is its execution, digest that of its token. The execution has opened the waitpoint before, and named the subject, so
-- that it is forgotten when the waitpoint closes. At most 1,000 are filed under one term.
-- Flags:   none
-- Go:      Engine.ExpectEvent
-- Args:    protocol subject:uuid waiter:ref waitpoint:uuid digest:hex(64) terms:rows(0..8) {term:hex(32)}
-- Replies: OK; ALREADY_SATISFIED
-- Errors:  @root invalid_input too_many_expected
local function ff_expect_event(ctx, q)
  local known = expect.add(ctx, q.subject, expect.name(q.waiter, q.waitpoint), q.digest, q.terms)
  if known == nil then return reply.err('too_many_expected', 'waits for events of one filter: at most 1000') end
  return known and reply.already() or reply.ok()
end
