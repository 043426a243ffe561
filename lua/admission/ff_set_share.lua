-- ff_set_share: gives a namespace a weight in a lane, 1..1000, by which it shares with the others what is handed out there; 0 is the usual one, 1.
-- Flags:   allow-oom
-- Go:      Engine.setShare
-- Args:    protocol namespace lane weight
-- Replies: OK weight; ALREADY_SATISFIED weight
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_set_share(ctx, argv)
  local q = args.named(argv, 2, { 'namespace', 'lane', 'weight' })
  if not args.name(q.namespace, 64) then return reply.err('invalid_input', 'namespace') end
  if not args.name(q.lane, 64) then return reply.err('invalid_input', 'lane') end
  if not args.int(q.weight, 0, 1000) then return reply.err('invalid_input', 'weight: 0..1000') end
  local key, name = keys.shares(ctx.r), lane.name(q.namespace, q.lane)
  local text = redis.call('HGET', key, name)
  local count, old = string.match(text or '', '^(%d+) ?(%d*)$')
  local weight = q.weight ~= '0' and q.weight or ''
  if (old or '') == weight then return reply.already(q.weight) end
  if (old or '') == '' and not share.room(ctx) then return reply.err('invalid_input', 'weight: at most 4096 are set') end
  if weight == '' and (count or '0') == '0' then
    redis.call('HDEL', key, name)
  else
    redis.call('HSET', key, name, (count or '0') .. (weight ~= '' and ' ' .. weight or ''))
  end
  return reply.ok(q.weight)
end
