-- starts: how often, and how many at once, executions may start past a gate. What it admitted is a hold,
-- "<partition>.<execution>:<epoch>": in the window by when, and in a slot by when it is to be asked about. No time
-- frees a slot: either its execution's partition says, through its outbox, that it runs no more, or it is asked when
-- somebody wants the slot and has not heard for a while. What a limit of a key admitted is there as long as it counts.
local starts = {}

starts.vouched = 600000 -- ms that a hold is good at most, until it is asked about again

-- ahead is the latest time that counts: what is later was written before the clock stepped back (root.step).
function starts.ahead(ctx) return reply.int(ctx.now + root.step) end

-- started is how many are in the window.
function starts.started(ctx, q)
  if q.rate == 0 then return 0 end
  return redis.call('ZCOUNT', keys.window(ctx.r, q.name), '(' .. reply.int(ctx.now - q.window), starts.ahead(ctx))
end

-- trim forgets some of what has left the window, and of what lies ahead of it.
function starts.trim(ctx, q)
  local key = keys.window(ctx.r, q.name)
  local old = redis.call('ZRANGEBYSCORE', key, '-inf', reply.int(ctx.now - q.window), 'LIMIT', '0', '500')
  if #old > 0 then redis.call('ZREM', key, unpack(old)) end
  local ahead = redis.call('ZRANGEBYSCORE', key, '(' .. starts.ahead(ctx), '+inf', 'LIMIT', '0', '500')
  if #ahead > 0 then redis.call('ZREM', key, unpack(ahead)) end
end

-- suspects are at most 16 holds to be asked about: those whose time has come, then those that were to be asked later
-- than any hold may.
function starts.suspects(ctx, q)
  local key = keys.slots(ctx.r, q.name)
  local out = redis.call('ZRANGEBYSCORE', key, '-inf', ctx.t, 'LIMIT', '0', '16')
  if #out == 16 then return out end
  local ahead = redis.call('ZRANGEBYSCORE', key, '(' .. reply.int(ctx.now + starts.vouched), '+inf', 'LIMIT', '0',
    reply.int(16 - #out))
  for i = 1, #ahead do out[#out + 1] = ahead[i] end
  return out
end

-- jitter is a number of ms below limit that depends on who asks and when.
function starts.jitter(ctx, who, limit)
  if limit <= 0 then return 0 end
  return tonumber(string.sub(redis.sha1hex(who .. ctx.t), 1, 7), 16) % limit
end

-- until_rate is in how many ms there may be room in the window for a waiter that was just registered: for the k-th
-- who came within the last 30 s (older ones wait no more) when k starts have left it, not before 100 ms are over, and
-- somewhat later, so that they come one after the other. At most the window and its jitter, which is at least a tenth
-- of it, but no more than 1 s.
function starts.until_rate(ctx, q, who)
  local k = redis.call('ZCOUNT', keys.rate_waiters(ctx.r, q.name), '(' .. reply.int(ctx.now - 30000), starts.ahead(ctx))
  local started = starts.started(ctx, q)
  local place = math.max(1, math.min(started, started - q.rate + k))
  local head = redis.call('ZRANGEBYSCORE', keys.window(ctx.r, q.name), '(' .. reply.int(ctx.now - q.window),
    starts.ahead(ctx), 'WITHSCORES', 'LIMIT', reply.int(place - 1), '1')
  local at = head[2] and args.score(head[2]) + q.window or ctx.now
  return math.max(math.min(100, q.window), at - ctx.now) +
    starts.jitter(ctx, who, math.max(q.jitter, math.min(1000, math.floor(q.window / 10))))
end

-- until_slot is in how many ms it is worth while to ask for a slot again if nobody gives one back.
function starts.until_slot(ctx, q, who)
  local head = redis.call('ZRANGE', keys.slots(ctx.r, q.name), '0', '0', 'WITHSCORES')
  local pause = head[2] and args.score(head[2]) - ctx.now or 0
  return math.max(250, math.min(pause, 10000)) + starts.jitter(ctx, who, 750)
end

-- wait has a route woken when there is room, and in retry ms it asks itself. What waits for a limit of a key is
-- forgotten a minute later: nobody removes such a limit, and a key that nobody uses keeps nothing.
function starts.wait(ctx, q, key, partition, route_id, retry)
  meter.wait(ctx, key, partition, route_id)
  if q.idle then redis.call('PEXPIRE', key, reply.int(retry + 60000)) end
end

-- wake takes as many of those who wait for the window, and of those who wait for slots, as there is room for, and
-- some more: not everybody who waited still has work. A call takes 256 at most; the others go on waiting.
function starts.wake(ctx, q, out)
  local free = 256
  if q.cap > 0 then free = q.cap - redis.call('ZCARD', keys.slots(ctx.r, q.name)) end
  if q.rate > 0 then
    starts.pop(keys.rate_waiters(ctx.r, q.name), math.min(free, q.rate - starts.started(ctx, q)), out)
  end
  starts.pop(keys.slot_waiters(ctx.r, q.name), free, out)
end

function starts.pop(key, free, out)
  local most = math.min(free + 2, 256 - #out)
  if free > 0 and most > 0 then meter.waiters(key, most, out) end
end
