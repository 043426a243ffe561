-- audit_entries: whether the entries of sorted sets are where their records say: executions by time or score, and
-- what else is filed. A phantom, which no record names, is removed; what records tell is restored by the audits of
-- records.
local audit_entries = {}

-- sets are the sorted sets by name; families those with one set for each route, session, token key or flow.
audit_entries.sets = { delayed = keys.delayed, alarms = keys.alarms, parked = keys.parked, done = keys.done,
  pending = keys.pending, unsuccessful = keys.unsuccessful, sessions = keys.sessions, routelog = keys.route_log,
  workers = keys.workers, schedules = keys.schedules, scnames = keys.schedule_names, blocked = keys.blocked,
  flows = keys.flows, flowdue = keys.flow_due, dsdue = keys.streams_due,
  backlog = keys.backlog,
  paused = keys.paused, closed = keys.closed, gates = keys.gates }
audit_entries.families = { q = keys.queue, h = keys.held, open = keys.open, fx = keys.members, ring = keys.ring,
  gring = keys.gring, gs = function(r, of) return r .. ':gs:' .. of end,
  turns = function(r, of) return r .. ':turns:' .. of end, cr = keys.made, ct = keys.labelled }

-- names tell whether the record of a member names the index. Those of executions get its core; others are for members
-- that are none.
local names, others = {}, {}

function names.delayed(_, c) return core.delayed(c) end
function names.parked(_, c) return core.suspended(c) end
function names.done(_, c) return core.terminal(c) end
function names.unsuccessful(_, c) return core.unsuccessful(c) end
function names.paused(_, c) return core.paused(c) end
function names.blocked(_, c) return core.blocked(c) end
function names.fx(_, c, flow_id) return c.flow == flow_id end
function names.alarms(ctx, c) return audit.alarm(ctx, c) and true end
function names.q(_, c, route_id) return core.waiting(c) and c.route == route_id end
function names.cr(ctx, c, route_id) return c.route == route_id and catalogue.of(ctx).routes end
function names.ct(ctx, c, label, id)
  local tag, value = string.match(label, '^([^=]+)=(.*)$')
  local tags = catalogue.of(ctx).tags
  return tag and c.has_tags and tags and tags[tag] and redis.call('HGET', keys.tags(ctx.r, id), tag) == value
end
function names.h(_, c, session_id)
  return c.state == 'A1' and c.session == session_id or core.granted(c) and c.grant_session == session_id
end

function others.pending(ctx, member)
  local w = waitpoint.read(ctx, string.sub(member, 1, 36), string.sub(member, 38))
  return w and w.state == 'p' and redis.call('EXISTS', keys.core(ctx.r, string.sub(member, 1, 36))) == 1
end

function others.open(ctx, member, kid)
  local w = waitpoint.read(ctx, string.sub(member, 1, 36), string.sub(member, 38))
  return w and waitpoint.open(w) and w.kid == kid
    and redis.call('EXISTS', keys.core(ctx.r, string.sub(member, 1, 36))) == 1
end

function others.sessions(ctx, member)
  return redis.call('EXISTS', keys.session(ctx.r, member), keys.held(ctx.r, member)) > 0
end

function others.routelog(ctx, member) return redis.call('HEXISTS', keys.routes(ctx.r), member) == 1 end

function others.workers(ctx, member, _, score)
  return audit.score(score) <= ctx.now or redis.call('EXISTS', keys.worker(ctx.r, member)) == 1
end

function others.schedules(ctx, member) return redis.call('EXISTS', keys.schedule(ctx.r, member)) == 1 end

function others.scnames(ctx, member) return redis.call('EXISTS', keys.schedule(ctx.r, member)) == 1 end

function others.dsdue(ctx, member)
  local v = redis.call('HMGET', keys.written(ctx.r, member), 'du', 'g')
  return v[1] and not v[2]
end

function others.flows(ctx, member) return redis.call('HEXISTS', keys.flow(ctx.r, member), 'st') == 1 end

function others.flowdue(ctx, member)
  local h = graph.head(ctx, member)
  return h and (h.st == 'F0' or h.en and graph.count(h, 'pu') >= graph.count(h, 'nn'))
end

function others.backlog(ctx, member) return redis.call('HEXISTS', keys.work(ctx.r), member) == 1 end

-- ring: a namespace with work without gates in a lane that hands out; gring: one that has turns; turns: the routes of
-- a class and namespace.
function others.ring(ctx, member, class)
  local _, lane_name, rest = route.split(route.read(ctx, class))
  local id = lane_name and route.find(ctx, route.row(member, lane_name, rest, ''))
  return id and redis.call('EXISTS', keys.queue(ctx.r, id)) == 1 and lane.open(ctx, id)
end

function others.gring(ctx, member, class)
  local _, lane_name = route.split(route.read(ctx, class))
  return lane_name and redis.call('EXISTS', keys.turns(ctx.r, class, member)) == 1 and
      lane.hands_out[lane.read(ctx, lane.name(member, lane_name), true).state]
end

function others.turns(ctx, member, of)
  return of == route.class(member) .. ':' .. route.namespace(ctx, member) and gate.of(ctx, member) ~= ''
    and gate.open(ctx, member) and
      redis.call('EXISTS', keys.queue(ctx.r, member)) == 1
