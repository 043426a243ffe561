-- share: the namespaces of a lane share what is handed out by weight, however much of it waits for each (design §6). Each has a
-- count of what it was given, a claim adding 1,000,000 divided by its weight; who has least comes next. Who had nothing to do does not
-- save up: it goes on where the lane is. One hash: "<namespace>\31<lane>" -> "count weight", and "<lane>" -> count of the lane.
-- Nothing of this is read as long as no lane has work of two namespaces (the root's field spaces).
local share = {}

local US, unit = '\31', 1000000

-- added notes that a lane has work of several namespaces. The root's field space is the first namespace there ever was.
function share.added(ctx, row)
  local namespace = string.match(row, '^[^\31]*')
  local h = redis.call('HMGET', ctx.r, 'space', 'spaces')
  if h[2] then return end
  local several = h[1] and h[1] ~= namespace
  if not h[1] then -- of a partition that is older than this, the rows tell
    redis.call('HSET', ctx.r, 'space', namespace)
    local rows = redis.call('HVALS', keys.routes(ctx.r))
    for i = 1, #rows do several = several or string.match(rows[i], '^[^\31]*') ~= namespace end
  end
  if several then redis.call('HSET', ctx.r, 'spaces', '1') end
end

-- removed forgets the count of a namespace whose weight nobody set: if it comes again it goes on where the lane is.
function share.removed(ctx, row)
  local name = string.match(row, '^[^\31]*\31[^\31]*')
  local text = redis.call('HGET', keys.shares(ctx.r), name)
  if text and not string.find(text, ' ', 1, true) then redis.call('HDEL', keys.shares(ctx.r), name) end
end

-- groups sorts heads by namespace and lane. rows are the rows of the routes.
local function groups(found, rows)
  local list, by, lanes = {}, {}, {}
  for i = 1, #found do
    local name = string.match(rows[found[i].route] or '', '^([^\31]*\31[^\31]*)') or ''
    local g = by[name]
    if not g then
      local lane_name = string.match(name, '\31(.*)$') or ''
      g = { name = name, lane = lane_name, at = 1, heads = {} }
      by[name], list[#list + 1] = g, g
      if not lanes[lane_name] then
        lanes[lane_name] = { name = lane_name, groups = {} }
        lanes[#lanes + 1] = lanes[lane_name]
      end
      local own = lanes[lane_name].groups
      own[#own + 1] = g
    end
    g.heads[#g.heads + 1] = found[i]
  end
  return list, lanes
end

-- read fills in counts and weights.
local function read(ctx, list, lanes)
  local fields = {}
  for i = 1, #list do fields[i] = list[i].name end
  for i = 1, #lanes do fields[#fields + 1] = lanes[i].name end
  local v = redis.call('HMGET', keys.shares(ctx.r), unpack(fields))
  for i = 1, #lanes do lanes[i].count = tonumber(v[#list + i] or '0') or 0 end
  for i = 1, #list do
    local count, weight = string.match(v[i] or '', '^(%d+) ?(%d*)$')
    list[i].set = weight or ''
    list[i].weight = tonumber(weight or '') or 1
    list[i].count = math.max(tonumber(count or '0'), lanes[list[i].lane].count)
  end
end

local function best(g) return g.heads[g.at] and g.heads[g.at].score end

-- next takes the head that comes next: of the lane with the best head the namespace that had least.
local function following(lanes)
  local lane_, least = nil, nil
  for i = 1, #lanes do
    for n = 1, #lanes[i].groups do
      local score = best(lanes[i].groups[n])
      if score and (not least or score < least) then lane_, least = lanes[i], score end
    end
  end
  if not lane_ then return nil end
  local pick = nil
  for n = 1, #lane_.groups do
    local g = lane_.groups[n]
    if best(g) and (not pick or g.count < pick.count or g.count == pick.count and best(g) < best(pick)) then pick = g end
  end
  local h = pick.heads[pick.at]
  pick.at, h.share, h.lane = pick.at + 1, pick, lane_
  h.start = pick.count
  pick.count = pick.count + math.floor(unit / pick.weight)
  return h
end

-- order returns the first heads, by shares if more than one namespace of a lane has some. found is sorted by score.
function share.order(ctx, found, routes, most)
  local list = redis.call('HMGET', keys.routes(ctx.r), unpack(routes))
  local rows = {}
  for i = 1, #routes do rows[routes[i]] = list[i] or '' end
  local all, lanes = groups(found, rows)
  if #all == #lanes then return found end
  read(ctx, all, lanes)
  local out = {}
  for i = 1, math.min(#found, most) do out[i] = following(lanes) end
  return out
end

-- charge books what was handed out. Heads that were passed over cost nothing.
function share.charge(ctx, claims)
  local pairs_, given, lanes = {}, {}, {}
  for i = 1, #claims do
    local h = claims[i]
    if h.share then
      given[h.share] = (given[h.share] or 0) + 1
      h.lane.count = math.max(h.lane.count, h.start)
      lanes[h.lane] = true
    end
  end
  for g, n in pairs(given) do
    local refused = g.at - 1 - n
    pairs_[#pairs_ + 1] = g.name
    pairs_[#pairs_ + 1] = reply.int(g.count - refused * math.floor(unit / g.weight)) .. (g.set ~= '' and ' ' .. g.set or '')
  end
  for l in pairs(lanes) do
    pairs_[#pairs_ + 1] = l.name
    pairs_[#pairs_ + 1] = reply.int(l.count)
  end
  if #pairs_ > 0 then redis.call('HSET', keys.shares(ctx.r), unpack(pairs_)) end
end
