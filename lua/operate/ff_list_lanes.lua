-- ff_list_lanes: the lanes of a partition: those that have routes, and those an operator said something about. waiting
-- counts what is in their queues; ageing and weight are 0 where none is set. The routes come in pages of about 2,500,
-- in no order, so a lane may come several times, each time with the routes of that page; what an operator said comes
-- with the first page. The cursor is '' for the first page, and in the answer when there is no more.
-- Flags:   no-writes
-- Go:      Engine.Lanes
-- Args:    protocol cursor:scan?
-- Replies: OK cursor:text lanes:rows {namespace:text lane:text state:active|paused|draining|disabled retention:text
--          since:instant by:text routes:n waiting:n ageing:ms weight:n}
-- Errors:  @root invalid_input
local ff_lanes = {}

-- weights are those that were set, by lane of a namespace, and the names in order.
function ff_lanes.weights(ctx)
  local all, by, names = redis.call('HGETALL', keys.weights(ctx.r)), {}, {}
  for i = 1, #all, 2 do
    by[all[i]] = all[i + 1]
    names[#names + 1] = all[i]
  end
  return by, names
end

local function ff_list_lanes(ctx, q)
  local cursor, found, order = q.cursor, {}, {}
  local function entry(name)
    if not found[name] then
      found[name] = { routes = 0, waiting = 0 }
      order[#order + 1] = name
    end
    return found[name]
  end
  local page = redis.call('HSCAN', keys.routes(ctx.r), cursor == '' and '0' or cursor, 'COUNT', '2500')
  local routes = page[2]
  for i = 1, #routes, 2 do
    if not route.kept(ctx, routes[i]) or redis.call('HEXISTS', keys.route_use(ctx.r), routes[i]) == 1 then
      local e = entry(string.match(routes[i + 1], '^([^\31]*\31[^\31]*)') or '')
      e.routes = e.routes + 1
      e.waiting = e.waiting + redis.call('ZCARD', keys.queue(ctx.r, routes[i]))
    end
  end
  local told, weights, weighed = cursor == '' and redis.call('HKEYS', keys.lanes(ctx.r)) or {}, ff_lanes.weights(ctx)
  for i = 1, #told do entry(told[i]) end
  for i = 1, cursor == '' and #weighed or 0 do entry(weighed[i]) end
  table.sort(order)
  local out = { 1, 'OK', page[1] ~= '0' and page[1] or '', reply.int(#order) }
  for i = 1, #order do
    local row, e = lane.read(ctx, order[i], true), found[order[i]]
    local namespace, name = string.match(order[i], '^([^\31]*)\31(.*)$')
    local slots = { namespace or '', name or order[i], row.state, row.keep, row.since, row.by, reply.int(e.routes),
      reply.int(e.waiting), reply.int(row.age), weights[order[i]] or '0' }
    for s = 1, #slots do out[#out + 1] = slots[s] end
  end
  return out
end
