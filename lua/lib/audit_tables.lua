-- audit_tables: whether the sets, hashes and the stream that a partition has once agree with its records and with
-- each other.
local audit_tables = {}

-- looks are by index; each looks at a part, in no order, and returns how many it looked at, and the cursor.
audit_tables.looks = {}

local function scan(q, command, key)
  local answer = redis.call(command, key, q.cursor == '' and '0' or q.cursor, 'COUNT', reply.int(q.limit))
  return answer[2], answer[1] ~= '0' and answer[1] or ''
end

-- set looks at one of the two sets of ready classes.
local function set(ctx, q, name, key)
  local list, cursor = scan(q, 'SSCAN', key)
  for i = 1, #list do
    local class, plain = ready.class(list[i])
    local wrong
    if not plain then
      wrong = redis.call('EXISTS', (name == 'ready' and keys.ring or keys.gring)(ctx.r, class)) == 0
        and 'its ring is empty'
    elseif name == 'gready' or not route.plain(class) then
      wrong = 'it is no class of this set'
    else
      wrong = redis.call('EXISTS', keys.queue(ctx.r, class)) == 0 and 'its queue is empty' or audit.hands(ctx, class)
    end
    if wrong and audit.note(ctx, 'phantom', name, list[i], wrong) then redis.call('SREM', key, list[i]) end
  end
  return #list, cursor
end

function audit_tables.looks.ready(ctx, q) return set(ctx, q, 'ready', keys.ready(ctx.r)) end

function audit_tables.looks.gready(ctx, q) return set(ctx, q, 'gready', keys.gready(ctx.r)) end

-- closings are reasons of closed routes, and counts of wakes and what gates measure, of routes with gates alone.
function audit_tables.looks.closings(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.closings(ctx.r))
  for i = 1, #list, 2 do
    local what, of = string.match(list[i], '^([wm])(%d+)$')
    local wrong = nil
    if not what then
      wrong = not redis.call('ZSCORE', keys.closed(ctx.r), list[i]) and 'the route is open'
    else
      wrong = gate.of(ctx, of) == '' and 'of a route without gates'
        or what == 'w' and not audit.whole(list[i + 1]) and 'no count of wakes'
        or what == 'm' and not gate.measured(list[i + 1]) and 'not what gates measure'
    end
    if wrong and audit.note(ctx, 'phantom', 'closings', list[i], wrong) then
      redis.call('HDEL', keys.closings(ctx.r), list[i])
    end
  end
  return #list / 2, cursor
end

-- attached: what an operator said of a scope; nothing tells what it was.
function audit_tables.looks.attached(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.attached(ctx.r))
  for i = 1, #list, 2 do
    local gates, at = string.match(list[i + 1], '^([^ ]+) (%d+) ')
    if not string.find(list[i], '^[gnlt]') or not gates or not gate.valid(gates) or not audit.whole(at) then
      audit.broken(ctx, 'attached', string.sub(list[i], 1, 128), 'no gates of a scope')
    end
  end
  return #list / 2, cursor
end

-- shares: what namespaces of lanes were given. weights: what an operator said of them.
function audit_tables.looks.shares(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.shares(ctx.r))
  for i = 1, #list, 2 do
    if not audit.whole(list[i + 1]) then audit.broken(ctx, 'shares', string.sub(list[i], 1, 130), 'no count') end
  end
  return #list / 2, cursor
end

function audit_tables.looks.weights(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.weights(ctx.r))
  for i = 1, #list, 2 do
    if not string.find(list[i], '\31', 1, true) or not args.int(list[i + 1], 1, 1000) then
      audit.broken(ctx, 'weights', string.sub(list[i], 1, 130), 'no weight')
    end
  end
  return #list / 2, cursor
end

-- makers: who made a class. One whose maker is lost counts for nobody.
function audit_tables.looks.makers(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.makers(ctx.r))
  for i = 1, #list, 2 do
    if redis.call('HEXISTS', keys.routes(ctx.r), list[i]) == 0
      and audit.note(ctx, 'phantom', 'makers', list[i], 'there is no such class') then
      redis.call('HDEL', keys.makers(ctx.r), list[i])
    end
  end
  return #list / 2, cursor
end

-- notice tells whether one notice of the outbox can be understood.
local function notice(kind, text)
  if kind == 'a' or kind == 'n' or kind == 'k' or kind == 'w' then return wait_others.notice(kind, text) ~= nil end
  if kind == 'p' or kind == 's' then return subject.notice(kind, text) end
  if kind == 'r' or kind == 'x' then return expect.notice(kind, text) end
  local name, id, what, epoch = string.match(text, '^([^ ]+) ([^ ]+) (%l+) (%d+)$')
  return kind == 'g' and args.gate(name) and args.id(id) and gate.words[what] and audit.whole(epoch) and true or false
end

