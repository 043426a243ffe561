-- ff_audit_flows: compares the headers of flows with their members, up to 100 members of a flow a call, and with
-- repair 1 puts them right: the counters, what the end of a flow follows from, its place among the flows and among
-- those that the tick tends. A flow with more members takes several calls: next, version and seen are what the call
-- before answered, 0, 0 and '' at first. next is -1 behind the last page, and -2 when the header has changed between
-- two pages: nothing can be said then, one begins anew. It may look at fewer flows than it was given, and answers at
-- how many. Members are looked at by ff_audit_executions.
-- Flags:   allow-oom
-- Go:      Engine.AuditFlows
-- Args:    protocol repair:flag flows:rows(1..100) {flow:id next:n(0..10000000) version:text seen:text}
-- Replies: OK flows:rows {next:int version:text seen:text} findings
-- Errors:  @root invalid_input
local ff_flows = { open = { 'mb', 'mw', 'md', 'ma', 'mu' }, ended = { 'ms', 'mf', 'mc', 'me', 'mk' } }

ff_flows.fields = { 'mb', 'mw', 'md', 'ma', 'mu', 'ms', 'mf', 'mc', 'me', 'mk', 'lv', 'bl', 'left', 'high' }

-- parse reads what was seen so far.
function ff_flows.parse(text)
  local seen, parts = {}, text ~= '' and pack.split(text, ' ') or {}
  if #parts ~= 0 and #parts ~= #ff_flows.fields then return nil end
  for i = 1, #ff_flows.fields do
    seen[ff_flows.fields[i]] = args.int(parts[i] or '0', 0, 1000000000)
    if not seen[ff_flows.fields[i]] then return nil end
  end
  return seen
end

function ff_flows.text(seen)
  local out = {}
  for i = 1, #ff_flows.fields do out[i] = reply.int(seen[ff_flows.fields[i]]) end
  return table.concat(out, ' ')
end

-- work counts what the backlog has of a flow under these names.
function ff_flows.work(ctx, h, names)
  local values, n = redis.call('HMGET', keys.work(ctx.r), unpack(names)), 0
  for i = 1, #names do
    if values[i] and string.sub(values[i], 1, 37) == h.id .. ',' then n = n + 1 end
  end
  return n
end

