-- ff_freeze_partition: freezes a partition, so that every function is refused with partition_frozen while its slot is
-- moved key by key, or thaws it. Leases go on running out meanwhile.
-- Flags:   allow-oom
-- Go:      Engine.FreezePartition
-- Args:    protocol frozen:flag
-- Replies: OK frozen:flag; ALREADY_SATISFIED frozen:flag
-- Errors:  invalid_input partition_missing protocol_mismatch
local function ff_freeze_partition(k, argv)
  local q, bad = decode.ff_freeze_partition(argv)
  if not q then return bad end
  local h = redis.call('HMGET', k[1], 'protocol', 'frozen')
  if not h[1] then return reply.err('partition_missing', k[1]) end
  local said, note = trail.split(argv[1])
  local refused = root.mismatch(h[1], said)
  if refused then return refused end
  if q.frozen == (h[2] and true or false) then return reply.already(argv[2]) end
  if q.frozen then
    redis.call('HSET', k[1], 'frozen', trail.words({ note = note }, 256))
  else
    redis.call('HDEL', k[1], 'frozen')
  end
  if note then trail.add({ r = k[1], t = reply.int(clock.now(k[1])), note = note }) end
  return reply.ok(argv[2])
end
