-- urgent: work that is to come before what workers would take next. Priority orders a queue, and busy workers take
-- partitions in turn: without a word from here, work of high priority waits until its partition has its turn. So who
-- is rung for it is told its priority ("w" and the number), and where nobody waits to be rung, all workers are told
-- of it on one channel of the partition: priority and route. Of work without priority, and of work with older or
-- better work of its queue ahead of it, nothing is told.
local urgent = {}

-- every is for how many ms one message about a route does for others of the same or a lower priority: a worker that
-- was told comes back until it gets something lower, or waits here.
local every = 10

-- level is the priority of the first in a route's queue, if it is above 0 and among members (score and id in turn),
-- or of whichever is first if there are none; else nil. It follows from the score: what is older than its priority is
-- worth counts for more where the lane has ageing.
function urgent.level(ctx, route_id, members)
  local head = redis.call('ZRANGE', keys.queue(ctx.r, route_id), '0', '0', 'WITHSCORES')
  if not head[1] then return nil end
  local new = not members
  for i = 2, members and #members or 0, 2 do new = new or members[i] == head[1] end
  if not new then return nil end
  local step = lane.of(ctx, route_id).age
  if step == 0 then step = 1000000000000 end
  local level = math.floor((2 * (ctx.now - args.score(head[2])) + step) / (2 * step)) -- rounded: clocks step back
  if level < 1 then return nil end
  return math.min(level, 9000)
end

-- tell tells all workers.
function urgent.tell(ctx, route_id, level)
  local at, told, of = string.match(redis.call('HGET', ctx.r, 'urged') or '', '^(%d+) (%d+) (%d+)$')
  if at and of == route_id and level <= tonumber(told) and ctx.now >= tonumber(at)
    and ctx.now < tonumber(at) + every then return end
  local message = reply.int(level) .. ' ' .. route_id
  redis.call('HSET', ctx.r, 'urged', ctx.t .. ' ' .. message)
  publish.to(keys.urgent(ctx.r), message)
end

-- wake wakes up to count waiters for new work of a route, and tells of it if it is urgent.
function urgent.wake(ctx, route_id, count, members)
  local level = ctx.moves.prior and urgent.level(ctx, route_id, members)
  local heard = doorbell.wake(ctx, route_id, count, level and 'w' .. reply.int(level))
  if level and heard == 0 then urgent.tell(ctx, route_id, level) end
end


-- first is the route and the level of what should come first of a member of ready, of a few of its namespaces;
-- without gates.
local function first(ctx, member)
  local class, plain = ready.class(member)
  if plain then return class, urgent.level(ctx, class) end
  local id, most = nil, nil
  local names = redis.call('ZRANGE', keys.ring(ctx.r, class), '0', '3')
  local _, lane_name, rest = route.split(route.read(ctx, class))
  for i = 1, lane_name and #names or 0 do
    local other = route.find(ctx, route.row(names[i], lane_name, rest, ''))
    local level = other and urgent.level(ctx, other)
    if level and (not most or level > most) then id, most = other, level end
  end
  return id, most
end

-- forward wakes one waiter for each class of which a subscription has work: the waiter that was woken has no free slot.
-- It is told what that one was, and when nobody else waits, all workers are.
function urgent.forward(ctx, digest)
  local members, heard = ready.serves(ctx, digest), 0
  for i = 1, math.min(#members, 8) do
    local id, level = first(ctx, members[i])
    local n = doorbell.ring(ctx, members[i], nil, 1, level and 'w' .. reply.int(level))
    if level and n == 0 then urgent.tell(ctx, id, level) end
    heard = heard + n
  end
  return heard
end
