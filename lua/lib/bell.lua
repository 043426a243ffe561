-- bell: wakes registered waiters (design §6, doorbell). A ring removes the registration; a waiter that nobody
-- listens for is dropped and the next one tried, at most 8 times a call.
local bell = {}

local function digests(ctx)
  ctx.digests = ctx.digests or redis.call('SMEMBERS', keys.digests(ctx.r))
  return ctx.digests
end

-- wake rings up to count waiters of one interest and returns how many heard it.
local function wake(ctx, digest, count, message)
  local zset, heard = keys.waiters(ctx.r, digest), 0
  ctx.deaf = ctx.deaf or 0
  while heard < count and ctx.deaf <= 8 do
    local batch = redis.call('ZRANGE', zset, 0, math.min(count - heard, 64) - 1)
    if #batch == 0 then
      redis.call('SREM', keys.digests(ctx.r), digest)
      break
    end
    redis.call('ZREM', zset, unpack(batch))
    for i = 1, #batch do
      if publish.to(keys.bell(ctx.r, batch[i]), message) > 0 then
        heard = heard + 1
      else
        ctx.deaf = ctx.deaf + 1
      end
    end
  end
  return heard
end

-- ring wakes up to count waiters whose interest contains the route.
function bell.ring(ctx, route, count)
  local all, heard = digests(ctx), 0
  for i = 1, math.min(#all, 64) do
    if count <= 0 then break end
    if redis.call('SISMEMBER', keys.interest(ctx.r, all[i]), route) == 1 then
      local n = wake(ctx, all[i], count, 'w')
      count, heard = count - n, heard + n
    end
  end
  return heard
end

-- table_changed wakes up to 64 waiters of any interest, so that they look at new routes.
function bell.table_changed(ctx)
  local all, left = digests(ctx), 64
  for i = 1, math.min(#all, 64) do
    if left <= 0 then break end
    left = left - wake(ctx, all[i], left, 'r')
  end
end
