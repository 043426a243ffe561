-- ff_leave_worker: a worker instance ends in good order and its name is free at once. The row of another process
-- under the same name is left alone.
-- Flags:   allow-oom
-- Go:      Engine.LeaveWorker
-- Args:    protocol instance:name(48) token:bytes(1..64)
-- Replies: OK "left"; ALREADY_SATISFIED "left"
-- Errors:  @root invalid_input
local function ff_leave_worker(ctx, argv)
  local instance, token = args.name(argv[2], 48), args.name(argv[3], 64)
  if not instance then return reply.err('invalid_input', 'instance') end
  if not token then return reply.err('invalid_input', 'token') end
  if registry.read(ctx, instance).token ~= token then return reply.already('left') end
  redis.call('DEL', keys.worker(ctx.r, instance))
  redis.call('ZREM', keys.workers(ctx.r), instance)
  return reply.ok('left')
end
