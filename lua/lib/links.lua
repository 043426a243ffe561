-- links: the one string that holds what a member of a flow depends on and who depends on it, and the only file that
-- knows its layout. Its Go twin is internal/record; a test holds the two together. Read once a call, and written
-- once, when the call ends:
--   <group (group.text) or -> US <how many depend on it>[o<how many of them are o>] {LF
--   <upstream><mark>,<attempt>,<input>} RS {<d, o or w><dependant>}
-- A dependant is d one that depends on the member, o one that does and stands aside (group.aside), or w a parent that
-- waits for it. Up to links.near upstreams, and up to as many dependants, are in the string. The edges of more
-- upstreams are a hash of their own (keys.incoming), and more dependants a list (keys.outgoing). A member that
-- depends on nobody, and nobody on it, has no links.
local links = {}

links.near = 16

local none, empty = { out = 0, aside = 0, ins = '', outs = '' }, '-\0310\30'

-- decode reads links into a table: group, out how many depend on it, and ins and outs as they are stored. A text that
-- is nothing of the kind becomes the links of nobody, and damaged says so.
function links.decode(text)
  local words, out, aside, at = string.match(text, '^([^\31]*)\31(%d+)o?(%d*)()')
  local stop = out and string.find(text, '\30', at, true)
  local g = words and words ~= '-' and group.parse(words) or nil
  if not stop or not g and words ~= '-' then return { out = 0, aside = 0, ins = '', outs = '', damaged = true } end
  out, aside = tonumber(out), tonumber(aside) or 0
  local l = { group = g, out = out, aside = aside, ins = string.sub(text, at, stop - 1),
    outs = string.sub(text, stop + 1) }
  if #l.outs ~= (out > links.near and 0 or 37 * out) or aside > out then l.damaged = true end
  return l
end

function links.encode(l)
  local aside = l.aside > 0 and 'o' .. reply.int(l.aside) or ''
  return (l.group and group.text(l.group) or '-') .. '\31' .. reply.int(l.out) .. aside .. l.ins .. '\30' .. l.outs
end

-- load reads with one command what the call does not have yet: the links of members and, with cores, their records.
function links.load(ctx, ids, cores)
  if not ctx.cache.links then ctx.cache.links = {} end
  local all, texts, list, into, of = ctx.cache.links, ctx.cache.texts, {}, {}, {}
  local n = 0
  for i = 1, #ids do
    local id = ids[i]
    if all[id] == nil then
      n = n + 1
      list[n], into[n], of[n] = keys.links(ctx.r, id), all, id
      all[id] = false
    end
    if cores and texts[id] == nil then
      n = n + 1
      list[n], into[n], of[n] = keys.core(ctx.r, id), texts, id
      texts[id] = false
    end
  end
  for first = 1, n, 1000 do
    local last = math.min(first + 999, n)
    local values = redis.call('MGET', unpack(list, first, last)) -- a key of another type reads as none
    for i = first, last do into[i][of[i]] = values[i - first + 1] end
  end
end

-- stored returns what the call has of the links of a member, as text or decoded; false if it has none.
local function stored(ctx, id)
  if not ctx.cache.links or ctx.cache.links[id] == nil then links.load(ctx, { id }) end
  return ctx.cache.links[id]
end

-- of returns the links of a member as the call has left them, decoded when they are first asked for. Who changes its
-- group says so with touch.
function links.of(ctx, id)
  local l = stored(ctx, id)
  if not l then return none end
  if l.out then return l end
  l = links.decode(l)
  ctx.cache.links[id] = l
  return l
end

-- group is the group of a member, nil if it depends on nobody.
function links.group(ctx, id) return links.of(ctx, id).group end

-- touch plans to write what changed.
function links.touch(ctx, id)
  if not ctx.cache.linked then ctx.cache.linked = {} end
  ctx.cache.linked[id] = true
end

-- own is what a call may change.
local function own(ctx, id)
  local l = links.of(ctx, id)
  if l == none then
    l = { out = 0, aside = 0, ins = '', outs = '' }
    ctx.cache.links[id] = l
  end
  links.touch(ctx, id)
  return l
end

local function far(l) return l.group and l.group.upstreams > links.near end

