-- lane: what an operator said about a lane of a namespace. active accepts and hands out; paused accepts but
-- does not hand out; draining hands out but does not accept; disabled does neither. A lane that hands nothing out has
-- no route in ready, so claims need not ask. A row is "state keep,age since by": keep is for how many seconds what
-- ended in the lane is retained (policy.span), 0 the default; age, if it is there, is how many ms of waiting a step
-- of priority is worth. It stays when everything is as usual again, as the record of who said so; the root's field
-- lanes tells whether any row is not as usual.
local lane = {}

local US = '\31'
local accepts = { active = true, paused = true }

lane.hands_out = { active = true, draining = true }
lane.states = { active = true, paused = true, draining = true, disabled = true }

function lane.name(namespace, name) return namespace .. US .. name end

-- read returns the row of a lane; an active one that keeps things for the default time when nobody said anything. Who
-- asks for the record always reads it.
function lane.read(ctx, name, always)
  ctx.cache.lane_rows = ctx.cache.lane_rows or {}
  local row = ctx.cache.lane_rows[name]
  if not row then
    local text = (ctx.lanes or always) and redis.call('HGET', keys.lanes(ctx.r), name) or ''
    local state, keep, age, since, by = string.match(text, '^(%l+) ([%d/]+),?(%d*) (%d+) (.*)$')
    row = { state = state or 'active', keep = keep or '0', age = tonumber(age or '') or 0, since = since or '0',
      by = by or '' }
    ctx.cache.lane_rows[name] = row
  end
  return row
end

local usual = { state = 'active', keep = '0', age = 0, since = '0', by = '' }

-- of returns the row of a route's lane.
function lane.of(ctx, route_id)
  if not ctx.lanes then return usual end
  ctx.cache.lane_of = ctx.cache.lane_of or {}
  local row = ctx.cache.lane_of[route_id]
  if not row then
    row = lane.read(ctx, string.match(route.read(ctx, route_id), '^([^\31]*\31[^\31]*)') or '')
    ctx.cache.lane_of[route_id] = row
  end
  return row
end

-- open tells whether work of a route is handed out.
function lane.open(ctx, route_id) return lane.hands_out[lane.of(ctx, route_id).state] end

-- refusal tells why a lane takes no new work, nil when it does.
function lane.refusal(ctx, namespace, name)
  if not ctx.lanes then return nil end
  local row = lane.read(ctx, lane.name(namespace, name))
  if accepts[row.state] then return nil end
  return 'lane_closed ' .. name .. ' is ' .. row.state
end

-- score, as text: higher priority first, older first within it. Exact: |score| < 2^53. Where a lane has ageing, a step
-- of priority is worth that many ms of waiting, and no more.
function lane.score(ctx, c)
  if not c.priority then return c.created_at end
  ctx.moves.prior = true -- some may be urgent
  local step = ctx.lanes and lane.of(ctx, c.route).age or 0
  return reply.int(tonumber(c.created_at) - tonumber(c.priority) * (step > 0 and step or 1000000000000))
end
