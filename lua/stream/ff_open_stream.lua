-- ff_open_stream: makes a stream that is written from outside (lua/lib/written.lua), or finds it as it was asked for
-- before. It expires some time after it was read or written last (ttl, s), or at an instant. With a source it is a fork
-- of that: it begins at a position of the source ('' its end) and sub units behind it, which must be in the next entry
-- there, and takes over expiry and, without a payload, media type where it says none. A payload is its first entry.
-- Flags:   none
-- Go:      Engine.OpenStream
-- Args:    protocol id:uuid name:line(1..1024) media:line(255) ttl:n(0..315360000)? expires:n? source:bytes(36)
--          at:n? sub:n closed:flag units:n(0..1048576) payload:bytes(1114112)
-- Replies: OK media:text made:instant end:n closed:flag ttl:n? expires:n?; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input stream_not_found stream_conflict
local ff_open = {}

-- asked is what a creation says that an equal one must say, too.
function ff_open.asked(q)
  local function text(n) return n and reply.int(n) or '' end
  return table.concat({ text(q.ttl), text(q.expires), q.source, text(q.at), q.source ~= '' and text(q.sub) or '' }, ' ')
end

-- same tells what is there, if it was asked for in the same way.
function ff_open.same(c, q)
  if c.md ~= q.media and not (q.media == '' and c.s) then return reply.err('stream_conflict', 'media') end
  if c.a ~= ff_open.asked(q) then return reply.err('stream_conflict', 'settings') end
  if q.closed ~= (c.z and true or false) then return reply.err('stream_conflict', 'closed') end
  return reply.already(written.about(c))
end

-- begin puts into a record where a fork begins, and what it takes over; or returns what is wrong with that.
function ff_open.begin(ctx, q, c)
  local s = written.read(ctx, q.source)
  local state = q.source == q.id and 'none' or written.state(ctx, s)
  if state == 'none' then return reply.err('stream_not_found', 'source') end
  if state == 'gone' then return reply.err('stream_conflict', 'source') end
  if q.media ~= s.md and (q.media ~= '' or q.units > 0) then return reply.err('stream_conflict', 'media') end
  if s.h + 1 > written.deep then return reply.err('invalid_input', 'source: forks of forks: at most 32') end
  local at = q.at or s.e
  if at > s.e then return reply.err('invalid_input', 'at: behind the end of the source') end
  if q.sub > 0 then
    local list = written.entries(ctx, q.source, s, at, 1)
    local upto = list and list[1] and math.min(tonumber(list[1]), s.e) or at
    if list and list[2] then upto = upto - tonumber(string.match(list[2], ' (%d+)$') or '0') end
    if at + q.sub > upto then return reply.err('invalid_input', 'sub: behind the end of the next entry') end
    at = at + q.sub
  end
  c.md, c.s, c.o, c.e, c.h = s.md, q.source, at, at, s.h + 1
  if not q.ttl and not q.expires then c.tt, c.xa = s.tt, s.xa end
  return nil
end

local function ff_open_stream(ctx, q)
  local id = q.id
  if q.ttl and q.expires then return reply.err('invalid_input', 'expires: there is a ttl') end
  if q.source ~= '' and not args.uuid(q.source) then return reply.err('invalid_input', 'source: a uuid') end
  if q.source == '' and (q.at or q.sub > 0) then return reply.err('invalid_input', 'at: there is no source') end
  if q.source == '' and q.media == '' then return reply.err('invalid_input', 'media: 1..255 bytes') end
  if (q.units == 0) ~= (q.payload == '') then return reply.err('invalid_input', 'units: those of the payload') end
  local old = written.read(ctx, id)
  local state = written.state(ctx, old)
  if state == 'gone' then return reply.err('stream_conflict', 'gone') end
  if state == 'live' then return ff_open.same(old, q) end
  local c = { nm = q.name, mt = ctx.t, md = q.media, e = 0, o = 0, h = 0, a = ff_open.asked(q),
    tt = q.ttl and reply.int(q.ttl), xa = q.expires and reply.int(q.expires), z = q.closed and '-' or nil }
  local bad = q.source ~= '' and ff_open.begin(ctx, q, c)
  if bad then return bad end

  if old then written.drop(ctx, old) end
  if c.s then redis.call('SADD', keys.forks(ctx.r, c.s), id) end
  written.append(ctx, id, c, q.units, q.payload)
  local key = keys.written(ctx.r, id)
  redis.call('HSET', key, 'nm', c.nm, 'mt', c.mt, 'md', c.md, 'e', reply.int(c.e), 'a', c.a)
  if c.s then redis.call('HSET', key, 's', c.s, 'o', reply.int(c.o), 'h', reply.int(c.h)) end
  if c.z then redis.call('HSET', key, 'z', c.z) end
  if c.tt then redis.call('HSET', key, 'tt', c.tt) end
  if c.xa then redis.call('HSET', key, 'xa', c.xa) end
  c.du = c.tt and reply.int(ctx.now + tonumber(c.tt) * 1000) or c.xa
  if c.du then
    redis.call('HSET', key, 'du', c.du)
    timers.put(ctx, timers.streams, tonumber(c.du), id)
  end
  written.tell(ctx, id)
  return reply.ok(written.about(c))
end
