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

-- ahead tells whether an entry comes before another.
local function ahead(a, b, newest)
  local x, y = tonumber(a.score), tonumber(b.score)
  if x ~= y then return newest == (x > y) end
  return a.member ~= b.member and newest == listing.after(a.member, b.member)
end

-- read reads the next entries of a set of which there may be more: s.at is where the next one is, s.left how many.
local function read(s, newest, count)
  count = math.min(count, s.left)
  local first = newest and s.at - count + 1 or s.at
  local flat = redis.call('ZRANGE', s.key, reply.int(first), reply.int(first + count - 1), 'WITHSCORES')
  local got = #flat / 2
  s.buffer, s.next = {}, 1
  for i = 1, got do
    local from = newest and got - i or i - 1
    s.buffer[i] = { member = flat[2 * from + 1], score = reply.int(args.score(flat[2 * from + 2])) }
  end
  s.at, s.left = newest and s.at - got or s.at + got, got == count and s.left - got or 0
end

-- insert puts a set among others, of which the one whose next entry comes first is the last.
local function insert(sources, s, newest)
  local low, high = 1, #sources + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = sources[middle]
    if ahead(s.buffer[s.next], other.buffer[other.next], newest) then low = middle + 1 else high = middle end
  end
  for i = #sources, low, -1 do sources[i + 1] = sources[i] end
  sources[low] = s
end

-- merged is page for several sets in the order of all of them together. Of no more sets than it returns entries can
-- any be among these: those whose first entries come first.
function listing.merged(sets, cursor, newest, limit)
  if #sets == 1 then return listing.page(sets[1], cursor, newest, limit) end
  local sources, size, more = {}, 0, false
  for i = 1, #sets do
    local n = redis.call('ZCARD', sets[i])
    local passed = n > 0 and cursor and listing.rank(sets[i], cursor, newest) or newest and n or 0
    local s = { key = sets[i], at = newest and passed - 1 or passed, left = newest and passed or n - passed }
    size = size + n
    if s.left > 0 then
      read(s, newest, 1)
      if s.buffer[1] then sources[#sources + 1] = s end
    end
  end
  table.sort(sources, function(a, b) return ahead(b.buffer[1], a.buffer[1], newest) end)
  local extra = #sources - limit
  if extra > 0 then
    more = true
    for i = 1, limit do sources[i] = sources[i + extra] end
    for i = #sources, limit + 1, -1 do sources[i] = nil end
  end
  local chunk, out = 1 + math.floor(2 * limit / math.max(1, #sources)), {}
  while #out < limit and #sources > 0 do
    local s = sources[#sources]
    sources[#sources] = nil
    out[#out + 1], s.next = s.buffer[s.next], s.next + 1
    if s.next > #s.buffer and s.left > 0 then read(s, newest, chunk) end
    if s.next <= #s.buffer then insert(sources, s, newest) end
  end
  return out, more or #sources > 0, size
end

-- routes appends the rows of routes to an answer.
function listing.routes(ctx, out, routes)
  local rows, list = #routes > 0 and redis.call('HMGET', keys.routes(ctx.r), unpack(routes)) or {}, {}
  for i = 1, #routes do list[2 * i - 1], list[2 * i] = routes[i], rows[i] or '' end
  return reply.add(out, list, 2)
end
