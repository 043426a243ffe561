-- ff_set_lane: says whether a lane of a namespace takes work and hands it out, and for how many seconds what ends in it
-- is kept, and how many ms of waiting outweigh a step of priority (0: none do; for what becomes claimable from now
-- on); '' leaves any as it is, a retention of 0 is the default. It is one number, or one for each outcome, joined by
-- slashes (policy.span), of which '' leaves one as it is. What is running goes on. Claims see it at once: the routes
-- of a lane that hands nothing out are not ready.
-- Flags:   allow-oom
-- Go:      Engine.SetLane
-- Args:    protocol namespace:name(64) lane:name(64) state:active|paused|draining|disabled? retention:text
--          ageing:ms(0..86400000)?
-- Replies: OK state:active|paused|draining|disabled retention:text routes:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input
local ff_lane = {}

-- classes lists the classes of a lane.
function ff_lane.classes(ctx, name)
  local all, found = redis.call('ZRANGE', keys.route_log(ctx.r), '0', '-1'), {}
  route.load(ctx, all)
  for i = 1, #all do
    local _, lane_name = route.split(route.read(ctx, all[i]))
    if lane_name == name then found[#found + 1] = all[i] end
  end
  return found
end

-- count is how many of these classes have a route of the namespace without gates.
function ff_lane.count(ctx, q, classes)
  local n = 0
  for i = 1, #classes do
    local _, lane_name, rest = route.split(route.read(ctx, classes[i]))
    if route.find(ctx, route.row(q.namespace, lane_name, rest, '')) then n = n + 1 end
  end
  return reply.int(n)
end

-- turn opens or closes the lane. Waiters for many classes are woken by a tick at once.
function ff_lane.turn(ctx, q, classes, open)
  local rung = 0
  for i = 1, #classes do
    local waiting = ready.lane(ctx, classes[i], q.namespace, q.lane, open)
    if waiting > 0 then
      root.need(ctx, ctx.now + 1000)
      rung = rung + 1
      if rung <= 16 then
        local member = q.namespace == route.space(ctx) and classes[i] or 'c' .. classes[i]
        local _, _, rest = route.split(route.read(ctx, classes[i]))
        local id = route.find(ctx, route.row(q.namespace, q.lane, rest, ''))
        local level = id and urgent.level(ctx, id)
        local heard = doorbell.ring(ctx, member, q.namespace, math.min(waiting, 64), level and 'w' .. reply.int(level))
        if level and heard == 0 then urgent.tell(ctx, id, level) end
      end
    end
  end
  if rung > 16 then root.need(ctx, ctx.now) end
end

-- special tells whether there is a lane that is not as if nobody had said anything.
function ff_lane.special(ctx)
  local rows = redis.call('HVALS', keys.lanes(ctx.r))
  for i = 1, #rows do
    if string.sub(rows[i], 1, 9) ~= 'active 0 ' then return true end
  end
  return false
end

-- usual is a lane of which nothing but who spoke last would be forgotten with its row; nil when there is none.
function ff_lane.usual(ctx)
  local all = redis.call('HGETALL', keys.lanes(ctx.r))
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 1, 9) == 'active 0 ' then return all[i] end
  end
  return nil
end

local function ff_set_lane(ctx, q)
  if q.retention ~= '' and not policy.spans(q.retention, '') then
    return reply.err('invalid_input', 'retention: 0..315360000 s, or four of them')
  end
  local name = lane.name(q.namespace, q.lane)
  local evicted = nil
  if redis.call('HLEN', keys.lanes(ctx.r)) >= 1024 and redis.call('HEXISTS', keys.lanes(ctx.r), name) == 0 then
    evicted = ff_lane.usual(ctx)
    if not evicted then return reply.err('invalid_input', 'lane: at most 1024 are configured') end
  end
  local old = lane.read(ctx, name, true)
  local state = q.state ~= '' and q.state or old.state
  local keep = q.retention ~= '' and policy.spans(q.retention, old.keep) or old.keep
  local age = q.ageing or old.age
  local classes = ff_lane.classes(ctx, q.lane)
  local count = ff_lane.count(ctx, q, classes)
  if state == old.state and keep == old.keep and age == old.age then return reply.already(state, keep, count) end
  local since = state == old.state and old.since or ctx.t

  if evicted then redis.call('HDEL', keys.lanes(ctx.r), evicted) end
  local span = keep .. (age > 0 and ',' .. reply.int(age) or '')
  redis.call('HSET', keys.lanes(ctx.r), name, state .. ' ' .. span .. ' ' .. since .. ' ' .. trail.by(ctx))
  if ff_lane.special(ctx) then
    redis.call('HSET', ctx.r, 'lanes', '1')
  else
    redis.call('HDEL', ctx.r, 'lanes')
  end
  ctx.lanes, ctx.cache.lane_rows, ctx.cache.lane_of = '1', nil, nil -- what this call says of it counts
  if state ~= old.state then ff_lane.turn(ctx, q, classes, lane.hands_out[state]) end
  return reply.ok(state, keep, count)
end
