-- ff_read_queues: the queues of a partition, or of one namespace there, about 100 a call, in no order; one may come
-- twice: the lane's state, how many wait, since when the oldest of them exists, the priority of the next one, and how
-- many executions of the route are retained. The oldest is sought among the 15 highest priorities that wait and
-- priority 0: with more than 16 of them in one queue, something older may wait in between. In a lane with ageing,
-- where priority does not show in the order, it is sought among the 16 that are next. The cursor is '' for the first
-- page, and in the answer when there is no more.
-- Flags:   no-writes
-- Go:      Engine.Queues
-- Args:    protocol cursor:scan? namespace:name(64)?
-- Replies: OK now:instant cursor:text queues:rows {route:n(1..) row:text state:text depth:n oldest:instant
--          priority:int retained:n}
-- Errors:  @root invalid_input
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

-- look returns the oldest creation time and the first priority of a queue that is not empty, and how many reads it
-- took. A score is the creation time less 10^12 for each step of priority; creation times are taken to lie between 28
-- years ago and three years ahead, so a score tells which priority it has. What was filed while the lane had ageing
-- is taken for one of priority 0.
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

-- page returns some of the routes, of one namespace if one is given, with their rows, and the cursor of the next ones.
function ff_queues.page(ctx, cursor, namespace)
  local page, ids, rows = redis.call('HSCAN', keys.routes(ctx.r), cursor == '' and '0' or cursor, 'COUNT', '100'), {},
    {}
  for i = 1, #page[2], 2 do
    local row = page[2][i + 1]
    if namespace == '' or string.sub(row, 1, #namespace + 1) == namespace .. '\31' then
      ids[#ids + 1], rows[#rows + 1] = page[2][i], row
    end
  end
  return ids, rows, page[1] ~= '0' and page[1] or ''
end

local function ff_read_queues(ctx, q)
  local ids, rows, next_page = ff_queues.page(ctx, q.cursor, q.namespace)
  local out, count = { 1, 'OK', ctx.t, next_page, '' }, 0
  local used = #ids > 0 and redis.call('HMGET', keys.route_use(ctx.r), unpack(ids)) or {}
  for i = 1, #ids do
    local queue, retained = keys.queue(ctx.r, ids[i]), used[i] or '0'
    local said = lane.read(ctx, string.match(rows[i], '^([^\31]*\31[^\31]*)') or '')
    local depth, oldest, priority = redis.call('ZCARD', queue), nil, nil
    if depth > 0 then oldest, priority = (said.age > 0 and ff_queues.next or ff_queues.look)(ctx, queue) end
    local slots = { ids[i], rows[i], said.state, reply.int(depth), reply.int(oldest or 0), reply.int(priority or 0),
      retained }
    if depth > 0 or retained ~= '0' or not route.kept(ctx, ids[i]) then
      for s = 1, 7 do out[#out + 1] = slots[s] end
      count = count + 1
    end
  end
  out[5] = reply.int(count)
  return out
end
