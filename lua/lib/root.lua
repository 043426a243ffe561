-- root: the entrance of every function that works on a partition. It checks the partition root and the caller's
-- protocol, reads the clock once, and hands out ctx, which is the request, and reaches the rest of the call's state:
--   r       the root key            now    server time, ms       t    the same as text
--   moves   what the call changes in indexes, headers of flows and the feed, until indexes.apply, flow.apply and feed.flush write it
--   cache   what the call has read, and what of it changed: records, waits and links are written when it ends
--   wake    when the tick is due, or nil
--   lanes   set when an operator said something about a lane
--   calm    set when there are neither lanes that an operator said something about, nor gates, nor a feed
--   gates   1 when a route has gates, 2 when something is attached to a scope, 3 when to a label; else false
--   spaces  set when there is, or was, work of several namespaces
--   mixed   set when there is, or was, work of several lanes; claims alone read it
--   index   what the catalogue keeps, as text (lib/catalogue.lua); nil in claims, which change nothing there
--   feed    what is recorded in the feed and until when, or false
--   note    who asks and why (lib/trail.lua), if that was said
-- A missing root is an error, never created on demand.
local root = {}

-- mismatch refuses a caller or a store of another protocol number than this library's, and tells the other number,
-- the caller's, and whose the other is; nil when all three agree.
function root.mismatch(stored, given)
  if given == '@PROTOCOL@' and stored == given then return nil end
  if not args.int(given, 1, 1000000) then return reply.err('invalid_input', 'protocol') end
  if stored ~= given then return reply.err('protocol_mismatch', stored, given, 'store') end
  return reply.err('protocol_mismatch', '@PROTOCOL@', given, 'library')
end

-- Claims ask for the route table's version at the same time, the tick for who ticks, whom to wake, and what is quiet.
function root.enter(k, argv, claims, tick)
  root.current = nil
  local said, note = trail.split(argv[1])
  local r, h = k[1], nil
  if tick then
    h = redis.call('HMGET', r, 'protocol', 'frozen', 'wake', 'lanes', 'feed', 'gates', 'ticked', 'spaces', 'owner',
      'ring', 'quiet', 'told', 'index')
  elseif claims then
    h = redis.call('HMGET', r, 'protocol', 'frozen', 'wake', 'lanes', 'feed', 'gates', 'ticked', 'spaces', 'table',
      'mixed')
  else
    h = redis.call('HMGET', r, 'protocol', 'frozen', 'wake', 'lanes', 'feed', 'gates', 'ticked', 'spaces', 'index')
  end
  if not h[1] then return nil, reply.err('partition_missing', r) end
  if h[1] ~= '@PROTOCOL@' or said ~= '@PROTOCOL@' then return nil, root.mismatch(h[1], said) end
  if h[2] then return nil, reply.err('partition_frozen', r) end
  local now = clock.now(r)
  local ctx = { r = r, now = now, t = reply.int(now), wake = h[3] and tonumber(h[3]), lanes = h[4], feed = h[5],
    gates = h[6], calm = not (h[4] or h[5] or h[6]), ticked = h[7], spaces = h[8], note = note,
    table = claims and tonumber(h[9] or '0'),
    -- Fields that most calls set are named, as a table that grows costs as much as a small command.
    moves = { used = nil, enqueued = nil, ended = nil, unheld = nil, dequeued = nil, counts = nil, purge = nil,
      purge_text = nil },
    cache = { texts = {}, spliced = nil, sessions = nil, rows = nil, route_of = nil, group = nil, unknown = nil,
      digests = nil } }
  root.current = ctx
  if claims then
    ctx.mixed = h[10]
  elseif tick then
    ctx.owner = h[9]
    ctx.ring = h[10]
    ctx.quiet = h[11] and tonumber(h[11])
    ctx.told = h[12]
    ctx.index = h[13]
  else
    ctx.index = h[9]
  end
  return ctx
end

-- owner is who ticks, or nil; read once, and only by those who need it.
function root.owner(ctx)
  if ctx.owner == nil then ctx.owner = redis.call('HGET', ctx.r, 'owner') end
  return ctx.owner or nil
end

-- version is the version of the route table.
function root.version(ctx)
  if not ctx.table then ctx.table = tonumber(redis.call('HGET', ctx.r, 'table') or '0') end
  return ctx.table
end

-- stepped tells that the server's clock stepped back since the last tick, whose time is the root's field ticked.
-- Steps of up to root.step ms are waited for.
root.step = 1000

function root.stepped(ctx) return ctx.ticked and (tonumber(ctx.ticked) or 0) > ctx.now + root.step end

-- overdue tells a caller that nobody ticks: the owner is 2 s late, or there is work for a tick and no owner. After
-- the clock stepped back the wake time is that of another clock, so a tick is wanted at once. A wake time within a
-- second needs no look: it is soon over.
function root.overdue(ctx)
  if not ctx.wake then return '0' end
  if ctx.now < ctx.wake then return ctx.wake > ctx.now + 1000 and root.stepped(ctx) and '1' or '0' end
  if ctx.now > ctx.wake + 2000 or not root.owner(ctx) then return '1' end
  return '0'
end

-- need lowers the wake time to due and wakes the tick's owner. While anything waits for its time, the tick looks
-- every root.span at the latest: then it is noticed that its owner died, though nothing is due for long.
function root.need(ctx, due)
  local wake = math.max(ctx.now, math.min(due, ctx.now + root.span)) -- what is overdue already makes no tick late
  if ctx.wake and ctx.wake <= wake then return end
  ctx.wake = wake
  redis.call('HSET', ctx.r, 'wake', reply.int(wake))
  if root.owner(ctx) then publish.to(keys.doorbell(ctx.r, ctx.owner), 't') end
end

-- What is kept for hours (ended executions, schedules, flows, registrations) need not be looked at with every tick:
-- the root's field quiet is until when nothing of it comes due, at most this many ms ahead. A function that files
-- something for sooner says so, and so does any that files something after the clock stepped back, since it may be
-- sooner than what another clock said.
root.span = 10000

function root.filed(ctx, due)
  if due < ctx.now + root.span + root.step or root.stepped(ctx) then
    ctx.quiet = nil
    redis.call('HDEL', ctx.r, 'quiet')
  end
end

-- leave ends every call: what it changed of executions is written. A function that refuses has changed nothing.
function root.leave(answer)
  local ctx = root.current
  root.current = nil
  if ctx and answer[1] == 1 then
    if ctx.cache.waited then wait_record.flush(ctx) end
    if ctx.cache.linked then links.flush(ctx) end
    if ctx.cache.dirty or ctx.cache.spliced or ctx.cache.written then record.flush(ctx) end
    if ctx.note and answer[2] == 'OK' then trail.add(ctx) end
  end
  return answer
end

-- run is a whole call of a function that needs nothing more of the root. decode gives its arguments their names, or
-- refuses them; without one it is given them as they are.
function root.run(f, k, argv, decode)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  if decode then
    argv, refused = decode(argv)
    if not argv then return refused end
  end
  return root.leave(f(ctx, argv))
end
