-- ff_audit_index: looks at one page of an index from its own side, and with heal 1 removes what no record names or
-- restores what the records tell. Indexes: delayed alarms parked blocked paused done pending sessions routelog workers schedules
-- scnames flows flowdue backlog closed q:<route> h:<session> open:<kid> fx:<flow> (entries by place, of which none hides what is behind
-- it), ready gready types routes routeids work closings attached shares (in no order), outbox (oldest first), and at
-- once s:<session> l:<session> w:<digest> sc:<schedule> wk:<instance> root wake. In a partition of budgets or quotas: budgets quotas bd:<budget>
-- qd:<quota>. The cursor is '' for the first page, and in the
-- answer when there is no more.
-- Flags:   allow-oom
-- Go:      Engine.AuditIndex
-- Args:    protocol heal index cursor limit
-- Replies: OK cursor checked findings {kind index member detail healed}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_index = {}

-- zsets are the sorted sets by name; families those with one set for each route, session or token key.
ff_index.zsets = { delayed = keys.delayed, alarms = keys.alarms, parked = keys.parked, done = keys.done, pending = keys.pending,
  sessions = keys.sessions, routelog = keys.route_log, workers = keys.workers, schedules = keys.schedules,
  scnames = keys.schedule_names, blocked = keys.blocked, flows = keys.flows, flowdue = keys.flow_due, backlog = keys.backlog,
  paused = keys.paused, closed = keys.closed, budgets = keys.budgets, quotas = keys.quotas }
ff_index.families = { q = keys.queue, h = keys.held, open = keys.open, fx = keys.members }

-- names tell whether the record of a member names the index. Those of executions get its core; others are for members that
-- are none.
ff_index.names, ff_index.others = {}, {}

function ff_index.names.delayed(_, c) return core.delayed(c) end
function ff_index.names.parked(_, c) return core.suspended(c) end
function ff_index.names.done(_, c) return core.terminal(c) end
function ff_index.names.paused(_, c) return core.paused(c) end
function ff_index.names.blocked(_, c) return core.blocked(c) end
function ff_index.names.fx(_, c, flow_id) return c.fl == flow_id end
function ff_index.names.alarms(ctx, c) return audit.alarm(ctx, c) and true end
function ff_index.names.q(_, c, route_id) return core.waiting(c) and c.r == route_id end
function ff_index.names.h(_, c, session_id)
  return c.s == 'A1' and c.ss == session_id or core.granted(c) and c.gs == session_id
end

function ff_index.others.pending(ctx, member)
  local w = waitpoint.read(ctx, string.sub(member, 1, 36), string.sub(member, 38))
  return w and w.state == 'p' and redis.call('EXISTS', keys.core(ctx.r, string.sub(member, 1, 36))) == 1
end

function ff_index.others.open(ctx, member, kid)
  local w = waitpoint.read(ctx, string.sub(member, 1, 36), string.sub(member, 38))
  return w and waitpoint.open(w) and w.kid == kid and redis.call('EXISTS', keys.core(ctx.r, string.sub(member, 1, 36))) == 1
end

function ff_index.others.sessions(ctx, member)
  return redis.call('EXISTS', keys.session(ctx.r, member), keys.held(ctx.r, member)) > 0
end

function ff_index.others.routelog(ctx, member) return redis.call('HEXISTS', keys.routes(ctx.r), member) == 1 end

function ff_index.others.workers(ctx, member, _, score)
  return audit.score(score) <= ctx.now or redis.call('EXISTS', keys.worker(ctx.r, member)) == 1
end

function ff_index.others.schedules(ctx, member) return redis.call('EXISTS', keys.schedule(ctx.r, member)) == 1 end

function ff_index.others.scnames(ctx, member) return redis.call('EXISTS', keys.schedule(ctx.r, member)) == 1 end

function ff_index.others.flows(ctx, member) return redis.call('HEXISTS', keys.flow(ctx.r, member), 'st') == 1 end

