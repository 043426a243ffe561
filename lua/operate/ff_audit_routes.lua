-- ff_audit_routes: compares how many executions the routes count with how many there are. Counting takes a while, so
-- there are two kinds of calls: the first, without routes, answer the counts, about 1,000 a call and in no order, and
-- with how many purges and recounts they go along; the cursor is '' for the first page, and in the answer when there
-- is no more. The number of a class followed by nine zeros counts its other routes. The second brings, for a route,
-- the count of then, and how many executions were seen since: at least low of those counted then (created by then),
-- at most high in all. A purge may have removed what was seen, so a count is raised to what is certain and lowered by
-- what is certain: it never falls below what there is, and a row never goes while it is used. After another recount
-- nothing is compared.
-- Flags:   allow-oom
-- Go:      Engine.AuditRoutes
-- Args:    protocol repair:flag purged:n recounts:n cursor:scan? routes:rows(0..1024) {route:n(1..) stored:int low:n
--          high:n}
-- Replies: OK now:instant purged:n recounts:n compared:flag cursor:text routes:rows {route:n(1..) uses:int} findings
-- Errors:  @root invalid_input
local ff_recount = {}

-- count reads a count, which may be below zero where something went wrong; nil when it is none.
function ff_recount.count(text)
  local n = text and args.int((string.gsub(text, '^%-', '')), 0, 1000000000)
  return n and (string.byte(text) == 45 and -n or n)
end

-- unused tells whether a count of nothing is as it should be: of a class that other routes keep, or of others that
-- are not there.
function ff_recount.unused(ctx, id) return id == route.others(route.class(id)) or route.kept(ctx, id) end

-- uses lists some of the routes that have a row, and with the first page those that have but a count, if there are
-- more counts than rows.
function ff_recount.uses(ctx, cursor)
  local page, list, ids = redis.call('HSCAN', keys.routes(ctx.r), cursor == '' and '0' or cursor, 'COUNT', '1000'), {},
    {}
  for i = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][i]
    if route.plain(page[2][i]) then ids[#ids + 1] = route.others(page[2][i]) end
  end
  if cursor == '' and redis.call('HLEN', keys.route_use(ctx.r)) > redis.call('HLEN', keys.routes(ctx.r)) then
    local all = redis.call('HKEYS', keys.route_use(ctx.r))
    for i = 1, #all do
      local known = redis.call('HEXISTS', keys.routes(ctx.r), all[i]) == 1
        or all[i] == route.others(route.class(all[i]))
      if #ids < 4000 and not known then ids[#ids + 1] = all[i] end
    end
  end
  for first = 1, #ids, 500 do
    local counts = redis.call('HMGET', keys.route_use(ctx.r), unpack(ids, first, math.min(first + 499, #ids)))
    for i = 1, #counts do
      local id, n = ids[first + i - 1], ff_recount.count(counts[i] or nil) or 0
      if counts[i] or not ff_recount.unused(ctx, id) then list[#list + 1], list[#list + 2] = id, reply.int(n) end
    end
  end
  return list, page[1] ~= '0' and page[1] or ''
end

-- change is by how much a count is certainly wrong.
function ff_recount.change(item, gone)
  local change = 0
  if item.low > item.stored then change = item.low - item.stored end
  if item.stored > item.high + gone then change = item.high + gone - item.stored end
  return change
end

-- apply writes the new count. Who came to nothing is not used by anybody.
function ff_recount.apply(ctx, item, change, gone)
  local id = reply.int(item.route)
  local now = ff_recount.count(redis.call('HGET', keys.route_use(ctx.r), id) or nil) or 0
  local unused = now + change <= 0 and (change < 0 or gone == 0 and item.high + item.low == 0)
  if change == 0 and not unused then return false end
  local detail = reply.int(item.stored) .. ' counted, ' .. reply.int(item.high) .. ' found'
  if not audit.note(ctx, unused and 'phantom' or 'count', unused and 'routes' or 'routeuse', id, detail) then
    return false
  end
  if change ~= 0 then redis.call('HSET', keys.route_use(ctx.r), id, reply.int(now + change)) end
  if unused then indexes.forget(ctx, id) end
  return true
end

local function ff_audit_routes(ctx, q)
  audit.begin(ctx, q.repair)
  local purged, recounts, list = q.purged, q.recounts, q.routes
  local h = redis.call('HMGET', ctx.r, 'purged', 'recounts')
  local gone = (audit.whole(h[1] or nil) or 0) - purged
  local same = (audit.whole(h[2] or nil) or 0) == recounts and gone >= 0
  local changed = false
  for n = 1, same and #list or 0 do
    changed = ff_recount.apply(ctx, list[n], ff_recount.change(list[n], gone), gone) or changed
  end
  if changed then h[2] = reply.int(redis.call('HINCRBY', ctx.r, 'recounts', 1)) end
  local uses, next_page = {}, ''
  if #list == 0 then uses, next_page = ff_recount.uses(ctx, q.cursor) end
  local out = { 1, 'OK', ctx.t, reply.int(purged + gone), h[2] or '0', same and '1' or '0', next_page,
    reply.int(#uses / 2) }
  for i = 1, #uses do out[#out + 1] = uses[i] end
  return audit.finish(ctx, out)
end
