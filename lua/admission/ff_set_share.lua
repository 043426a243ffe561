-- ff_set_share: gives a namespace a weight in a lane, 1..1000, by which it shares with the others what is handed out
-- there; 0 is the usual one, 1.
-- Flags:   allow-oom
-- Go:      Engine.SetShare
-- Args:    protocol namespace:name(64) lane:name(64) weight:n(0..1000)
-- Replies: OK weight:n(0..1000); ALREADY_SATISFIED weight:n(0..1000)
-- Errors:  @root invalid_input
local function ff_set_share(ctx, q)
  local weight, key, name = reply.int(q.weight), keys.weights(ctx.r), lane.name(q.namespace, q.lane)
  local old = redis.call('HGET', key, name) or '0'
  if old == weight then return reply.already(weight) end
  if old == '0' and redis.call('HLEN', key) >= 4096 then
    return reply.err('invalid_input', 'weight: at most 4096 are set')
  end
  if weight == '0' then
    redis.call('HDEL', key, name)
  else
    redis.call('HSET', key, name, weight)
  end
  return reply.ok(weight)
end