-- add makes the links of a new member: its group, nil if it depends on nobody, and the edges as upstream and
-- "mark,attempt,input".
function links.add(ctx, id, g, edges)
  if not ctx.cache.links then ctx.cache.links = {} end
  local l = { group = g, out = 0, aside = 0, ins = '', outs = '' }
  ctx.cache.links[id] = l
  if not g then return end
  links.touch(ctx, id)
  if far(l) then
    for first = 1, #edges, 1000 do
      redis.call('HSET', keys.incoming(ctx.r, id), unpack(edges, first, math.min(first + 999, #edges)))
    end
    return
  end
  local out = {}
  for i = 1, #edges, 2 do
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = '\n', edges[i], edges[i + 1]
  end
  l.ins = table.concat(out)
end

-- expect reads with one command edges that are in a hash, and that will be asked for.
function links.expect(ctx, id, ups)
  local l, ask = links.of(ctx, id), {}
  if not l.far then l.far = {} end
  for i = 1, #ups do
    if l.far[ups[i]] == nil then
      ask[#ask + 1] = ups[i]
      l.far[ups[i]] = false
    end
  end
  if #ask == 0 then return end
  local values = redis.call('HMGET', keys.incoming(ctx.r, id), unpack(ask))
  for i = 1, #ask do l.far[ask[i]] = values[i] end
end

-- wide tells whether the edges into a member are in a hash.
function links.wide(ctx, id) return far(links.of(ctx, id)) end

-- edge reads what a member was told of an upstream: mark, attempt, input; nil when it does not depend on it.
function links.edge(ctx, id, up)
  local l = links.of(ctx, id)
  if far(l) then
    links.expect(ctx, id, { up })
    return group.record(l.far[up] or '')
  end
  local at = string.find(l.ins, '\n' .. up, 1, true)
  if not at then return nil end
  return string.match(l.ins, '^([.~sfceknl]),(%d*),([^\n]*)', at + 37)
end

-- tell changes what a member was told of an upstream that it depends on.
function links.tell(ctx, id, up, text)
  local l = links.of(ctx, id)
  local at = not far(l) and string.find(l.ins, '\n' .. up, 1, true)
  if not at and not far(l) then return end
  links.touch(ctx, id)
  if not at then
    if not l.far then l.far = {} end
    if not l.told then l.told = {} end
    l.far[up], l.told[up] = text, true
    return
  end
  local stop = string.find(l.ins, '\n', at + 1, true) or #l.ins + 1
  l.ins = string.sub(l.ins, 1, at + 36) .. text .. string.sub(l.ins, stop)
end

-- edges lists all edges into a member: upstream and "mark,attempt,input".
function links.edges(ctx, id)
  local l, out = links.of(ctx, id), {}
  if far(l) then
    out = redis.call('HGETALL', keys.incoming(ctx.r, id))
    for i = 1, l.told and #out or 0, 2 do
      if l.told[out[i]] then out[i + 1] = l.far[out[i]] end
    end
    return out
  end
  for up, text in string.gmatch(l.ins, '\n([%x-]+)([.~sfceknl],[^\n]*)') do
    out[#out + 1], out[#out + 2] = up, text
  end
  return out
end

-- leads is how many depend on a member, and how many of them do not stand aside.
function links.leads(ctx, id)
  local l = links.of(ctx, id)
  return l.out, l.out - l.aside
end

-- dependants lists up to count of them, from position from on, 0 being the first: d, o or w, and who.
function links.dependants(ctx, id, from, count)
  local l, out = links.of(ctx, id), {}
  if l.out > links.near then
    return redis.call('LRANGE', keys.outgoing(ctx.r, id), reply.int(from), reply.int(from + count - 1))
  end
  for i = from, math.min(l.out, from + count) - 1 do out[#out + 1] = string.sub(l.outs, 37 * i + 1, 37 * i + 37) end
  return out
end

-- led is the text of links with more dependants, made without a table for them; nil if they are too many for the
-- text, or some stand aside.
local function led(text, more)
  local before, out, at = string.match(text, '^([^\31]*\31)(%d+)()')
  local stop = out and string.byte(text, at) ~= 111 and string.find(text, '\30', at, true) -- o
  local n = stop and (#text - stop + #more) / 37
  if not n or n > links.near or 37 * tonumber(out) ~= #text - stop then return nil end
  return before .. reply.int(n) .. string.sub(text, at) .. more, out == '0'
end

-- lead adds dependants, 37 bytes each, aside of them o, and tells whether the first one is among them that does not
-- stand aside.
function links.lead(ctx, id, more, aside)
  local text = stored(ctx, id) or empty
  if not text.out and aside == 0 then -- nobody has looked at it
    local longer, first = led(text, more)
    if longer then
      ctx.cache.links[id] = longer
      links.touch(ctx, id)
      return first
    end
  end
  local l = own(ctx, id)
  local first, near = l.out == l.aside and aside < #more / 37, l.out <= links.near
  local all = near and links.dependants(ctx, id, 0, l.out) or {}
  l.out, l.aside = l.out + #more / 37, l.aside + aside
  if l.out <= links.near then
    l.outs = l.outs .. more
    return first
  end
  for i = 1, #more, 37 do all[#all + 1] = string.sub(more, i, i + 36) end
  l.outs = ''
  for i = 1, #all, 1000 do redis.call('RPUSH', keys.outgoing(ctx.r, id), unpack(all, i, math.min(i + 999, #all))) end
  return first
end

-- forget removes everything.
function links.forget(ctx, id)
  redis.call('UNLINK', keys.links(ctx.r, id), keys.outgoing(ctx.r, id), keys.incoming(ctx.r, id))
  if ctx.cache.links then ctx.cache.links[id] = false end
  if ctx.cache.linked then ctx.cache.linked[id] = nil end
end

-- flush hands what changed to the write at the end of the call.
function links.flush(ctx)
  for id in pairs(ctx.cache.linked) do
    local l = ctx.cache.links[id]
    record.write(ctx, keys.links(ctx.r, id), l.out and links.encode(l) or l)
    if l.told then
      local sets = {}
      for up in pairs(l.told) do sets[#sets + 1], sets[#sets + 2] = up, l.far[up] end
      for first = 1, #sets, 1000 do
        redis.call('HSET', keys.incoming(ctx.r, id), unpack(sets, first, math.min(first + 999, #sets)))
      end
      l.told = nil
    end
  end
  ctx.cache.linked = nil
end
