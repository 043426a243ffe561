-- doorbell: wakes registered waiters by a message on the channel of their instance. That removes the registration; a
-- waiter that nobody listens for is dropped and the next one tried, at most 8 times a call.
local doorbell = {}

local function digests(ctx)
  ctx.cache.digests = ctx.cache.digests or redis.call('SMEMBERS', keys.digests(ctx.r))
  return ctx.cache.digests
end

-- wake_subscription wakes up to count waiters of one subscription and returns how many heard it.
local function wake_subscription(ctx, digest, count, message)
  local zset, heard = keys.waiters(ctx.r, digest), 0
  ctx.cache.deaf = ctx.cache.deaf or 0
  while heard < count and ctx.cache.deaf <= 8 do
    local batch = redis.call('ZPOPMIN', zset, reply.int(math.min(count - heard, 64)))
    if #batch == 0 then
      redis.call('SREM', keys.digests(ctx.r), digest)
      break
    end
    for i = 1, #batch, 2 do
      if publish.to(keys.doorbell(ctx.r, batch[i]), message) > 0 then
        heard = heard + 1
      else
        ctx.cache.deaf = ctx.cache.deaf + 1
      end
    end
  end
  return heard
end

-- wants tells whether a subscription may be given work of a namespace, of any with nil; when that is not known any
-- more, it is rung.
function doorbell.wants(ctx, digest, namespace)
  local spaces = namespace and ready.spaces(ctx, digest)
  if not spaces then return true end
  for i = 1, #spaces do
    if spaces[i] == namespace then return true end
  end
  return false
end

-- ring wakes up to count waiters whose subscription contains a member of what is ready (ready), of a namespace if it is
-- given. The message is "w", or what is told of urgent work.
function doorbell.ring(ctx, member, namespace, count, message)
  local all, heard = digests(ctx), 0
  for i = 1, math.min(#all, 64) do
    if count <= 0 then break end
    if redis.call('SISMEMBER', keys.subscription(ctx.r, all[i]), member) == 1
      and doorbell.wants(ctx, all[i], namespace) then
      local n = wake_subscription(ctx, all[i], count, message or 'w')
      count, heard = count - n, heard + n
    end
  end
  return heard
end

-- wake wakes up to count waiters that may be given work of a route.
function doorbell.wake(ctx, id, count, message)
  if route.plain(id) then return doorbell.ring(ctx, id, nil, count, message) end
  return doorbell.ring(ctx, ready.member(id), route.namespace(ctx, id), count, message)
end

-- again repeats wake-ups of one subscription that may have been lost; left is for how many items of each member no
-- waiter was woken.
function doorbell.again(ctx, digest, left)
  local members, heard = ready.serves(ctx, digest), 0
  for i = 1, math.min(#members, 8) do
    local member = members[i]
    left[member] = left[member] or ready.waiting(ctx, member)
    if left[member] > 0 then
      local n = wake_subscription(ctx, digest, left[member], 'w')
      left[member], heard = left[member] - n, heard + n
    end
  end
  return heard
end

-- vacate takes the tick from an owner that leaves or is given up, and asks some other process for a tick that has
-- work or waits for it here. If none is found, a poll finds a second later that the tick has no owner.
function doorbell.vacate(ctx, instance)
  if root.owner(ctx) ~= instance then return end
  redis.call('HDEL', ctx.r, 'owner')
  ctx.owner = false
  if ctx.wake and ctx.wake > ctx.now + 1000 then
    ctx.wake = ctx.now + 1000
    redis.call('HSET', ctx.r, 'wake', reply.int(ctx.wake))
  end
  local tried = { [instance] = true }
  local function heard(list)
    for i = 1, #list do
      local other = session.bell(list[i])
      if not tried[other] then
        tried[other] = true
        if publish.to(keys.doorbell(ctx.r, other), 't') > 0 then return true end
      end
    end
    return false
  end
  if heard(redis.call('ZRANGE', keys.sessions(ctx.r), '0', '7')) then return end
  local all = digests(ctx)
  for i = 1, math.min(#all, 8) do
    if heard(redis.call('ZRANGE', keys.waiters(ctx.r, all[i]), '0', '7')) then return end
  end
end

-- table_changed wakes up to 64 waiters of any subscription, so that they look at new routes. If that was not all, the
-- root keeps up to which registration (they expire three minutes after they were made) the tick still has to wake.
function doorbell.table_changed(ctx, upto)
  upto = upto or reply.int(ctx.now + 180000)
  local all, left = digests(ctx), 64
  for i = 1, #all do
    local zset = keys.waiters(ctx.r, all[i])
    local batch = redis.call('ZRANGEBYSCORE', zset, '-inf', upto, 'LIMIT', '0', reply.int(left))
    if #batch > 0 then
      redis.call('ZREM', zset, unpack(batch))
      for w = 1, #batch do publish.to(keys.doorbell(ctx.r, batch[w]), 'r') end
      if redis.call('EXISTS', zset) == 0 then redis.call('SREM', keys.digests(ctx.r), all[i]) end
      left = left - #batch
    end
    if left == 0 then
      redis.call('HSET', ctx.r, 'ring', upto)
      return
    end
  end
  redis.call('HDEL', ctx.r, 'ring')
end