function ff_index.others.flowdue(ctx, member)
  local h = graph.head(ctx, member)
  return h and (h.st == 'F0' or h.en and graph.count(h, 'pu') >= graph.count(h, 'nn'))
end

function ff_index.others.backlog(ctx, member) return redis.call('HEXISTS', keys.work(ctx.r), member) == 1 end

function ff_index.others.closed(ctx, member) return gate.of(ctx, member) ~= '' end

function ff_index.others.budgets(ctx, member) return redis.call('EXISTS', keys.budget(ctx.r, member)) == 1 end

function ff_index.others.quotas(ctx, member) return redis.call('EXISTS', keys.quota(ctx.r, member)) == 1 end

-- position reads the score of a cursor, as servers write it.
function ff_index.position(text)
  local exponent = #text <= 32 and string.match(text, '^%-?%d+%.?%d*(.*)$')
  return exponent and (exponent == '' or string.find(exponent, '^e[%+%-]%d%d?$')) and text
end

-- cursor names an entry; one where nothing belongs stands for all that are as far out.
function ff_index.cursor(score, member)
  return (ff_index.position(score) or (string.byte(score) == 45 and '-' or '') .. '9007199254740992') .. ' ' .. member
end

-- seek finds where a page begins: behind the entry that ended the last one, also when that is gone or elsewhere now.
function ff_index.seek(key, cursor)
  if cursor == '' then return 0 end
  local score, member = string.match(cursor, '^(%S+) (.*)$')
  return listing.rank(key, { score = score, member = member })
end

