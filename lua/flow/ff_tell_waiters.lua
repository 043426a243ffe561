-- ff_tell_waiters: executions that wait for others are told how those ended (lib/wait_others.lua). awaited is
-- "<partition>.<execution>", token names the wait. Those for which that was enough go on, in this call. What was told
-- before, or belongs to a wait that is over, changes nothing. told is how many were told something new.
-- Flags:   allow-oom
-- Go:      Engine.TellWaiters
-- Args:    protocol items:rows(1..100) {waiter:id awaited:ref token:bytes(3..40) mark:s|f|c|e|k|n|x
--          attempt:n(1..4294967295)?}
-- Replies: OK told:n
-- Errors:  @root invalid_input
local function ff_tell_waiters(ctx, q)
  local items = q.items
  for i = 1, #items do
    if not wait_others.valid(items[i].token) then return reply.err('invalid_input', 'items: token: of a wait') end
  end

  local told = 0
  for i = 1, #items do
    local x = items[i]
    local v = redis.call('HMGET', keys.children(ctx.r, x.waiter), 'others', x.awaited)
    if v[1] == x.token and group.record(v[2]) == '.' and core.read(ctx, x.waiter).state then
      local attempt = x.attempt and reply.int(x.attempt) or ''
      flow.child(ctx, { id = x.awaited, outcome = x.mark, attempt = attempt }, x.waiter)
      told = told + 1
    end
  end
  flow.apply(ctx)
  return reply.ok(reply.int(told))
end
