-- ff_boot: makes a partition's root key, or raises its protocol number to the caller's. Executions are counted by route: all
-- of them in a new partition, in an old one those that are created from now on, until an audit has counted the others. An old one
-- also takes notice of its namespaces.
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
    redis.call('HSET', k[1], 'protocol', argv[1], 'booted', now, 'counting', '0')
  elseif tonumber(stored) < protocol then
    redis.call('HSET', k[1], 'protocol', argv[1])
  end
  redis.call('HSETNX', k[1], 'counting', now)
  share.several(k[1])
  return reply.ok(argv[1])
end
