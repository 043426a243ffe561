-- ff_boot: makes a partition's root key. One that is there is left alone, and refused if it has another protocol
-- number.
-- Flags:   allow-oom
-- Go:      Engine.boot
-- Args:    protocol
-- Replies: OK protocol
-- Errors:  invalid_input protocol_mismatch
local function ff_boot(k, argv)
  local stored = redis.call('HGET', k[1], 'protocol')
  local refused = root.mismatch(stored or argv[1], argv[1])
  if refused then return refused end
  if not stored then redis.call('HSET', k[1], 'protocol', argv[1], 'booted', reply.int(clock.now(k[1]))) end
  return reply.ok(argv[1])
end
