-- ff_list_lanes: the lanes of a partition: those that have routes, and those an operator said something about. waiting
-- counts what is in their queues; ageing and weight are 0 where none is set.
-- Flags:   no-writes
-- Go:      Engine.listLanes
-- Args:    protocol
-- Replies: OK count {namespace lane state retention since by routes waiting ageing weight}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_lanes = {}

-- weights are those that were set, by lane of a namespace, and the names in order.
function ff_lanes.weights(ctx)
  local all, by, names = redis.call('HGETALL', keys.shares(ctx.r)), {}, {}
  for i = 1, #all, 2 do
    local weight = string.match(all[i + 1], ' (%d+)$')
    if weight and string.find(all[i], '\31', 1, true) then
      by[all[i]] = weight
      names[#names + 1] = all[i]
    end
  end
  return by, names
end

local function ff_list_lanes(ctx, argv)
  local found, order = {}, {}
  local function entry(name)
    if not found[name] then
      found[name] = { routes = 0, waiting = 0 }
      order[#order + 1] = name
    end
    return found[name]
  end
  local routes = redis.call('HGETALL', keys.routes(ctx.r))
  for i = 1, #routes, 2 do
    local e = entry(string.match(routes[i + 1], '^([^\31]*\31[^\31]*)') or '')
    e.routes = e.routes + 1
    e.waiting = e.waiting + redis.call('ZCARD', keys.queue(ctx.r, routes[i]))
  end
  local told = redis.call('HKEYS', keys.lanes(ctx.r))
  for i = 1, #told do entry(told[i]) end
  local weights, weighed = ff_lanes.weights(ctx)
  for i = 1, #weighed do entry(weighed[i]) end
  table.sort(order)
  local out = { 1, 'OK', reply.int(#order) }
  for i = 1, #order do
    local row, e = lane.read(ctx, order[i], true), found[order[i]]
    local namespace, name = string.match(order[i], '^([^\31]*)\31(.*)$')
    local slots = { namespace or '', name or order[i], row.state, reply.int(row.keep), row.since, row.by, reply.int(e.routes),
      reply.int(e.waiting), reply.int(row.age), weights[order[i]] or '0' }
    for s = 1, #slots do out[#out + 1] = slots[s] end
  end
  return out
end
