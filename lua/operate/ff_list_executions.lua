-- ff_list_executions: the executions in one index of a partition, a page at a time: waiting (key: a route id), active
-- (key: a session id), flow (key: a flow id; its members), delayed, suspended, blocked, paused, ended or unsuccessful
-- (no key), in the order of the index, or with newest the other way round; or in any state, by when they were created:
-- created (key: namespace, lane and kind, joined by the unit separator, each of which may be empty for any) or tagged
-- (key: a tag and its value, joined by =), if the catalogue has them, and there are at most 2,048 routes. A page may
-- be shorter than its limit; more
-- tells whether there is another behind its last entry. An entry without a record has an empty code, one whose record
-- cannot be read "!" and why as its code: it is drift, and the page goes on. alive is that of the session. purge is
-- when an unsuccessful one may be purged, '' in the other indexes; since is when a suspended or held one became so, ''
-- in the indexes of these, which are ordered by it.
-- Flags:   no-writes
-- Go:      Engine.ListExecutions
-- Args:    protocol index:text key:bytes(512) newest:flag score:score? member:bytes(128) limit:n(1..100) tags:flag
--          reasons:flag
-- Replies: OK now:instant size:n alive:flag more:flag executions:rows {id:text score:score code:code route:n
--          priority:int? created:instant started:instant? ended:instant? attempts:n? type:text category:text
--          session:text epoch:n? claimed:instant? until:instant? deadline:instant? retries:n? reclaims:n?
--          canceller:text cancelsource:text purge:instant? since:instant? reason:text
--          tags:rows {key:tag value:text}} routes:rows {route:n(1..) row:text} closed:rows {route:n(1..) why:text}
-- Errors:  @root invalid_input not_indexed
local ff_list = {}

ff_list.fields = { 'state', 'route', 'priority', 'created_at', 'first_claimed_at', 'ended_at', 'attempt',
  'attempt_type', 'failure_category', 'session', 'epoch', 'claimed_at', 'delay_until', 'deadline', 'retries',
  'reclaims', 'cancelled_by', 'cancel_source' }

-- index returns the key of an index, nil when there is no such index.
function ff_list.index(ctx, name, key)
  if name == 'waiting' then return args.int(key, 1, 9007199254740991) and keys.queue(ctx.r, key) end
  if name == 'active' then return #key >= 1 and #key <= 64 and keys.held(ctx.r, key) end
  if name == 'flow' then return args.id(key) and keys.members(ctx.r, key) end
  if key ~= '' then return nil end
  if name == 'delayed' then return keys.delayed(ctx.r) end
  if name == 'suspended' then return keys.parked(ctx.r) end
  if name == 'blocked' then return keys.blocked(ctx.r) end
  if name == 'paused' then return keys.paused(ctx.r) end
  if name == 'ended' then return keys.done(ctx.r) end
  if name == 'unsuccessful' then return keys.unsuccessful(ctx.r) end
  return nil
end

-- page reads a page of what is asked for: the entries, whether there are more, and of how many; nil and an error.
function ff_list.page(ctx, q, cursor)
  if q.index == 'created' or q.index == 'tagged' then
    local sets, refused = catalogue.sets(ctx, q.index, q.key)
    if not sets then return nil, refused end
    return listing.merged(sets, cursor, q.newest, q.limit)
  end
  local key = ff_list.index(ctx, q.index, q.key)
  if not key then
    return nil, reply.err('invalid_input', 'index: waiting route, active session, flow id, created key, tagged key, ' ..
      'delayed, suspended, blocked, paused, ended or unsuccessful')
  end
  return listing.page(key, cursor, q.newest, q.limit)
end

-- reason is the message of the last attempt that failed, '' when there is none: a member of a flow that was skipped
-- has a category, and was never attempted.
function ff_list.reason(ctx, c, id)
  if not c.failure_category or not c.attempt then return '' end
  local n = core.started(c)
  local texts = redis.call('HMGET', keys.attempts(ctx.r, id), reply.int(n) .. 'r', reply.int(n - 1) .. 'r')
  return texts[1] or texts[2] or ''
end

-- purge is when an entry of the index of unsuccessful ones may be purged.
function ff_list.purge(ctx, index, id)
  local at = index == 'unsuccessful' and redis.call('ZSCORE', keys.done(ctx.r), id)
  return at and reply.int(args.score(at)) or ''
end

-- since is when what is suspended or held became so, where the index does not tell.
function ff_list.since(ctx, index, c, id)
  if index == 'suspended' or index == 'paused' or not c.state then return '' end
  local key = core.suspended(c) and keys.parked(ctx.r) or core.paused(c) and keys.paused(ctx.r)
  local at = key and redis.call('ZSCORE', key, id)
  return at and reply.int(args.score(at)) or ''
end

-- add appends one entry and returns how many bytes its tags and its message have.
function ff_list.add(ctx, out, entry, routes, q)
  local c = core.read(ctx, entry.member)
  out[#out + 1], out[#out + 2] = entry.member, entry.score
  out[#out + 1] = c.state or c.damaged and '!' .. c.damaged or ''
  for i = 2, #ff_list.fields do
    local field = ff_list.fields[i]
    out[#out + 1] = field == 'attempt' and reply.int(core.started(c)) or c[field] or ''
  end
  if c.route and not routes[c.route] then
    routes[c.route] = true
    routes[#routes + 1] = c.route
  end
  out[#out + 1] = ff_list.purge(ctx, q.index, entry.member)
  out[#out + 1] = ff_list.since(ctx, q.index, c, entry.member)
  out[#out + 1] = q.reasons and ff_list.reason(ctx, c, entry.member) or ''
  local bytes = #out[#out]
  local tags = q.tags and c.has_tags and redis.call('HGETALL', keys.tags(ctx.r, entry.member)) or {}
  out[#out + 1] = reply.int(#tags / 2)
  for i = 1, #tags do
    out[#out + 1] = tags[i]
    bytes = bytes + #tags[i]
  end
  return bytes
end

local function ff_list_executions(ctx, q)
  local cursor = listing.cursor(q.score, q.member)
  if cursor == false then return reply.err('invalid_input', 'score: with a member, or neither') end
  local page, more, size = ff_list.page(ctx, q, cursor)
  if not page then return more end
  local alive = q.index == 'active' and session.read(ctx, q.key).alive and '1' or '0'
  local out, routes, bytes, count = { 1, 'OK', ctx.t, reply.int(size), alive, '', '' }, {}, 0, 0
  for i = 1, #page do
    bytes = bytes + ff_list.add(ctx, out, page[i], routes, q)
    count = i
    if bytes > 524288 then break end
  end
  out[6], out[7] = (more or count < #page) and '1' or '0', reply.int(count)
  listing.routes(ctx, out, routes)
  local shut = {}
  local open = q.index == 'waiting' or q.index == 'flow' or q.index == 'created' or q.index == 'tagged'
  for i = 1, open and #routes or 0 do
    local why = gate.closed(ctx, routes[i])
    if why ~= '' then shut[#shut + 1], shut[#shut + 2] = routes[i], why end
  end
  return reply.add(out, shut, 2)
end