-- page counts up to 100 members from a place on, and returns the place behind them, nil at the end.
function ff_flows.page(ctx, h, seen, from)
  local list = redis.call('ZRANGE', keys.members(ctx.r, h.id), reply.int(from), reply.int(from + 99), 'WITHSCORES')
  local names = from == 0 and { 'c:' .. h.id, 'r:' .. h.id } or {}
  for i = 1, #list, 2 do
    local id = list[i]
    local c = core.read(ctx, id)
    if c.state and c.flow == h.id then
      local class, outcome = 'm' .. graph.class(c.state), graph.outcome(c)
      if seen[class] then seen[class] = seen[class] + 1 end
      if outcome and outcome ~= 's' and outcome ~= 'n' then
        local _, counted = links.leads(ctx, id)
        if counted == 0 then seen.lv = seen.lv + 1 end
      end
      seen.left, seen.high = seen.left + 1, math.max(seen.high, math.min(audit.score(list[i + 1]) + 1, 10000000))
    end
    local kinds = { 'u:', 's:', 'w:', 'x:', 'k:' }
    for n = 1, 5 do names[#names + 1] = kinds[n] .. id end
  end
  if #names > 0 and redis.call('EXISTS', keys.work(ctx.r)) == 1 then
    seen.bl = seen.bl + ff_flows.work(ctx, h, names)
  end
  return #list == 200 and from + 100 or nil
end

-- put notes that a counter is wrong, and sets it.
function ff_flows.put(ctx, h, field, value)
  local is = h[field]
  if (is == nil or audit.whole(is)) and graph.count(h, field) == value then return end
  if audit.note(ctx, 'count', 'fw:' .. h.id, field, (is or '0') .. ' counted, ' .. reply.int(value) .. ' found') then
    graph.set(h, field, reply.int(value))
  end
end

-- total settles how many members there ever were, and how many of them are gone, and returns the latter. A number is
-- given to each member and never again, so a flow without a gap, which has not ended, has lost none.
function ff_flows.total(ctx, h, seen)
  local nn, pu, least = graph.count(h, 'nn'), graph.count(h, 'pu'), math.max(seen.left, seen.high)
  if nn == seen.left + pu and nn >= seen.high then return pu end
  if pu == 0 or nn < least or seen.high == seen.left and not h.en then nn = least end
  ff_flows.put(ctx, h, 'nn', nn)
  ff_flows.put(ctx, h, 'pu', nn - seen.left)
  return nn - seen.left
end

-- outcomes counts those who ended. How a member ended that is gone is told by the counters alone, so they are raised
-- to what is seen; what is still missing, or too much, is taken for the usual end.
function ff_flows.outcomes(ctx, h, seen, gone)
  local want, sum, seen_sum = {}, 0, 0
  for i = 1, 5 do
    local f = ff_flows.ended[i]
    want[f] = gone > 0 and math.max(graph.count(h, f), seen[f]) or seen[f]
    sum, seen_sum = sum + want[f], seen_sum + seen[f]
  end
  local much = sum - seen_sum - gone
  for i = 1, 5 do
    local f = ff_flows.ended[i]
    local less = math.max(0, math.min(much, want[f] - seen[f]))
    want[f], much = want[f] - less, much - less
  end
  if much < 0 then want.ms = want.ms - much end
  for i = 1, 5 do ff_flows.put(ctx, h, ff_flows.ended[i], want[ff_flows.ended[i]]) end
end

-- ending: whether a flow has ended, and how, follows from the counters.
function ff_flows.ending(ctx, h, seen, gone)
  local unended = 0
  for i = 1, 5 do unended = unended + seen[ff_flows.open[i]] end
  local over = unended == 0 and h.st ~= 'F0' and (h.st == 'F4' or h.sl)
  local failing = seen.lv
  if gone > 0 then failing = math.max(failing, graph.count(h, 'lv')) end
  ff_flows.put(ctx, h, 'lv', failing)
  local own = (h.st == 'F2' or h.st == 'F3') and (failing > 0 and 'F3' or 'F2') or h.st
  if over and h.en and h.st ~= 'F1' and own == h.st or not over and not h.en and own ~= 'F2' and own ~= 'F3' then
    return
  end
  local detail = h.st .. ' ended at ' .. (h.en or '-') .. ', ' .. reply.int(unended) .. ' members have not'
  if not audit.note(ctx, 'flag', 'fw', h.id, detail) then return end
  if over and h.en and own ~= h.st then
    graph.set(h, 'st', own)
  else
    graph.set(h, 'en', nil) -- flush ends it, if it is to end
    if h.st ~= 'F4' and h.st ~= 'F0' then graph.set(h, 'st', 'F1') end
    h.said = true
  end
end

-- places: among the flows by when it was created; among those that the tick tends while it is staged, or when it is
-- empty.
function ff_flows.places(ctx, h, gone)
  local id, created = h.id, audit.whole(h.ct)
  local at = redis.call('ZSCORE', keys.flows(ctx.r), id)
  if not created then
    audit.broken(ctx, 'fw', id, 'a flow that was never created')
  elseif not at or audit.score(at) ~= created then
    if audit.note(ctx, at and 'score' or 'missing', 'flows', id, (at or 'nowhere') .. ', belongs at ' .. h.ct) then
      redis.call('ZADD', keys.flows(ctx.r), h.ct, id)
    end
  end
  local since = h.st == 'F0' and h.mt or h.en and graph.count(h, 'nn') == gone and h.en or nil
  since = audit.whole(since)
  at = redis.call('ZSCORE', keys.flow_due(ctx.r), id)
  if not since then return end
  local due = since + 86400000
  if at and (audit.score(at) == due or h.st ~= 'F0' and audit.score(at) <= ctx.now + 86400000) then return end
  if audit.note(ctx, at and 'score' or 'missing', 'flowdue',
    id, (at or 'nowhere') .. ', belongs at ' .. reply.int(due)) then
    timers.put(ctx, timers.flow_due, due, id)
  end
end

-- key: a flow that has not ended has its key, and no other flow has it.
function ff_flows.key(ctx, h)
  local key = h.uk and not h.en and keys.keyed(ctx.r, h.uk)
  if not key or keyed.owner(key) == graph.own(h) then return end
  local rival = graph.rival(ctx, h.uk, h.id)
  if rival then
    audit.broken(ctx, 'y', h.uk, h.id .. ' has it as well as ' .. rival.id)
  elseif audit.note(ctx, 'missing', 'y', h.uk, (keyed.owner(key) or 'nothing') .. ', belongs to ' .. graph.own(h)) then
    redis.call('SET', key, graph.own(h))
  end
end

-- compare holds the header against everything that was seen.
function ff_flows.compare(ctx, h, seen)
  ff_flows.put(ctx, h, 'bl', seen.bl)
  for i = 1, 5 do ff_flows.put(ctx, h, ff_flows.open[i], seen[ff_flows.open[i]]) end
  local gone = ff_flows.total(ctx, h, seen)
  ff_flows.outcomes(ctx, h, seen, gone)
  ff_flows.ending(ctx, h, seen, gone)
  ff_flows.places(ctx, h, gone)
  ff_flows.key(ctx, h)
  if h.st ~= 'F0' and redis.call('EXISTS', keys.roots(ctx.r, h.id)) == 1 and
      redis.call('HEXISTS', keys.work(ctx.r), 'r:' .. h.id) == 0 and
      audit.note(ctx, 'missing', 'work', 'r:' .. h.id, 'its roots were not released') then
    graph.push(ctx, 'r', h.id, h.id)
  end
end

-- flow looks at one page of a flow and returns next, version and seen.
function ff_flows.flow(ctx, q)
  local h = graph.head(ctx, q.flow)
  if not h then
    if redis.call('EXISTS', keys.flow(ctx.r, q.flow)) == 1 then
      audit.broken(ctx, 'fw', q.flow, 'a flow without state')
    end
    return '-1', '0', ''
  end
  local version = graph.text(h, 'vn')
  if q.next > 0 and version ~= q.version then return '-2', version, '' end
  local behind = ff_flows.page(ctx, h, q.seen, q.next)
  if behind then return reply.int(behind), version, ff_flows.text(q.seen) end
  ff_flows.compare(ctx, h, q.seen)
  return '-1', version, ''
end

local function ff_audit_flows(ctx, q)
  audit.begin(ctx, q.repair)
  local list = q.flows
  for i = 1, #list do
    local f = list[i]
    local text = f.seen
    f.seen = ff_flows.parse(text)
    -- what a caller leaves out by beginning in the middle would be taken for lost
    if not f.seen or f.next % 100 ~= 0 or (f.next > 0) ~= (text ~= '') then
      return reply.err('invalid_input', 'flows: next and seen')
    end
  end
  local seen, touched = {}, 0
  for i = 1, #list do
    if touched > 100 then break end
    local before = list[i].seen.left
    seen[#seen + 1], seen[#seen + 2], seen[#seen + 3] = ff_flows.flow(ctx, list[i])
    touched = touched + 2 + list[i].seen.left - before
  end
  flow.apply(ctx)
  local out = { 1, 'OK', reply.int(#seen / 3) }
  for i = 1, #seen do out[#out + 1] = seen[i] end
  return audit.finish(ctx, out)
end