-- outbox: an entry that cannot be understood would hold up those behind it. What of it can be is filed anew.
function audit_tables.looks.outbox(ctx, q)
  local list, last = redis.call('XRANGE', keys.outbox(ctx.r), q.cursor == '' and '-' or q.cursor, '+', 'COUNT',
    reply.int(q.limit)), ''
  for i = 1, #list do
    local id, fields, good = list[i][1], list[i][2], {}
    for f = 1, #fields, 2 do
      if fields[f + 1] and notice(fields[f], fields[f + 1]) then
        good[#good + 1], good[#good + 2] = fields[f], fields[f + 1]
      end
    end
    if #good < #fields and audit.note(ctx, 'phantom', 'outbox', id,
      reply.int((#fields - #good) / 2) .. ' notices of no shape') then
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

-- routeids is the inverse of routes, so that one is restored from the other. A row that is not used goes when the
-- uses are counted (ff_audit_routes).
function audit_tables.looks.routeids(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.route_ids(ctx.r))
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

-- flags: whether claims look at gates and at several namespaces.
local function flags(ctx, namespace, gates)
  ctx.cache.flags = ctx.cache.flags or redis.call('HMGET', ctx.r, 'gates', 'spaces')
  local f = ctx.cache.flags
  if gates ~= '' and (args.int(f[1] or '0', 0, 3) or 0) == 0 and
      audit.note(ctx, 'flag', 'root', 'gates', (f[1] or '') .. ', there are some of level 1') then
    redis.call('HSET', ctx.r, 'gates', '1')
    f[1] = '1'
  end
  if namespace ~= route.space(ctx) and not f[2]
    and audit.note(ctx, 'flag', 'root', 'spaces', 'there are several namespaces') then
    redis.call('HSET', ctx.r, 'spaces', '1')
    ctx.spaces, f[2] = '1', '1'
    ready.spread(ctx)
  end
end

-- class sees to the class of a route: without a row of its own no worker would know of it.
local function class(ctx, id, row)
  local number, own = route.class(id), route.own(ctx, row)
  if not own or redis.call('HEXISTS', keys.routes(ctx.r), number) == 1 then return end
  if audit.note(ctx, 'missing', 'routes', number, own) then
    redis.call('HSET', keys.routes(ctx.r), number, own)
    if not redis.call('HGET', keys.route_ids(ctx.r), own) then
      redis.call('HSET', keys.route_ids(ctx.r), own, number)
    end
    route.announce(ctx, number)
  end
end

-- row_of compares one row with the two indexes of the table. Two rows for the same route both work, until the older is
-- not used any more.
local function row_of(ctx, id, row)
  local namespace, _, _, gates = route.split(row)
  if not namespace then return audit.broken(ctx, 'routes', id, 'row') end
  flags(ctx, namespace, gates)
  local known = redis.call('HGET', keys.route_ids(ctx.r), row)
  if known ~= id then
    if known and redis.call('HGET', keys.routes(ctx.r), known) == row then
      audit.broken(ctx, 'routes', id, 'the same row as ' .. known)
    elseif audit.note(ctx, 'missing', 'routeids', id, row) then
      redis.call('HSET', keys.route_ids(ctx.r), row, id)
    end
  end
  if not route.plain(id) then return class(ctx, id, row) end
  local version = redis.call('ZSCORE', keys.route_log(ctx.r), id)
  if version and audit.score(version) <= root.version(ctx) then return end
  if audit.note(ctx, version and 'score' or 'missing', 'routelog', id, version or 'nowhere') then
    route.announce(ctx, id) -- as a new row, so that every worker is told
  end
end

function audit_tables.looks.routes(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.routes(ctx.r))
  for i = 1, #list, 2 do row_of(ctx, list[i], list[i + 1]) end
  if ctx.moves.routes_added then doorbell.table_changed(ctx) end
  return #list / 2, cursor
end

-- work is what the entries of the backlog are; what is of no flow is nobody's.
function audit_tables.looks.work(ctx, q)
  local list, cursor = scan(q, 'HSCAN', keys.work(ctx.r))
  for i = 1, #list, 2 do
    local name, p = list[i], pack.split(list[i + 1], ',')
    local filed = redis.call('ZSCORE', keys.backlog(ctx.r), name)
    if not string.find(name, '^[uswcrxk]:') or #p ~= 4 or not graph.head(ctx, p[1]) then
      if audit.note(ctx, 'orphan', 'work', name, 'no work of a flow') then
        redis.call('HDEL', keys.work(ctx.r), name)
        redis.call('ZREM', keys.backlog(ctx.r), name)
      end
    elseif not filed and audit.note(ctx, 'missing', 'backlog', name, 'nobody would do it') then
      timers.put(ctx, timers.backlog, ctx.now, name)
    end
  end
  return #list / 2, cursor
end