end

function others.closed(ctx, member) return gate.of(ctx, member) ~= '' end

function others.gates(ctx, member) return redis.call('EXISTS', keys.gate(ctx.r, member)) == 1 end

function others.gs(_, member)
  local who, epoch = string.match(member, '^(.*):(%d+)$')
  return args.ref(who) and audit.whole(epoch)
end

-- position reads the score of a cursor, as servers write it.
function audit_entries.position(text)
  local exponent = #text <= 32 and string.match(text, '^%-?%d+%.?%d*(.*)$')
  return exponent and (exponent == '' or string.find(exponent, '^e[%+%-]%d%d?$')) and text
end

-- cursor names an entry; one where nothing belongs stands for all that are as far out.
local function cursor(score, member)
  return (audit_entries.position(score) or (string.byte(score) == 45 and '-' or '') .. '9007199254740992') .. ' ' ..
    member
end

-- seek finds where a page begins: behind the entry that ended the last one, also when that is gone or elsewhere now.
local function seek(key, cursor)
  if cursor == '' then return 0 end
  local score, member = string.match(cursor, '^(%S+) (.*)$')
  return listing.rank(key, { score = score, member = member })
end

-- closed: no gate closes a route for longer than a day, and each says why. One that opens too early is closed again
-- by the next claim that asks.
local function closed(ctx, list)
  for i = 1, #list, 2 do
    local id, at = list[i], audit.score(list[i + 1])
    if gate.of(ctx, id) ~= '' then
      if (at < 0 or at > ctx.now + 86400000) and audit.note(ctx, 'score', 'closed', id, 'at ' .. list[i + 1]) then
        timers.put(ctx, timers.closed, ctx.now, id)
      end
      if redis.call('HEXISTS', keys.closings(ctx.r), id) == 0
        and audit.note(ctx, 'missing', 'closings', id, 'it is closed') then
        redis.call('HSET', keys.closings(ctx.r), id, '')
      end
    end
  end
end

-- queue: a queue that is not empty is ready, as long as its lane hands out and no gate closed it.
local function queue(ctx, q)
  local waiting = redis.call('ZCARD', q.key)
  if waiting == 0 or audit.hands(ctx, q.of) or ready.lists(ctx, q.of) then return end
  local name = gate.of(ctx, q.of) == '' and 'ready' or 'gready'
  if audit.note(ctx, 'missing', name, q.of, 'its queue is not empty') then
    if not route.plain(q.of) then ready.drop(ctx, q.of) end -- it may be in some of the places
    ready.offer(ctx, q.of)
    root.need(ctx, ctx.now + 1000)
    doorbell.wake(ctx, q.of, math.min(waiting, 64))
  end
end

-- labelled: the values of a tag are those that executions have.
local function labelled(ctx, q)
  local tag, value = string.match(q.of, '^([^=]+)=(.*)$')
  if not tag then return end
  local values, there = keys.values(ctx.r, tag), redis.call('EXISTS', q.key) == 1
  if there ~= (redis.call('SISMEMBER', values, value) == 1) and
      audit.note(ctx, there and 'missing' or 'phantom', 'cv:' .. tag, value, q.index) then
    redis.call(there and 'SADD' or 'SREM', values, value)
  end
end

-- look looks at a page of entries, by place.
function audit_entries.look(ctx, q)
  if not audit.typed(ctx, q.key, q.index, 'zset') then return 0, '' end
  local first = seek(q.key, q.cursor)
  local list, gone = redis.call('ZRANGE', q.key, first, first + q.limit - 1, 'WITHSCORES'), {}
  for i = 1, #list, 2 do
    local member, named = list[i], nil
    if names[q.family] then
      local c = core.read(ctx, member)
      named = names[q.family](ctx, c.state and c or { state = '' }, q.of, member)
    else
      named = others[q.family](ctx, member, q.of, list[i + 1])
    end
    if not named and audit.note(ctx, 'phantom', q.index, member, 'at ' .. list[i + 1]) then gone[#gone + 1] = member end
  end
  if q.family == 'q' then
    for i = 1, #gone do indexes.dequeue(ctx, q.of, gone[i]) end
    flow.apply(ctx)
    if q.cursor == '' then queue(ctx, q) end
  elseif q.family == 'ring' or q.family == 'gring' then
    for i = 1, #gone do ready.leave((q.family == 'ring' and keys.ready or keys.gready)(ctx.r), q.key, q.of, gone[i]) end
  elseif #gone > 0 then
    redis.call('ZREM', q.key, unpack(gone))
    local class, namespace = string.match(q.family == 'turns' and q.of or '', '^(%d+):(.+)$')
    if class and redis.call('EXISTS', q.key) == 0 then
      ready.leave(keys.gready(ctx.r), keys.gring(ctx.r, class), class, namespace)
    end
    local h = q.family == 'fx' and graph.head(ctx, q.of)
    if h then redis.call('HINCRBY', keys.flow(ctx.r, q.of), 'vn', 1) end -- somebody may be counting the members
  end
  if q.family == 'ct' then labelled(ctx, q) end
  if q.family == 'closed' then closed(ctx, list) end
  return #list / 2, #list == 2 * q.limit and cursor(list[#list], list[#list - 1]) or ''
end
