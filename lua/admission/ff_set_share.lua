-- ff_set_share: gives a namespace a weight in a lane, 1..1000, by which it shares with the others what is handed out
-- there; 0 is the usual one, 1.
-- Flags:   allow-oom
-- Go:      Engine.SetShare
-- Args:    protocol namespace:name(64) lane:name(64) weight:n(0..1000)
-- Replies: OK weight:n(0..1000); ALREADY_SATISFIED weight:n(0..1000)
-- Errors:  @root invalid_input
local function ff_set_share(ctx, argv)
  local q = args.named(argv, 2, { 'namespace', 'lane', 'weight' })
  if not args.name(q.namespace, 64) then return reply.err('invalid_input', 'namespace') end
  if not args.name(q.lane, 64) then return reply.err('invalid_input', 'lane') end
  if not args.int(q.weight, 0, 1000) then return reply.err('invalid_input', 'weight: 0..1000') end
  local key, name = keys.weights(ctx.r), lane.name(q.namespace, q.lane)
  local old = redis.call('HGET', key, name) or '0'
  if old == q.weight then return reply.already(q.weight) end
  if old == '0' and redis.call('HLEN', key) >= 4096 then
    return reply.err('invalid_input', 'weight: at most 4096 are set')
  end
  if q.weight == '0' then
    redis.call('HDEL', key, name)
  else
    redis.call('HSET', key, name, q.weight)
  end
  return reply.ok(q.weight)
end