-- page looks at entries of a sorted set by place.
function ff_index.page(ctx, q)
  if not audit.typed(ctx, q.key, q.index, 'zset') then return 0, '' end
  local first = ff_index.seek(q.key, q.cursor)
  local list, gone = redis.call('ZRANGE', q.key, first, first + q.limit - 1, 'WITHSCORES'), {}
  for i = 1, #list, 2 do
    local member, named = list[i], nil
    if ff_index.names[q.family] then
      local c = core.read(ctx, member)
      named = ff_index.names[q.family](ctx, c.s and c or { s = '' }, q.of)
    else
      named = ff_index.others[q.family](ctx, member, q.of, list[i + 1])
    end
    if not named and audit.note(ctx, 'phantom', q.index, member, 'at ' .. list[i + 1]) then gone[#gone + 1] = member end
  end
  if q.family == 'q' then
    for i = 1, #gone do home.dequeue(ctx, q.of, gone[i]) end
    flow.apply(ctx)
    if q.cursor == '' then ff_index.queue(ctx, q) end
  elseif #gone > 0 then
    redis.call('ZREM', q.key, unpack(gone))
    local h = q.family == 'fx' and graph.head(ctx, q.of)
    if h then redis.call('HINCRBY', keys.flow(ctx.r, q.of), 'vn', 1) end -- somebody may be counting the members
  end
  if q.family == 'closed' then ff_index.closed(ctx, list) end
  return #list / 2, #list == 2 * q.limit and ff_index.cursor(list[#list], list[#list - 1]) or ''
end

-- closed: no gate closes a route for longer than a day, and each says why. One that opens too early is closed again by whoever asks.
function ff_index.closed(ctx, list)
  for i = 1, #list, 2 do
    local id, at = list[i], audit.score(list[i + 1])
    if gate.of(ctx, id) ~= '' then
      if (at < 0 or at > ctx.now + 86400000) and audit.note(ctx, 'score', 'closed', id, 'at ' .. list[i + 1]) then
        redis.call('ZADD', keys.closed(ctx.r), ctx.t, id)
        root.need(ctx, ctx.now)
      end
      if redis.call('HEXISTS', keys.closings(ctx.r), id) == 0 and audit.note(ctx, 'missing', 'closings', id, 'it is closed') then
        redis.call('HSET', keys.closings(ctx.r), id, '')
      end
    end
  end
end

-- hands tells why nothing of a route is handed out, nil when it is.
function ff_index.hands(ctx, id)
  if not lane.open(ctx, id) then return 'its lane hands nothing out' end
  if not gate.open(ctx, id) then return 'a gate closed it' end
  return nil
end

-- queue: a queue that is not empty is ready, as long as its lane hands out and no gate closed it.
function ff_index.queue(ctx, q)
  local waiting, set = redis.call('ZCARD', q.key), gate.ready(ctx, q.of)
  if waiting == 0 or ff_index.hands(ctx, q.of) or redis.call('SISMEMBER', set, q.of) == 1 then return end
  local name = gate.of(ctx, q.of) == '' and 'ready' or 'gready'
  if audit.note(ctx, 'missing', name, q.of, 'its queue is not empty') then
    redis.call('SADD', set, q.of)
    root.need(ctx, ctx.now + 1000)
    bell.ring(ctx, q.of, math.min(waiting, 64))
  end
end

-- scans look at a set or a hash, which have no places. Each returns how many it looked at, and the cursor.
ff_index.scans = {}

function ff_index.scan(q, command, key)
  local answer = redis.call(command, key, q.cursor == '' and '0' or q.cursor, 'COUNT', reply.int(q.limit))
  return answer[2], answer[1] ~= '0' and answer[1] or ''
end

-- set looks at one of the two sets of ready routes.
function ff_index.set(ctx, q, name, key)
  local list, cursor = ff_index.scan(q, 'SSCAN', key)
  for i = 1, #list do
    local id = list[i]
    local wrong = redis.call('EXISTS', keys.queue(ctx.r, id)) == 0 and 'its queue is empty' or ff_index.hands(ctx, id)
    if not wrong and gate.ready(ctx, id) ~= key then wrong = 'it belongs to the other set' end
    if wrong and audit.note(ctx, 'phantom', name, id, wrong) then redis.call('SREM', key, id) end
  end
  return #list, cursor
end

function ff_index.scans.ready(ctx, q) return ff_index.set(ctx, q, 'ready', keys.ready(ctx.r)) end

function ff_index.scans.gready(ctx, q) return ff_index.set(ctx, q, 'gready', keys.gready(ctx.r)) end

-- closings are reasons of closed routes, and counts of wakes, of routes with gates alone.
function ff_index.scans.closings(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.closings(ctx.r))
  for i = 1, #list, 2 do
    local woken, wrong = string.match(list[i], '^w(%d+)$'), nil
    if not woken then
      wrong = not redis.call('ZSCORE', keys.closed(ctx.r), list[i]) and 'the route is open'
    else
      wrong = gate.of(ctx, woken) == '' and 'wakes of a route without gates' or not audit.whole(list[i + 1]) and 'no count of wakes'
    end
    if wrong and audit.note(ctx, 'phantom', 'closings', list[i], wrong) then redis.call('HDEL', keys.closings(ctx.r), list[i]) end
  end
  return #list / 2, cursor
end

-- attached: what an operator said of a scope; nothing tells what it was.
function ff_index.scans.attached(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.attached(ctx.r))
  for i = 1, #list, 2 do
    local gates, at = string.match(list[i + 1], '^([^ ]+) (%d+) ')
    if not string.find(list[i], '^[gnlt]') or not gates or not gate.valid(gates) or not audit.whole(at) then
      audit.broken(ctx, 'attached', string.sub(list[i], 1, 128), 'no gates of a scope')
    end
  end
  return #list / 2, cursor
end

-- shares: counts and weights.
function ff_index.scans.shares(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.shares(ctx.r))
  for i = 1, #list, 2 do
    local count, weight = string.match(list[i + 1], '^(%d+) ?(%d*)$')
    local own = string.find(list[i], '\31', 1, true)
    if not count or not audit.whole(count) or weight ~= '' and not (own and args.int(weight, 1, 1000)) then
      audit.broken(ctx, 'shares', string.sub(list[i], 1, 130), 'no count and weight')
    end
  end
  return #list / 2, cursor
end

-- notice tells whether one notice of the outbox can be understood.
function ff_index.notice(kind, text)
  local name, id, rest = string.match(text, '^([^ ]+) ([^ ]+) (.*)$')
  if not name or not budget.name(name) or not args.id(id) then return false end
  if kind == 'q' then
    local epoch, ran = string.match(rest, '^(%d+) ([01])$')
    return ran and audit.whole(epoch) and true or false
  end
  local outcome, epoch = string.match(rest, '^(%l+) ?(%d*)$')
  if epoch ~= '' and not audit.whole(epoch) then return false end
  return kind == 'b' and (outcome == 'failed' or outcome == 'cancelled' or outcome == 'expired' or outcome == 'purged')
end

-- outbox: an entry that cannot be understood would hold up those behind it. What of it can be is filed anew.
function ff_index.scans.outbox(ctx, q)
  local list, last = redis.call('XRANGE', keys.outbox(ctx.r), q.cursor == '' and '-' or q.cursor, '+', 'COUNT', reply.int(q.limit)), ''
  for i = 1, #list do
    local id, fields, good = list[i][1], list[i][2], {}
    for f = 1, #fields, 2 do
      if fields[f + 1] and ff_index.notice(fields[f], fields[f + 1]) then
        good[#good + 1] = fields[f]
        good[#good + 1] = fields[f + 1]
      end
    end
    if #good < #fields and audit.note(ctx, 'phantom', 'outbox', id, reply.int((#fields - #good) / 2) .. ' notices of no shape') then
      if #good > 0 then redis.call('XADD', keys.outbox(ctx.r), '*', unpack(good)) end
      redis.call('XDEL', keys.outbox(ctx.r), id)
      root.need(ctx, ctx.now)
    end
    last = id
  end
  if #list < q.limit then return #list, '' end
  local ms, sequence = string.match(last, '^(%d+)%-(%d+)$')
  return #list, ms .. '-' .. reply.int(tonumber(sequence) + 1)
end

-- routeids is the inverse of routes, so that one is restored from the other. A row that is not used goes when the uses are
-- counted (ff_audit_routes).
function ff_index.scans.routeids(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.route_ids(ctx.r))
  for i = 1, #list, 2 do
    local row, id = list[i], list[i + 1]
    local stored = redis.call('HGET', keys.routes(ctx.r), id)
    if not stored and audit.whole(id) and #pack.split(row, '\31') == 5 then
      if audit.note(ctx, 'missing', 'routes', id, row) then redis.call('HSET', keys.routes(ctx.r), id, row) end
    elseif stored ~= row and audit.note(ctx, 'phantom', 'routeids', id, row) then
      redis.call('HDEL', keys.route_ids(ctx.r), row)
    end
  end
  return #list / 2, cursor
end

-- route compares one row with the two indexes of the table. Two rows for the same route both work, until the older is
-- not used any more.
function ff_index.route(ctx, id, row)
  if #pack.split(row, '\31') ~= 5 then return audit.broken(ctx, 'routes', id, 'row') end
  local known = redis.call('HGET', keys.route_ids(ctx.r), row)
  if known ~= id then
    if known and redis.call('HGET', keys.routes(ctx.r), known) == row then
      audit.broken(ctx, 'routes', id, 'the same row as ' .. known)
    elseif audit.note(ctx, 'missing', 'routeids', id, row) then
      redis.call('HSET', keys.route_ids(ctx.r), row, id)
    end
  end
  local version = redis.call('ZSCORE', keys.route_log(ctx.r), id)
  if version and audit.score(version) <= root.version(ctx) then return end
  if audit.note(ctx, version and 'score' or 'missing', 'routelog', id, version or 'nowhere') then
    ctx.table = math.max(root.version(ctx) + 1, ctx.now) -- as a new row, so that every worker is told
    redis.call('HSET', ctx.r, 'table', reply.int(ctx.table))
    redis.call('ZADD', keys.route_log(ctx.r), reply.int(ctx.table), id)
    ctx.routes_added = true
  end
end

function ff_index.scans.routes(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.routes(ctx.r))
  for i = 1, #list, 2 do ff_index.route(ctx, list[i], list[i + 1]) end
  if ctx.routes_added then bell.table_changed(ctx) end
  return #list / 2, cursor
end

-- work is what the entries of the backlog are; what is of no flow is nobody's.
function ff_index.scans.work(ctx, q)
  local list, cursor = ff_index.scan(q, 'HSCAN', keys.work(ctx.r))
  for i = 1, #list, 2 do
    local name, p = list[i], pack.split(list[i + 1], ',')
    local filed = redis.call('ZSCORE', keys.backlog(ctx.r), name)
    if not string.find(name, '^[uswcrxk]:') or #p ~= 4 or not graph.head(ctx, p[1]) then
      if audit.note(ctx, 'orphan', 'work', name, 'no work of a flow') then
        redis.call('HDEL', keys.work(ctx.r), name)
        redis.call('ZREM', keys.backlog(ctx.r), name)
      end
    elseif not filed and audit.note(ctx, 'missing', 'backlog', name, 'nobody would do it') then
      redis.call('ZADD', keys.backlog(ctx.r), ctx.t, name)
      root.need(ctx, ctx.now)
    end
  end
  return #list / 2, cursor
end

-- types: the keys that there is one of are of the types they should have. One that is not is set aside, and an empty one is filled again.
ff_index.types = { hash = { 'routes', 'routeids', 'routeuse', 'lanes', 'closings', 'attached', 'shares', 'work', 'kids' },
  set = { 'ready', 'gready', 'digests' }, stream = { 'feed', 'outbox' },
  zset = { 'delayed', 'alarms', 'parked', 'done', 'pending', 'sessions', 'routelog', 'workers', 'schedules', 'scnames', 'blocked', 'flows',
    'flowdue', 'backlog', 'paused', 'closed' } }

function ff_index.scans.types(ctx)
  for want, names in pairs(ff_index.types) do
    for i = 1, #names do audit.typed(ctx, ctx.r .. ':' .. names[i], names[i], want) end
  end
  return 1, ''
end

-- root: what is kept in the root for speed.
function ff_index.scans.root(ctx)
  local r, most, special = ctx.r, 0, false
  local h = redis.call('HMGET', r, 'table', 'routes', 'ring', 'lanes', 'gates', 'space', 'spaces', 'quiet')
  local newest = redis.call('ZRANGE', keys.route_log(r), -1, -1, 'WITHSCORES')
  local version = newest[2] and audit.score(newest[2]) or 0
  -- Versions are times; one far ahead is a misplaced entry and no reason to raise the table's.
  if version > (audit.whole(h[1] or '0') or 0) and version <= ctx.now + 60000 and
      audit.note(ctx, 'flag', 'root', 'table', (h[1] or '') .. ', the newest route is of ' .. reply.int(version)) then
    redis.call('HSET', r, 'table', reply.int(version))
  end
  local ids = redis.call('HKEYS', keys.routes(r))
  for i = 1, #ids do most = math.max(most, audit.whole(ids[i]) or 0) end
  if most > (audit.whole(h[2] or '0') or 0) and
      audit.note(ctx, 'flag', 'root', 'routes', (h[2] or '') .. ', the newest route is ' .. reply.int(most)) then
    redis.call('HSET', r, 'routes', reply.int(most))
  end
  if h[3] and not audit.whole(h[3]) and audit.note(ctx, 'flag', 'root', 'ring', 'no time') then redis.call('HDEL', r, 'ring') end
  local told = redis.call('HVALS', keys.lanes(r))
  for i = 1, #told do special = special or string.sub(told[i], 1, 9) ~= 'active 0 ' end
  if special ~= (h[4] and true or false) and
      audit.note(ctx, 'flag', 'root', 'lanes', special and 'some are special' or 'none is special') then
    if special then redis.call('HSET', r, 'lanes', '1') else redis.call('HDEL', r, 'lanes') end
  end
  ff_index.spaces(ctx, h[5] or nil, h[6], h[7])
  if h[8] then ff_index.quiet(ctx, h[8]) end
  return 7, ''
end

-- quiet: nothing that is kept for hours comes due before, and the tick never looks far ahead. Healing removes it, see audit.note.
function ff_index.quiet(ctx, told)
  local upto, r = audit.whole(told), ctx.r
  if upto and upto <= ctx.now then return end
  local first = ctx.now + root.span
  local sets = { keys.done(r), keys.schedules(r), keys.flow_due(r), keys.workers(r) }
  for i = 1, 4 do
    local head = redis.call('ZRANGE', sets[i], 0, 0, 'WITHSCORES')
    if head[2] then first = math.min(first, audit.score(head[2]) + (i == 4 and registry.kept or 0)) end
  end
  if not upto or upto > first then audit.note(ctx, 'flag', 'root', 'quiet', told .. ', something is due at ' .. reply.int(first)) end
end

-- spaces: whether claims look at gates, and whether they share among namespaces. A level is never too high.
function ff_index.spaces(ctx, gates, space, spaces)
  local level, several, rows = 0, false, redis.call('HVALS', keys.routes(ctx.r))
  for i = 1, #rows do
    local parts = pack.split(rows[i], '\31')
    if #parts == 5 and parts[5] ~= '' then level = 1 end
    several = several or space and parts[1] ~= space
  end
  local scopes = redis.call('HKEYS', keys.attached(ctx.r))
  for i = 1, #scopes do level = math.max(level, string.byte(scopes[i], 1) == 116 and 3 or 2) end
  if level > (args.int(gates or '0', 0, 3) or 0) and
      audit.note(ctx, 'flag', 'root', 'gates', (gates or '') .. ', there are some of level ' .. reply.int(level)) then
    redis.call('HSET', ctx.r, 'gates', reply.int(level))
  end
  if several and not spaces and audit.note(ctx, 'flag', 'root', 'spaces', 'there are several namespaces') then
    redis.call('HSET', ctx.r, 'spaces', '1')
  end
end

-- wake: somebody must be told to tick when the first thing is due, every root.span while anything waits for its time, and within a second
-- while something waits for the tick alone.
function ff_index.scans.wake(ctx)
  local r, first, some = ctx.r, nil, false
  local soon = redis.call('EXISTS', keys.ready(r), keys.gready(r)) > 0 or redis.call('XLEN', keys.outbox(r)) > 0
  local sets = { keys.sessions(r), keys.delayed(r), keys.alarms(r), keys.pending(r), keys.backlog(r), keys.done(r), keys.schedules(r),
    keys.flow_due(r), keys.closed(r) }
  for i = 1, 9 do
    local head = redis.call('ZRANGE', sets[i], 0, 0, 'WITHSCORES')
    local at = head[2] and audit.score(head[2])
    if at then
      if i < 5 then some = true elseif i == 5 then soon = true elseif i < 9 then at = math.max(at, ctx.now + 1000) end
      if not first or at < first then first = at end
    end
  end
  if soon or some then
    local latest = ctx.now + (soon and 1000 or root.span)
    first = math.min(first or latest, latest)
  end
  if not first or ctx.wake and ctx.wake <= math.max(first, ctx.now) then return 1, '' end
  local told = ctx.wake and reply.int(ctx.wake) or 'never'
  if audit.note(ctx, 'flag', 'root', 'wake', told .. ', something is due at ' .. reply.int(first)) then root.need(ctx, first) end
  return 1, ''
end

-- ones look at one record.
ff_index.ones = {}

-- s: a session that lives, holds work or has not been buried yet must come due by its end.
function ff_index.ones.s(ctx, id)
  local key = keys.session(ctx.r, id)
  local h = redis.call('HMGET', key, 'exp', 'dead')
  local ends = audit.whole(h[1] or nil)
  if not ends and not h[2] then
    if redis.call('EXISTS', key) == 1 then audit.broken(ctx, 's', id, 'session without expiry') end
    return
  end
  local by = h[2] and math.min(ends or ctx.now, ctx.now) or ends
  local at = redis.call('ZSCORE', keys.sessions(ctx.r), id)
  if at and audit.score(at) <= by then return end
  if not at and h[2] and redis.call('EXISTS', keys.held(ctx.r, id)) == 0 and redis.call('PTTL', key) >= 0 then return end
  if audit.note(ctx, at and 'score' or 'missing', 'sessions', id, (at or 'nowhere') .. ', belongs at ' .. reply.int(by)) then
    redis.call('ZADD', keys.sessions(ctx.r), reply.int(by), id)
    root.need(ctx, by)
  end
end

-- l: notices of a session that is gone.
function ff_index.ones.l(ctx, id)
  local key = keys.lost(ctx.r, id)
  if redis.call('EXISTS', key) == 0 or redis.call('EXISTS', keys.session(ctx.r, id)) == 1 then return end
  if audit.note(ctx, 'orphan', 'l', id, 'notices without session') then redis.call('UNLINK', key) end
end

-- w: an interest that has waiters is among the digests, or nobody would ring them.
function ff_index.ones.w(ctx, digest)
  if redis.call('EXISTS', keys.waiters(ctx.r, digest)) == 0 or redis.call('SISMEMBER', keys.digests(ctx.r), digest) == 1 then return end
  if audit.note(ctx, 'missing', 'digests', digest, 'it has waiters') then
    redis.call('SADD', keys.digests(ctx.r), digest)
    root.need(ctx, ctx.now + 1000)
  end
end

-- sc: a schedule is listed by its name, and comes due at its next instant unless it is paused.
function ff_index.ones.sc(ctx, name)
  local c = schedule.read(ctx, name)
  if not c then
    if redis.call('EXISTS', keys.schedule(ctx.r, name)) == 1 then audit.broken(ctx, 'sc', name, 'schedule without revision') end
    return
  end
  if not redis.call('ZSCORE', keys.schedule_names(ctx.r), name) and audit.note(ctx, 'missing', 'scnames', name, 'nowhere') then
    redis.call('ZADD', keys.schedule_names(ctx.r), '0', name)
  end
  local at, by = redis.call('ZSCORE', keys.schedules(ctx.r), name), not c.pz and c.nx and audit.whole(c.nx) or nil
  if c.nx and not audit.whole(c.nx) then audit.broken(ctx, 'sc', name, 'next is no time') end
  if by and not (at and audit.score(at) == by) then
    if audit.note(ctx, at and 'score' or 'missing', 'schedules', name, (at or 'nowhere') .. ', belongs at ' .. c.nx) then
      redis.call('ZADD', keys.schedules(ctx.r), c.nx, name)
      root.need(ctx, by)
    end
  elseif at and not by and audit.note(ctx, 'phantom', 'schedules', name, 'it is paused, or never due') then
    redis.call('ZREM', keys.schedules(ctx.r), name)
  end
end

-- wk: a registered worker is listed until it is forgotten.
function ff_index.ones.wk(ctx, instance)
  local exp = redis.call('HGET', keys.worker(ctx.r, instance), 'exp')
  local ends = audit.whole(exp or nil)
  if not ends or ends + registry.kept <= ctx.now or redis.call('ZSCORE', keys.workers(ctx.r), instance) then return end
  if audit.note(ctx, 'missing', 'workers', instance, 'nowhere') then redis.call('ZADD', keys.workers(ctx.r), exp, instance) end
end

-- defined looks at a budget or quota by name: it is listed, its definition is complete, and what it counted goes with it.
function ff_index.defined(ctx, index, area, name, key, fields, owned)
  local v = redis.call('HMGET', key, unpack(fields))
  if redis.call('EXISTS', key) == 0 then
    if redis.call('EXISTS', unpack(owned)) > 0 and audit.note(ctx, 'orphan', area, name, 'its definition is gone') then
      redis.call('UNLINK', unpack(owned))
    end
    return
  end
  for i = 1, #fields do
    if not v[i] then return audit.broken(ctx, area, name, 'definition without ' .. fields[i]) end
  end
  if not redis.call('ZSCORE', index, name) and audit.note(ctx, 'missing', area == 'bd' and 'budgets' or 'quotas', name, 'nowhere') then
    redis.call('ZADD', index, '0', name)
  end
end

function ff_index.ones.bd(ctx, name)
  local r = ctx.r
  local fields = { 'df', 'md', 'hd', 'sf', 'iv', 'st', 'rf', 'ct', 'up', 'rc', 'ps', 'bc', 'bs' }
  local owned = { keys.usage(r, name), keys.spenders(r, name), keys.budget_book(r, name), keys.budget_waiters(r, name) }
  ff_index.defined(ctx, keys.budgets(r), 'bd', name, keys.budget(r, name), fields, owned)
end

function ff_index.ones.qd(ctx, name)
  local r = ctx.r
  local fields = { 'df', 'rt', 'wn', 'cp', 'jt', 'ct', 'up' }
  local owned = { keys.window(r, name), keys.slots(r, name), keys.quota_book(r, name), keys.cap_waiters(r, name),
    keys.rate_waiters(r, name) }
  ff_index.defined(ctx, keys.quotas(r), 'qd', name, keys.quota(r, name), fields, owned)
end

-- parse says what is looked at, nil when there is no such index.
function ff_index.parse(ctx, index)
  if ff_index.zsets[index] then
    return { family = index, key = ff_index.zsets[index](ctx.r), look = ff_index.page }
  end
  if ff_index.scans[index] then return { look = ff_index.scans[index], stream = index == 'outbox' } end
  local family, of = string.match(index, '^(%l+):(.+)$')
  if not family or #of > 64 then return nil end
  if ff_index.families[family] then
    return { family = family, of = of, key = ff_index.families[family](ctx.r, of), look = ff_index.page }
  end
  if not ff_index.ones[family] then return nil end
  return { look = function(c)
    ff_index.ones[family](c, of)
    return 1, ''
  end }
end

-- valid judges a cursor; one of a scan is a number.
function ff_index.valid(q)
  if not q.cursor or #q.cursor > 65536 then return false end
  if q.cursor == '' then return true end
  if q.stream then return string.find(q.cursor, '^%d+%-%d+$') and #q.cursor <= 40 end
  if not q.key then return args.int(q.cursor, 0, 9007199254740991) end
  return ff_index.position(string.match(q.cursor, '^(%S+) .') or '')
end

local function ff_audit_index(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local wrong = audit.begin(ctx, argv[2])
  if wrong then return wrong end
  local q = ff_index.parse(ctx, argv[3] or '')
  if not q then return reply.err('invalid_input', 'index') end
  q.index, q.cursor, q.limit = argv[3], argv[4], args.int(argv[5], 1, 100)
  if not q.limit then return reply.err('invalid_input', 'limit: 1..100') end
  if not ff_index.valid(q) then return reply.err('invalid_input', 'cursor') end
  local checked, cursor = q.look(ctx, q)
  return audit.finish(ctx, { 1, 'OK', cursor, reply.int(checked) })
end
