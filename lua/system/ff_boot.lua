-- ff_boot: makes a partition's root key, or raises its protocol number to the caller's. What is created from now on is
-- counted by route. A store that is older than counting keeps the routes it has until somebody counts what uses them.
-- Flags:   none
-- Go:      Engine.boot
-- Args:    protocol
-- Replies: OK protocol
-- Errors:  invalid_input protocol_mismatch
local function ff_boot(k, argv)
  local protocol = args.int(argv[1], 1, 1000000)
  if not protocol then return reply.err('invalid_input', 'protocol') end
  local stored = redis.call('HGET', k[1], 'protocol')
  if stored and tonumber(stored) > protocol then return reply.err('protocol_mismatch', stored, argv[1]) end
  local now = reply.int(clock.now(k[1]))
  if not stored then
    redis.call('HSET', k[1], 'protocol', argv[1], 'booted', now)
  elseif tonumber(stored) < protocol then
    redis.call('HSET', k[1], 'protocol', argv[1])
  end
  if redis.call('HSETNX', k[1], 'counting', now) == 1 and stored then
    local old = redis.call('HKEYS', keys.routes(k[1]))
    for i = 1, #old do redis.call('HINCRBY', keys.route_use(k[1]), old[i], 1) end
  end
  return reply.ok(argv[1])
end
