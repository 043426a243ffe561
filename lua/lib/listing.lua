-- listing: reading a sorted set page by page. A cursor is the score and the member of the last entry that was read;
-- the next page begins behind that place whether or not the entry is still there, so what stays where it is comes
-- once, whatever comes and goes around it.
local listing = {}

-- after tells whether a comes after b, byte by byte as the server orders equal scores (Lua's own < follows the locale).
function listing.after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- cursor reads a score and a member: nil at the beginning, false when malformed.
function listing.cursor(score, member)
  if not score or not member or #member > 128 then return false end
  if score == '' and member == '' then return nil end
  local digits = string.byte(score, 1) == 45 and string.sub(score, 2) or score
  if member == '' or score == '-0' or not args.int(digits, 0, 9007199254740991) then return false end
  return { score = score, member = member }
end

-- rank is how many entries come before the cursor's place; with the entry itself, unless before is set.
function listing.rank(key, cursor, before)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. cursor.score)
  local high = low + redis.call('ZCOUNT', key, cursor.score, cursor.score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', key, reply.int(middle), reply.int(middle))[1]
    if listing.after(member, cursor.member) or before and member == cursor.member then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- page returns up to limit members with their scores as text, lowest score first or, with newest, highest first, and
-- whether there are more.
function listing.page(key, cursor, newest, limit)
  local size = redis.call('ZCARD', key)
  local first, last
  if newest then
    last = (cursor and listing.rank(key, cursor, true) or size) - 1
    first = math.max(0, last - limit + 1)
  else
    first = cursor and listing.rank(key, cursor) or 0
    last = math.min(size, first + limit) - 1
  end
  if last < first then return {}, false, size end
  local flat, out = redis.call('ZRANGE', key, reply.int(first), reply.int(last), 'WITHSCORES'), {}
  for i = 1, #flat, 2 do
    local entry = { member = flat[i], score = reply.int(args.score(flat[i + 1])) }
    out[newest and (#flat - i + 1) / 2 or (i + 1) / 2] = entry
  end
  if newest then return out, first > 0, size end
  return out, last < size - 1, size
end

-- routes appends the rows of routes to an answer.
function listing.routes(ctx, out, routes)
  local rows, list = #routes > 0 and redis.call('HMGET', keys.routes(ctx.r), unpack(routes)) or {}, {}
  for i = 1, #routes do list[2 * i - 1], list[2 * i] = routes[i], rows[i] or '' end
  return reply.add(out, list, 2)
end
