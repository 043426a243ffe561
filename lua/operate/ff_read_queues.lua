-- ff_read_queues: the queues of a partition in the order of route ids, at most 256 a call: the lane's state, how many wait,
-- since when the oldest of them exists, the priority of the next one, and how many executions of the route are retained.
-- The oldest is sought among the 15 highest priorities that wait and priority 0: with more than 16 of them in one queue,
-- something older may wait in between. In a lane with ageing, where priority does not show in the order, it is sought among the 16
-- that are next. more tells whether there are routes behind the last one.
-- Flags:   no-writes
-- Go:      Engine.Queues
-- Args:    protocol after
-- Replies: OK now more count {route row state depth oldest priority retained}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_queues = {}

-- entry returns when an execution was created, and its priority; nil if there is no record of it.
function ff_queues.entry(ctx, id)
  local c = core.read(ctx, id)
  return tonumber(c.created_at or ''), tonumber(c.priority or '0')
end

-- next looks at the first 16 of a queue.
function ff_queues.next(ctx, queue)
  local list, oldest, first = redis.call('ZRANGE', queue, '0', '15'), nil, nil
  for i = 1, #list do
    local created, priority = ff_queues.entry(ctx, list[i])
    if created then
      if not oldest or created < oldest then oldest = created end
      first = first or priority
    end
  end
  return oldest, first, #list
end

-- look returns the oldest creation time and the first priority of a queue that is not empty, and how many reads it took. A
-- score is the creation time less 10^12 for each step of priority; creation times are taken to lie between 28 years ago
-- and three years ahead, so a score tells which priority it has. What was filed while the lane had ageing is taken for one of priority 0.
function ff_queues.look(ctx, queue)
  local newest = ctx.now + 100000000000
  local oldest, first, from, reads = nil, nil, '-inf', 0
  while reads < 16 do
    local head = redis.call('ZRANGEBYSCORE', queue, from, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
    reads = reads + 1
    if not head[2] then break end
    local score = args.score(head[2])
    local band = math.max(0, math.floor((newest - score) / 1000000000000))
    local created, priority = ff_queues.entry(ctx, head[1])
    created = created or score + band * 1000000000000
    if not oldest or created < oldest then oldest = created end
    first = first or priority
    if band == 0 then break end
    local behind = reads == 15 and 1 or band -- the last look is for priority 0
    from = '(' .. reply.int(newest - behind * 1000000000000)
  end
  return oldest, first, reads
end

-- ids returns the route ids after one, in order, and whether that is all of them.
function ff_queues.ids(ctx, known)
  local all, ids = redis.call('HKEYS', keys.routes(ctx.r)), {}
  for i = 1, #all do
    local id = tonumber(all[i])
    if id and id > known then ids[#ids + 1] = id end
  end
  table.sort(ids)
  local out = {}
  for i = 1, math.min(256, #ids) do out[i] = reply.int(ids[i]) end
  return out, #ids <= 256
end

local function ff_read_queues(ctx, argv)
  local known = args.int(argv[2], 0, 9007199254740991)
  if not known then return reply.err('invalid_input', 'after: a route id, or 0') end
  local ids, all = ff_queues.ids(ctx, known)
  if #ids == 0 then return reply.ok(ctx.t, '0', '0') end
  local rows = redis.call('HMGET', keys.routes(ctx.r), unpack(ids))
  local used = redis.call('HMGET', keys.route_use(ctx.r), unpack(ids))
  local out, reads, count = { 1, 'OK', ctx.t, '', '' }, 0, 0
  for i = 1, #ids do
    if reads >= 1024 then
      all = false
      break
    end
    local queue, row = keys.queue(ctx.r, ids[i]), rows[i] or ''
    local said = lane.read(ctx, string.match(row, '^([^\31]*\31[^\31]*)') or '')
    local depth, oldest, priority = redis.call('ZCARD', queue), nil, nil
    if depth > 0 then
      local n
      oldest, priority, n = (said.age > 0 and ff_queues.next or ff_queues.look)(ctx, queue)
      reads = reads + n
    end
    local slots = { ids[i], row, said.state, reply.int(depth),
      reply.int(oldest or 0), reply.int(priority or 0), used[i] or '0' }
    for s = 1, 7 do out[#out + 1] = slots[s] end
    count = i
  end
  out[4], out[5] = all and '0' or '1', reply.int(count)
  return out
end
