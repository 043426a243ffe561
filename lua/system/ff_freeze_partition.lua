-- ff_freeze_partition: freezes a partition, so that every function is refused with partition_frozen while its slot is
-- moved key by key, or thaws it. Leases go on running out meanwhile.
-- Flags:   allow-oom
-- Go:      Engine.FreezePartition
-- Args:    protocol frozen:flag reason:bytes(256)
-- Replies: OK frozen:flag; ALREADY_SATISFIED frozen:flag
-- Errors:  invalid_input partition_missing protocol_mismatch
local function ff_freeze_partition(k, argv)
  local frozen, reason = argv[2], argv[3]
  if frozen ~= '0' and frozen ~= '1' then return reply.err('invalid_input', 'frozen: 0 or 1') end
  if not reason or #reason > 256 then return reply.err('invalid_input', 'reason: at most 256 bytes') end
  local h = redis.call('HMGET', k[1], 'protocol', 'frozen')
  if not h[1] then return reply.err('partition_missing', k[1]) end
  local said, note = trail.split(argv[1])
  local refused = root.mismatch(h[1], said)
  if refused then return refused end
  if (frozen == '1') == (h[2] and true or false) then return reply.already(frozen) end
  if frozen == '1' then
    redis.call('HSET', k[1], 'frozen', reason)
  else
    redis.call('HDEL', k[1], 'frozen')
  end
  if note then trail.add({ r = k[1], t = reply.int(clock.now(k[1])), note = note }) end
  return reply.ok(frozen)
end
