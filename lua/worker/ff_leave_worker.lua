-- ff_leave_worker: a worker instance ends in good order and its name is free at once. The row of another process
-- under the same name is left alone.
-- Flags:   allow-oom
-- Go:      Engine.LeaveWorker
-- Args:    protocol instance:name(48) token:name(64)
-- Replies: OK "left"; ALREADY_SATISFIED "left"
-- Errors:  @root invalid_input
local function ff_leave_worker(ctx, q)
  local instance = q.instance
  if registry.read(ctx, instance).token ~= q.token then return reply.already('left') end
  redis.call('DEL', keys.worker(ctx.r, instance))
  redis.call('ZREM', keys.workers(ctx.r), instance)
  return reply.ok('left')
end
