-- graph: the header of a flow and its exact counters. A header is read once a call, changed in
-- memory and written by flush. Fields:
--   st state code       ns namespace        kd kind             ct created at       cr creator        pd definition digest
--   sl seal: 1 sealed, g its members may add members, absent: it may grow
--   mt last change      rl released at      en ended at         rv graph revision   nn members ever   ne edges ever
--   cp cancel policy    ca cancelled at     cw reason           cb by               tg 1 = has tags
--   bl backlog entries  lv ends of the flow that did not succeed                    pu purged members
--   vn changes of this header, by which an audit that needs several calls knows that nothing has changed meanwhile
--   m<class> members by class: b blocked w waiting d delayed a active u suspended, and the outcomes s f c e k
--   xc siblings cancelled  xt had ended  xn were gone  xs spared
--   op 1 = some of its members are optional (group.lua)
--   uk key that no other flow has while this one has not ended: a UUID, whose record (lib/keyed.lua) says "<flow> f"
-- States: F0 staging (nothing is claimable), F1 open, F2 completed, F3 failed, F4 cancelled. A flow has completed
-- when every member without dependants succeeded. Dependants that stand aside (group.aside) are none here, and a
-- member that was skipped because nothing failed is no failure.
local graph = {}

graph.outcomes = { T1 = 's', T2 = 'f', T3 = 'c', T3n = 'c', T4 = 'e', T4n = 'e', T5 = 'k', T5n = 'k' }
graph.open = { 'b', 'w', 'd', 'a', 'u' }

local classes = { R1 = 'w', G1 = 'w', R4 = 'w', R2 = 'd', R3 = 'b' }

-- outcome is how a member ended, as those that depend on it are told; nil if it has not.
function graph.outcome(c)
  local mark = c.state and graph.outcomes[c.state]
  return mark == 'k' and c.failure_category == 'not_needed' and 'n' or mark
end

function graph.class(code)
  return graph.outcomes[code] or classes[string.sub(code, 1, 2)] or (string.byte(code, 1) == 65 and 'a') or 'u'
end

-- head returns a flow's header, nil when there is none.
function graph.head(ctx, flow_id)
  ctx.cache.flows = ctx.cache.flows or {}
  local h = ctx.cache.flows[flow_id]
  if h == nil then
    local v = redis.call('HGETALL', keys.flow(ctx.r, flow_id))
    h = #v > 0 and { id = flow_id, dirty = {} } or false
    for i = 1, #v, 2 do h[v[i]] = v[i + 1] end
    if h and not h.st then h = false end
    ctx.cache.flows[flow_id] = h
  end
  return h or nil
end

-- new is the header of a flow that does not exist yet, with these fields; it is not written before begin.
function graph.new(ctx, flow_id, fields)
  local dirty = {}
  fields.ct, fields.mt, fields.rv = ctx.t, ctx.t, '0'
  for field in pairs(fields) do dirty[field] = true end
  fields.id, fields.dirty = flow_id, dirty
  return fields
end

-- rival is the flow that has a key and has not ended, nil if that is none, or the flow called id.
function graph.rival(ctx, key, id)
  local text = redis.call('MGET', keys.keyed(ctx.r, key))[1]
  local other = text and string.match(text, '^(%S+) f$')
  local h = other and other ~= id and graph.head(ctx, other)
  return h and not h.en and h or nil
end

-- own is what the record of a flow's key says if the flow has it.
function graph.own(h) return h.id .. ' f' end

-- begin plans to write a new header.
function graph.begin(ctx, h)
  if h.uk then record.write(ctx, keys.keyed(ctx.r, h.uk), graph.own(h)) end
  ctx.cache.flows = ctx.cache.flows or {}
  ctx.cache.flows[h.id], h.changed = h, true
  redis.call('ZADD', keys.flows(ctx.r), ctx.t, h.id)
end

-- expire gives up a flow that is not released within a day; every part of it that comes begins the day anew.
function graph.expire(ctx, h) timers.put(ctx, timers.flow_due, ctx.now + 86400000, h.id) end

function graph.set(h, field, value)
  h[field] = value
  h.dirty[field], h.changed = true, true
end

function graph.count(h, field) return tonumber(h[field] or '0') or 0 end

-- add changes a counter. It is a number in memory from then on: formatting one costs more than counting.
function graph.add(h, field, change)
  if change ~= 0 then graph.set(h, field, graph.count(h, field) + change) end
end

-- text is a counter as it is stored.
function graph.text(h, field) return reply.int(graph.count(h, field)) end

local counters = { rv = true, nn = true, ne = true, vn = true, bl = true, lv = true, pu = true, xc = true, xt = true,
  xn = true, xs = true, mb = true, mw = true, md = true, ma = true, mu = true, ms = true, mf = true, mc = true,
  me = true, mk = true }

-- tally counts for the whole partition, in fields of the root, for metrics: tally:T5 members that were skipped,
-- tally:F2 F3 F4 flows that ended so (again, if they were open again), tally:xc xt xn xs what became of siblings.
function graph.tally(ctx, what)
  ctx.moves.tallies = ctx.moves.tallies or {}
  ctx.moves.tallies[what] = (ctx.moves.tallies[what] or 0) + 1
end

-- unended is how many members have not ended.
function graph.unended(h)
  local n = 0
  for i = 1, #graph.open do n = n + graph.count(h, 'm' .. graph.open[i]) end
  return n
