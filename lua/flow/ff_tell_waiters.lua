-- ff_tell_waiters: executions that wait for others are told how those ended (lib/awaited.lua). awaited is
-- "<partition>.<execution>", token names the wait. Those for which that was enough go on, in this call. What was told
-- before, or belongs to a wait that is over, changes nothing. told is how many were told something new.
-- Flags:   allow-oom
-- Go:      Engine.TellWaiters
-- Args:    protocol items:rows(1..100) {waiter:id awaited:ref token:bytes(3..40) mark:text
--          attempt:n(1..4294967295)?}
-- Replies: OK told:n
-- Errors:  @root invalid_input
local function ff_tell_waiters(ctx, argv)
  local items, behind = args.rows(argv, 2, 1, 100, { 'waiter', 'awaited', 'token', 'mark', 'attempt' })
  if not items or argv[behind] then return reply.err('invalid_input', 'count: 1..100 items') end
  for i = 1, #items do
    local x = items[i]
    if not args.id(x.waiter) then return reply.err('invalid_input', 'waiter') end
    if not awaited.whole(x.awaited) then return reply.err('invalid_input', 'awaited: a partition and an execution') end
    if not awaited.valid(x.token) then return reply.err('invalid_input', 'token') end
    if not string.find(x.mark, '^[sfceknx]$') then return reply.err('invalid_input', 'mark') end
    if x.attempt ~= '' and not args.int(x.attempt, 1, 4294967295) then return reply.err('invalid_input', 'attempt') end
  end

  local told = 0
  for i = 1, #items do
    local x = items[i]
    local v = redis.call('HMGET', keys.children(ctx.r, x.waiter), 'others', x.awaited)
    if v[1] == x.token and group.record(v[2]) == '.' and core.read(ctx, x.waiter).state then
      flow.child(ctx, { id = x.awaited, outcome = x.mark, attempt = x.attempt }, x.waiter)
      told = told + 1
    end
  end
  flow.apply(ctx)
  return reply.ok(reply.int(told))
end
