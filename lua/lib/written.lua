-- written: streams that are written from outside, with the Durable Streams protocol. A stream is no execution: nobody
-- claims it, and nothing of it is waited for. Its id follows from its namespace and name; those whose names have the
-- same first segment are in one partition, so that a fork and its source change in one call. Positions count bytes,
-- or messages of JSON: a payload is opaque here, and the caller says how many units it has. Fields of the record:
--   nm namespace/name  mt made at (ms)  md media type   e its end, a position   h forks above it
--   s the source of a fork, o where it begins there     a what was asked of its creation
--   tt TTL, s: it expires so long after it was read or written last   xa expires at, ms   du expires at, either way
--   z closed: by which producer, epoch and sequence, - by none        sq the last Stream-Seq
--   rc the last calls that appended   g deleted at, while it has forks
-- A set has the forks of a stream. The log has an entry an append, <end>-0, with its units and its payload. The entries
-- in front of the origin of a fork are those of its source. What has forks is kept for them when it is deleted or
-- expires; the last fork takes it along.
local written = { deep = 32, producers = 10000, calls = 8 } -- forks above each other; of a stream; kept

local names = { 'nm', 'mt', 'md', 'e', 'h', 's', 'o', 'a', 'tt', 'xa', 'du', 'z', 'sq', 'rc', 'g' }

-- read returns the record of a stream, numbers as such; nil when there is none.
function written.read(ctx, id)
  local v = redis.call('HMGET', keys.written(ctx.r, id), unpack(names))
  if not v[1] then return nil end
  local c = {}
  for i = 1, #names do c[names[i]] = v[i] or nil end
  c.id, c.e, c.o, c.h = id, tonumber(c.e or '0'), tonumber(c.o or '0'), tonumber(c.h or '0')
  return c
end

-- forked tells whether a stream has forks.
function written.forked(ctx, id) return redis.call('EXISTS', keys.forks(ctx.r, id)) == 1 end

-- state is live, gone (it is kept for its forks) or none. What has expired is over before the tick removes it.
function written.state(ctx, c)
  if not c then return 'none' end
  if c.g then return 'gone' end
  if not c.du or tonumber(c.du) > ctx.now then return 'live' end
  return written.forked(ctx, c.id) and 'gone' or 'none'
end

-- find returns the record of a stream that lives, or nil and why there is none.
function written.find(ctx, id)
  local c = written.read(ctx, id)
  local state = written.state(ctx, c)
  if state == 'live' then return c end
  return nil, reply.err(state == 'gone' and 'stream_gone' or 'stream_not_found', id)
end

-- touch begins the TTL of a stream anew. The timer finds out when it is due.
function written.touch(ctx, c)
  if not c.tt then return end
  c.du = reply.int(ctx.now + tonumber(c.tt) * 1000)
  redis.call('HSET', keys.written(ctx.r, c.id), 'du', c.du)
end

-- append puts a payload at the end of the log.
function written.append(ctx, id, c, units, payload)
  if units == 0 then return end
  c.e = c.e + units
  redis.call('XADD', keys.written_log(ctx.r, id), reply.int(c.e) .. '-0', 'u', reply.int(units), 'p', payload)
end

-- tell wakes who reads a stream live.
function written.tell(ctx, id) publish.to(keys.written_news(ctx.r, id), 'n') end

-- drop deletes a stream, and what was kept for it alone. One with forks stays for them.
function written.drop(ctx, c)
  while c do
    local id = c.id
    redis.call('ZREM', keys.streams_due(ctx.r), id)
    written.tell(ctx, id)
    if written.forked(ctx, id) then
      redis.call('HSET', keys.written(ctx.r, id), 'g', ctx.t)
      redis.call('UNLINK', keys.producers(ctx.r, id))
      return
    end
    redis.call('UNLINK', keys.written(ctx.r, id), keys.written_log(ctx.r, id), keys.producers(ctx.r, id))
    local source = c.s
    if not source then return end
    redis.call('SREM', keys.forks(ctx.r, source), id)
    c = written.read(ctx, source)
    if c and (not c.g or written.forked(ctx, source)) then return end
  end
end

-- owners are the streams whose logs have what lies behind a position of a stream, the newest first, each with where its
-- part ends. nil when one is missing.
function written.owners(ctx, id, c, after)
  local list, upto = {}, c.e
  while true do
    list[#list + 1] = { id = id, upto = upto }
    if after >= c.o or not c.s then return list end
    upto, id = math.min(upto, c.o), c.s
    c = written.read(ctx, id)
    if not c then return nil end
  end
end

-- page reads entries of one log behind a position up to where its part ends, until there are so many bytes. It adds
-- end, units, and the payload of each to out, and returns how many bytes there are then.
function written.page(ctx, owner, after, out, bytes, most)
  local key, count = keys.written_log(ctx.r, owner.id), 2
  while after < owner.upto and bytes < most and #out < 3000 do
    local list = redis.call('XRANGE', key, '(' .. reply.int(after) .. '-0', '+', 'COUNT', reply.int(count))
    if #list == 0 then return bytes end
    local before = bytes
    for i = 1, #list do
      local stop = string.match(list[i][1], '^%d+')
      local n, payload = #out, list[i][2][4]
      out[n + 1], out[n + 2], out[n + 3] = stop, list[i][2][2], payload
      after, bytes = tonumber(stop), bytes + #payload
      if after >= owner.upto or bytes >= most then return bytes end
    end
    local each = math.max(1, math.floor((bytes - before) / #list))
    count = math.max(1, math.min(16, math.floor((most - bytes) / each))) -- any of them may have 1 MiB
  end
  return bytes
end

-- entries reads what lies behind a position of a stream: end, units and payload of each entry, of which the first may
-- begin before it and the last of each owner end behind its part. nil when a source is missing.
function written.entries(ctx, id, c, after, most)
  local owners, out, bytes = written.owners(ctx, id, c, after), {}, 0
  if not owners then return nil end
  for i = #owners, 1, -1 do
    local first = #out
    if bytes >= most then break end
    bytes = written.page(ctx, owners[i], after, out, bytes, most)
    local last = #out
    if last > first then after = tonumber(out[last - 2]) end
    if after < owners[i].upto then break end
    if last > first and after > owners[i].upto then -- less of the last one
      out[last - 1] = out[last - 1] .. ' ' .. reply.int(after - owners[i].upto)
      after = owners[i].upto
    end
  end
  return out
end

-- about is what answers say of a stream: media type, made at, end, closed, TTL and expiry.
function written.about(c)
  return c.md, c.mt, reply.int(c.e), c.z and '1' or '0', c.tt or '', c.xa or ''
end