end

-- cancels tells whether a cancelled flow takes a member of this class with it.
function graph.cancels(h, class)
  return h.st == 'F4' and (h.cp == 'cancel_all' or h.cp == 'cancel_pending' and class ~= 'a')
end

-- barred tells whether a member must not be handed out, because its flow was cancelled.
function graph.barred(ctx, flow_id)
  local h = graph.head(ctx, flow_id)
  return h and h.st == 'F4' and h.cp ~= 'flow_only'
end

-- push plans work that flow.apply does, as much as fits into the call: e has a kind, an id, a flow and a cursor.
--   u a member ended, or is replayed (.): tell its dependants      s a group is decided: cancel what it does not need
--   w a member ended while it waited for children    c cancel the members of a flow
--   o a wait for children is over: cancel those that are open; the id is the parent's, ':' and a number
--   r release the roots of a flow              x cancel one member        k skip one member
function graph.push(ctx, kind, id, flow_id, at, outcome, attempt)
  ctx.moves.work = ctx.moves.work or {}
  local q = ctx.moves.work
  local e = { kind = kind, id = id, flow = flow_id, at = at or '', outcome = outcome or '', attempt = attempt or '' }
  q[#q + 1] = e
  return e
end

-- ended notes that a member has ended. c needs fl and wt (the children it waits for). With an owner, who cancels it
-- because of a group, nobody is told if only that group depends on it: c.told is what there is to tell. c.unneeded:
-- it is skipped because nothing failed.
local function ended(ctx, h, c, id, outcome, attempt)
  if c.unneeded then outcome = 'n' end
  local n, counted = links.leads(ctx, id)
  if counted == 0 and outcome ~= 's' and outcome ~= 'n' then graph.add(h, 'lv', 1) end
  if n == 0 then -- nobody is to be told
  elseif n == 1 and c.owner then
    c.told = outcome .. ',' .. attempt
  elseif not graph.barred(ctx, h.id) then -- else every dependant ends by the same cancellation
    local e = graph.push(ctx, 'u', id, h.id, '0', outcome, attempt)
    if n <= links.near then e.list = links.dependants(ctx, id, 0, n) end
  end
  if c.children_wait and string.find(c.children_wait, ' [pm] cancel$') then graph.push(ctx, 'w', id, h.id) end
end

-- moved counts a change of state of a member, c.state being the state before (absent for a new one).
function graph.moved(ctx, c, id, code, attempt)
  local h = graph.head(ctx, c.flow)
  if not h then return end
  local from, to = c.state and graph.class(c.state), graph.class(code)
  if from == to then return end
  if from then graph.add(h, 'm' .. from, -1) end
  graph.add(h, 'm' .. to, 1)
  local outcome, before = graph.outcomes[code], c.state and graph.outcomes[c.state]
  if outcome then return ended(ctx, h, c, id, outcome, attempt) end
  if before then -- it is replayed
    local n, counted = links.leads(ctx, id)
    if before ~= 's' and counted == 0 and graph.outcome(c) ~= 'n' then graph.add(h, 'lv', -1) end
    if n > 0 and (before ~= 's' or counted < n) then graph.push(ctx, 'u', id, h.id, '0', '.') end
    if h.en then
      if h.uk then record.write(ctx, keys.keyed(ctx.r, h.uk), graph.own(h)) end
      graph.set(h, 'en', nil)
      if h.st ~= 'F4' then graph.set(h, 'st', 'F1') end
      h.said = true
    end
  end
  if graph.cancels(h, to) then graph.push(ctx, 'x', id, h.id) end
end

-- settle ends a flow by itself when none of its members is left to end.
local function settle_flow(ctx, h)
  if h.en or h.st == 'F0' or graph.unended(h) > 0 then return end
  if h.st == 'F1' then
    if not h.sl then return end
    graph.set(h, 'st', graph.count(h, 'lv') > 0 and 'F3' or 'F2')
  end
  graph.set(h, 'en', ctx.t)
  graph.tally(ctx, h.st)
  h.said = true
  if graph.count(h, 'nn') == graph.count(h, 'pu') then
    timers.put(ctx, timers.flow_due, ctx.now + 86400000, h.id)
  end
end

-- flush writes what changed, and tells those who wait for a flow.
function graph.flush(ctx)
  for flow_id, h in pairs(ctx.cache.flows) do
    if h and h.changed then
      settle_flow(ctx, h)
      graph.add(h, 'vn', 1)
      local sets, dels = {}, {}
      for field in pairs(h.dirty) do
        if h[field] then
          sets[#sets + 1], sets[#sets + 2] = field, counters[field] and reply.int(graph.count(h, field)) or h[field]
        else
          dels[#dels + 1] = field
        end
      end
      local key = keys.flow(ctx.r, flow_id)
      if #sets > 0 then redis.call('HSET', key, unpack(sets)) end
      if #dels > 0 then redis.call('HDEL', key, unpack(dels)) end
      h.dirty, h.changed = {}, nil
      if h.said then
        h.said = nil
        publish.to(keys.events(ctx.r, flow_id), h.st .. (h.en and ' 1' or ' 0'))
      end
    end
  end
  for what, n in pairs(ctx.moves.tallies or {}) do redis.call('HINCRBY', ctx.r, 'tally:' .. what, n) end
  ctx.moves.tallies = nil
end
