-- audit_root: whether the root tells of its partition what there is, and whether the keys that there is one of can be
-- used.
local audit_root = {}

audit_root.looks = {}

-- types: the keys that there is one of are of the types they should have. One that is not is set aside, and an empty
-- one is filled again.
local types = { hash = { 'routes', 'routeids', 'routeuse', 'lanes', 'closings', 'attached', 'shares', 'weights', 'work',
  'kids', 'makers' },
  set = { 'ready', 'gready', 'digests' }, stream = { 'feed', 'outbox', 'trail' },
  zset = { 'delayed', 'alarms', 'parked', 'done', 'pending', 'sessions', 'routelog', 'workers', 'schedules', 'scnames',
    'blocked', 'flows', 'flowdue', 'backlog', 'paused', 'closed', 'unsuccessful', 'dsdue', 'versions' } }

function audit_root.looks.types(ctx)
  for want, names in pairs(types) do
    for i = 1, #names do audit.typed(ctx, ctx.r .. ':' .. names[i], names[i], want) end
  end
  return 1, ''
end

-- quiet: nothing that is kept for hours comes due before, and the tick never looks far ahead. A repair removes it,
-- see audit.note.
local function quiet(ctx, told)
  local upto = audit.whole(told)
  if upto and (upto <= ctx.now or root.stepped(ctx)) then return end -- the next tick says it anew
  local first = ctx.now + root.span + root.step
  for i = 1, #timers.all do
    local timer = timers.all[i]
    first = math.min(first, timer.quiet and timers.head(ctx, timer) or first)
  end
  if not upto or upto > first then
    audit.note(ctx, 'flag', 'root', 'quiet', told .. ', something is due at ' .. reply.int(first))
  end
end

-- attached: whether creations look at what is attached to scopes. A level is never too high.
local function attached(ctx, gates)
  local level = 0
  local scopes = redis.call('HKEYS', keys.attached(ctx.r))
  for i = 1, #scopes do level = math.max(level, string.byte(scopes[i], 1) == 116 and 3 or 2) end
  if level > (args.int(gates or '0', 0, 3) or 0) and
      audit.note(ctx, 'flag', 'root', 'gates', (gates or '') .. ', there are some of level ' .. reply.int(level)) then
    redis.call('HSET', ctx.r, 'gates', reply.int(level))
  end
end

-- root: what is kept in the root for speed.
function audit_root.looks.root(ctx)
  local r, most, special = ctx.r, 0, false
  local h = redis.call('HMGET', r, 'table', 'routes', 'ring', 'lanes', 'gates', 'quiet', 'mixed', 'told')
  local newest = redis.call('ZRANGE', keys.route_log(r), -1, -1, 'WITHSCORES')
  local version = newest[2] and audit.score(newest[2]) or 0
  -- Versions are times; one far ahead is a misplaced entry and no reason to raise the table's.
  if version > (audit.whole(h[1] or '0') or 0) and version <= ctx.now + 60000 and
      audit.note(ctx, 'flag', 'root', 'table', (h[1] or '') .. ', the newest route is of ' .. reply.int(version)) then
    redis.call('HSET', r, 'table', reply.int(version))
  end
  local ids = redis.call('ZRANGE', keys.route_log(r), '0', '-1')
  route.load(ctx, ids)
  local first, mixed = nil, false
  for i = 1, #ids do
    if route.read(ctx, ids[i]) ~= '' then
      most = math.max(most, audit.whole(ids[i]) or 0)
      first = first or route.lane(ctx, ids[i])
      mixed = mixed or route.lane(ctx, ids[i]) ~= first
    end
  end
  if mixed and not h[7] and audit.note(ctx, 'flag', 'root', 'mixed', 'there are several lanes') then
    redis.call('HSET', r, 'mixed', '1')
  end
  if most > (audit.whole(h[2] or '0') or 0) and
      audit.note(ctx, 'flag', 'root', 'routes', (h[2] or '') .. ', the newest route is ' .. reply.int(most)) then
    redis.call('HSET', r, 'routes', reply.int(most))
  end
  if h[3] and not audit.whole(h[3]) and audit.note(ctx, 'flag', 'root', 'ring', 'no time') then
    redis.call('HDEL', r, 'ring')
  end
  local told = redis.call('HVALS', keys.lanes(r))
  for i = 1, #told do special = special or string.sub(told[i], 1, 9) ~= 'active 0 ' end
  if special ~= (h[4] and true or false) and
      audit.note(ctx, 'flag', 'root', 'lanes', special and 'some are special' or 'none is special') then
    if special then redis.call('HSET', r, 'lanes', '1') else redis.call('HDEL', r, 'lanes') end
  end
  attached(ctx, h[5] or nil)
  if not h[5] and not h[8] and redis.call('XLEN', keys.outbox(r)) > 0 and
      audit.note(ctx, 'flag', 'root', 'told', 'the outbox has entries') then
    redis.call('HSET', r, 'told', '1')
  end
  if h[6] then quiet(ctx, h[6]) end
  return 7, ''
end

-- wake: somebody must be told to tick when the first thing is due, every root.span while anything waits for its time,
-- and within a second while something waits for the tick alone.
function audit_root.looks.wake(ctx)
  local r, first = ctx.r, nil
  local soon = redis.call('EXISTS', keys.ready(r), keys.gready(r)) > 0 or redis.call('XLEN', keys.outbox(r)) > 0
  for i = 1, #timers.all do
    local timer = timers.all[i]
    local at = timers.head(ctx, timer)
    if at then
      at = timer.quiet and math.max(at, ctx.now + 1000) or math.min(at, ctx.now + root.span)
      first = math.min(first or at, at)
    end
  end
  if soon then first = math.min(first or ctx.now + 1000, ctx.now + 1000) end
  if not first or ctx.wake and ctx.wake <= math.max(first, ctx.now) then return 1, '' end
  local told = ctx.wake and reply.int(ctx.wake) or 'never'
  if audit.note(ctx, 'flag', 'root', 'wake', told .. ', something is due at ' .. reply.int(first)) then
    root.need(ctx, first)
  end
  return 1, ''
end
