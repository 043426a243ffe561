-- indexes: the sets that list executions. lib/home.lua says which one lists an execution; besides, it has at most one
-- alarm. Moves are collected in ctx and written by apply, so a call over a hundred items touches each index once.
local indexes = {}

local function list(ctx, name, key)
  local all = ctx.moves[name]
  if not all then
    all = {}
    ctx.moves[name] = all
  end
  local one = all[key]
  if not one then
    one = {}
    all[key] = one
  end
  return one
end

-- enqueue makes an execution claimable under a score (text); interested waiters are woken by apply.
function indexes.enqueue(ctx, route, score, id)
  local q = list(ctx, 'enqueued', route)
  q[#q + 1], q[#q + 2] = score, id
end

-- enqueue_all does that with scores and executions in turn, the first ones of a call in their route.
function indexes.enqueue_all(ctx, route, members) ctx.moves.enqueued = { [route] = members } end

-- dequeue takes it out of its route's queue, or out of what this call is about to put there: a member that an end
-- makes claimable may be cancelled by what else follows from that end.
function indexes.dequeue(ctx, route, id)
  local coming = ctx.moves.enqueued and ctx.moves.enqueued[route]
  if coming then
    local left = {}
    for i = 1, #coming, 2 do
      if coming[i + 1] ~= id then left[#left + 1], left[#left + 2] = coming[i], coming[i + 1] end
    end
    if #left < #coming then
      ctx.moves.enqueued[route] = #left > 0 and left or nil
      return
    end
  end
  local q = list(ctx, 'dequeued', route)
  q[#q + 1] = id
end

-- dequeue_all does that with what a claim has just read of a queue of which it has taken nothing yet.
function indexes.dequeue_all(ctx, route, ids)
  ctx.moves.dequeued = ctx.moves.dequeued or {}
  ctx.moves.dequeued[route] = ids
end

-- counted remembers how long a queue is, so that apply need not ask.
function indexes.counted(ctx, route, n)
  ctx.moves.counts = ctx.moves.counts or {}
  ctx.moves.counts[route] = n
end

-- unheld is the list of what a session does not hold any more.
function indexes.unheld(ctx, session_id) return list(ctx, 'unheld', session_id) end

function indexes.unhold(ctx, session_id, id)
  local h = list(ctx, 'unheld', session_id)
  h[#h + 1] = id
end

-- alarm sets (or with nil removes) the one alarm of an execution.
function indexes.alarm(ctx, at, id)
  if at then
    timers.put(ctx, timers.alarms, at, id)
  else
    redis.call('ZREM', keys.alarms(ctx.r), id)
  end
end

-- completed is for how many ms what completed is kept when nobody said anything.
local completed = 86400000

-- kept is for how many ms an execution is retained that ended with a code: what its policy says (own), or its lane,
-- or 24 h for one that completed and 14 days for any other, so that somebody can still look at it and replay it.
function indexes.kept(ctx, route, own, code)
  local outcome = policy.outcome(code)
  local keep = policy.span(own, outcome)
  if keep == 0 then keep = policy.span(lane.of(ctx, route).keep, outcome) end
  if keep == 0 then return outcome == 1 and completed or 1209600000 end
  return keep * 1000
end

-- over is when an execution that ended then may be purged: not before the end of the time for which it has a key.
function indexes.over(ctx, c, ended)
  return math.max(ended + indexes.kept(ctx, c.route, c.retention, c.state), policy.till(c.key))
end

-- usual is the list of what ended, and the time under which what completed is filed if nobody said how long it is kept.
function indexes.usual(ctx)
  local text = ctx.moves.purge_text
  if not text then
    local at = ctx.now + completed
    text = reply.int(at)
    ctx.moves.purge_text, ctx.moves.purge = text, math.min(ctx.moves.purge or at, at)
  end
  return list(ctx, 'ended', 'done'), text
end

-- done files an ended execution under the time at which it may be purged.
function indexes.done(ctx, id, route, own, code, key)
  if code ~= 'T1' then -- how many of those there were follows from the others (ff_describe_partition)
    local outcome, o = string.sub(code, 1, 2), ctx.moves.outcomes or {}
    ctx.moves.outcomes, o[outcome] = o, (o[outcome] or 0) + 1
  end
  local d, text = nil, nil
  if not own and not key and not ctx.lanes and code == 'T1' then
    d, text = indexes.usual(ctx)
  else
    local at = math.max(ctx.now + indexes.kept(ctx, route, own, code), policy.till(key))
    d, text = list(ctx, 'ended', 'done'), reply.int(at)
    ctx.moves.purge = math.min(ctx.moves.purge or at, at)
  end
  d[#d + 1] = text
  d[#d + 1] = id
end

-- unsuccessful lists an execution that ended other than completed under the time of its end, which is now.
function indexes.unsuccessful(ctx, id)
  local u = list(ctx, 'ended', 'unsuccessful')
  u[#u + 1] = ctx.t
  u[#u + 1] = id
end

-- forget forgets a row that no execution uses any more, and a class that has no other routes either. Workers that
-- know the class wait for nothing.
function indexes.forget(ctx, id)
  local r, class = ctx.r, route.class(id)
  local others = route.others(class)
  if id == others then
    redis.call('HDEL', keys.route_use(r), others)
    if redis.call('HEXISTS', keys.route_use(r), class) == 0 then indexes.forget(ctx, class) end
    return
  end
  redis.call('HDEL', keys.route_use(r), id)
  if redis.call('EXISTS', keys.queue(r, id)) == 1 then return end
  if id == class and redis.call('HEXISTS', keys.route_use(r), others) == 1 then return end
  local row = route.read(ctx, id)
  ready.drop(ctx, id)
  redis.call('HDEL', keys.routes(r), id)
  if row ~= '' and redis.call('HGET', keys.route_ids(r), row) == id then redis.call('HDEL', keys.route_ids(r), row) end
  if ctx.gates then gate.removed(ctx, id) end
  if id == class then
    redis.call('ZREM', keys.route_log(r), id)
    redis.call('HDEL', keys.makers(r), id)
  elseif redis.call('HINCRBY', keys.route_use(r), others, -1) <= 0 then
    indexes.forget(ctx, others)
  end
  ctx.cache.rows[id] = nil
end

-- unblock takes a member out of those that wait for others.
function indexes.unblock(ctx, id)
  local u = ctx.moves.unblocked or {}
  ctx.moves.unblocked, u[#u + 1] = u, id
end

local function unblocked(ctx)
  redis.call('ZREM', keys.blocked(ctx.r), unpack(ctx.moves.unblocked))
  ctx.moves.unblocked = nil
end

-- block files a member that waits for others.
function indexes.block(ctx, id, created)
  local b = ctx.moves.blocked or {}
  ctx.moves.blocked, b[#b + 1] = b, created
  b[#b + 1] = id
end

-- reopen hands out again what waits in a route that was closed, and tells whether there is anything that is handed out.
function indexes.reopen(ctx, route_id)
  local waiting = redis.call('ZCARD', keys.queue(ctx.r, route_id))
  if waiting == 0 then return false end
  if not ready.offer(ctx, route_id) then return false end
  root.need(ctx, ctx.now + 1000)
  ctx.moves.prior = true -- its queue alone tells whether some of it is urgent
  urgent.wake(ctx, route_id, math.min(waiting, 64))
  return true
end

-- queue writes what is enqueued, and wakes waiters for it; with later they are not woken yet, and later has what it
-- was by route.
function indexes.queue(ctx, later)
  for route, members in pairs(ctx.moves.enqueued) do
    redis.call('ZADD', keys.queue(ctx.r, route), unpack(members))
    if ready.offer(ctx, route) then
      root.need(ctx, ctx.now + 1000)
      if later then
        later[route] = { n = #members / 2, members = members }
      else
        urgent.wake(ctx, route, #members / 2, members)
      end
    end
  end
  ctx.moves.enqueued = nil
end

-- file writes who was blocked.
function indexes.file(ctx)
  if ctx.moves.unblocked then unblocked(ctx) end
  redis.call('ZADD', keys.blocked(ctx.r), unpack(ctx.moves.blocked))
  ctx.moves.blocked = nil
end

-- apply writes the collected moves, and what the feed is to hold; what may change the state of a member calls
-- flow.apply. It returns true when a route that lost entries still has some. While ctx.moves.coming is set a claim
-- follows in this call: what became claimable is left to it, and headers that it will change again are not written.
function indexes.apply(ctx)
  local r, rest = ctx.r, false
  -- Only what there is is looked at and forgotten: a table made to be empty, or a field set to nil that was never
  -- there, costs as much as a small command.
  if ctx.moves.unblocked then unblocked(ctx) end
  if ctx.moves.unheld then
    for sid, ids in pairs(ctx.moves.unheld) do redis.call('ZREM', keys.held(r, sid), unpack(ids)) end
    ctx.moves.unheld = nil
  end
  if ctx.moves.ended then
    local ended = ctx.moves.ended
    redis.call('ZADD', keys.done(r), unpack(ended.done))
    if ended.unsuccessful then redis.call('ZADD', keys.unsuccessful(r), unpack(ended.unsuccessful)) end
    timers.need(ctx, timers.done, ctx.moves.purge)
    ctx.moves.ended, ctx.moves.purge, ctx.moves.purge_text = nil, nil, nil
    if ctx.moves.outcomes then
      for outcome, n in pairs(ctx.moves.outcomes) do redis.call('HINCRBY', r, 'tally:' .. outcome, n) end
      ctx.moves.outcomes = nil
    end
  end
  if ctx.moves.dequeued then
    for route, ids in pairs(ctx.moves.dequeued) do
      local q = keys.queue(r, route)
      redis.call('ZREM', q, unpack(ids))
      local count = ctx.moves.counts and ctx.moves.counts[route]
      if count and count > #ids or not count and redis.call('EXISTS', q) == 1 then
        rest = true
      else
        ready.drop(ctx, route)
      end
    end
    ctx.moves.dequeued = nil
  end
  if ctx.moves.counts then ctx.moves.counts = nil end
  if ctx.moves.enqueued and not ctx.moves.coming then indexes.queue(ctx) end
  if ctx.moves.used then
    for route_id, change in pairs(ctx.moves.used) do
      if redis.call('HINCRBY', keys.route_use(r), route_id, change) <= 0 then indexes.forget(ctx, route_id) end
    end
    ctx.moves.used = nil
  end
  if ctx.moves.made or ctx.moves.unmade or ctx.moves.labelled or ctx.moves.unlabelled then catalogue.apply(ctx) end
  if ctx.moves.purged then
    redis.call('HINCRBY', r, 'purged', ctx.moves.purged) -- who recounts must know
    ctx.moves.purged = nil
  end
  if ctx.moves.outgoing then gate.flush(ctx) end
  if ctx.cache.flows and not ctx.moves.coming then graph.flush(ctx) end
  feed.flush(ctx)
  return rest
end
