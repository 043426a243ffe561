-- ff_set_subscription: stores which classes of work a kind of worker can serve, under a digest, and of which
-- namespaces: none given means all, and what weights of lanes its claims have (1..1000); a lane that is not named has
-- the weight 1. Class 0 exists nowhere; it keeps the set of a worker that can serve nothing yet from vanishing.
-- Expires 10 minutes after the last idle claim that used it.
-- Flags:   allow-oom
-- Go:      Engine.SetSubscription
-- Args:    protocol digest:hex(1..64) namespaces:rows(0..256) {namespace:name(64)} classes:rows(0..1024)
--          {class:n(1..999999999)} lanes:rows(0..256) {lane:name(64) weight:n(1..1000)}
-- Replies: OK digest:hex(1..64)
-- Errors:  @root invalid_input
local function ff_set_subscription(ctx, q)
  local digest, spaces, classes, lanes = q.digest, q.namespaces, q.classes, q.lanes
  local first, own = route.space(ctx), #spaces == 0
  for i = 1, #spaces do own = own or spaces[i] == first end
  local told = table.concat(spaces, '\31')
  for i = 1, #lanes do
    told = told .. (i == 1 and '\30' or '\31') .. lanes[i].lane .. '\31' .. reply.int(lanes[i].weight)
  end
  local members = { '0' }
  for i = 1, #classes do
    local class = reply.int(classes[i])
    if own then members[#members + 1] = class end
    members[#members + 1] = 'c' .. class
  end
  local key = keys.subscription(ctx.r, digest)
  redis.call('DEL', key)
  for i = 1, #members, 500 do redis.call('SADD', key, unpack(members, i, math.min(i + 499, #members))) end
  redis.call('EXPIRE', key, 600)
  redis.call('SET', keys.spaces(ctx.r, digest), told, 'EX', 600)
  return reply.ok(digest)
end
