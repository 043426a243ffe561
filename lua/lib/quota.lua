-- quota: how often, and how many at once, executions may start (spec 70 §6). A quota lives in a partition of its own kind,
-- "{q:n}". Its definition has df its text, sc scope, for people, rt starts a window, wn window in ms, cp how many at once, jt jitter in ms,
-- ct created, up revision, by who changed it; 0 is no limit. What it admitted is a hold, "<partition>.<execution>:<epoch>": in the
-- window by when, and in a slot by when it is to be asked about. No time frees a slot: either its execution's partition says, through its
-- outbox, that it runs no more, or it is asked when somebody wants the slot and has not heard for a while.
local quota = {}

quota.name = budget.name

function quota.read(ctx, name)
  local d = budget.hash(keys.quota(ctx.r, name))
  if not d.ct then return nil end
  return { name = name, rate = tonumber(d.rt), window = tonumber(d.wn), cap = tonumber(d.cp), jitter = tonumber(d.jt), d = d }
end

function quota.note(ctx, name, what, by, detail)
  local key = keys.quota_book(ctx.r, name)
  if redis.call('RPUSH', key, table.concat({ ctx.t, what, by, detail }, '\31')) > 256 then redis.call('LTRIM', key, -256, -1) end
end

-- started is how many are in the window.
function quota.started(ctx, q)
  if q.rate == 0 then return 0 end
  return redis.call('ZCOUNT', keys.window(ctx.r, q.name), '(' .. reply.int(ctx.now - q.window), '+inf')
end

-- trim forgets some of what has left the window.
function quota.trim(ctx, q)
  local key = keys.window(ctx.r, q.name)
  local old = redis.call('ZRANGEBYSCORE', key, '-inf', reply.int(ctx.now - q.window), 'LIMIT', '0', '500')
  if #old > 0 then redis.call('ZREM', key, unpack(old)) end
end

-- jitter is a number of ms below limit that depends on who asks and when.
function quota.jitter(ctx, who, limit)
  if limit <= 0 then return 0 end
  return tonumber(string.sub(redis.sha1hex(who .. ctx.t), 1, 7), 16) % limit
end

-- until_rate is in how many ms the oldest start leaves the window.
function quota.until_rate(ctx, q, who)
  local head = redis.call('ZRANGEBYSCORE', keys.window(ctx.r, q.name), '(' .. reply.int(ctx.now - q.window), '+inf', 'WITHSCORES',
    'LIMIT', '0', '1')
  local at = head[2] and args.score(head[2]) + q.window or ctx.now
  return math.max(1, at - ctx.now) + quota.jitter(ctx, who, q.jitter)
end

-- until_slot is in how many ms it is worth while to ask for a slot again if nobody gives one back.
function quota.until_slot(ctx, q, who)
  local head = redis.call('ZRANGE', keys.slots(ctx.r, q.name), '0', '0', 'WITHSCORES')
  local pause = head[2] and args.score(head[2]) - ctx.now or 0
  return math.max(250, math.min(pause, 10000)) + quota.jitter(ctx, who, 750)
end

-- wake takes as many of those who wait for slots as there are free ones, and some more: not everybody who waited still has work; and
-- one who waits for the window for each start that did not happen.
function quota.wake(ctx, q, out, undone)
  if undone > 0 and q.rate > 0 then budget.waiters(keys.rate_waiters(ctx.r, q.name), math.min(undone, 100), out) end
  local free = 256
  if q.cap > 0 then free = math.min(256, q.cap - redis.call('ZCARD', keys.slots(ctx.r, q.name))) end
  if free > 0 then budget.waiters(keys.cap_waiters(ctx.r, q.name), math.min(256, free + 2), out) end
end
