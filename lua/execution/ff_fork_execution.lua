-- ff_fork_execution: makes another execution of what one has recorded: in the same namespace, lane and kind, with its
-- input (other 1: with another one), tags, policy and priority, all steps that were recorded before a named one ('' =
-- all that are), messages that were received and answers of waits among them. The deadline gets its original span. It
-- has the attempts up to that of its last step; their frames are not copied but referred to, up to the last one that
-- its steps cover. What waits or runs stays behind: open waits, waitpoints, children, messages that nobody has
-- received, the key. Gates are those of the execution and those that its scopes have now. The execution itself, in
-- whatever state, is not touched. left are the names of the steps that stay behind. An execution that this call has
-- made is not made twice; its steps then are those that it has by now, and left is empty.
-- Flags:   none
-- Go:      Engine.ForkExecution
-- Args:    protocol id:id fork:uuid step:bytes(128) other:flag !payload_too_large input:bytes(1048576)
-- Replies: OK code:code attempts:n steps:n left:rows {name:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large execution_not_found result_purged step_not_found step_limit_exceeded
--          idempotency_conflict lane_closed too_many_routes corrupt
local ff_fork = {}

-- choose tells which of the recorded steps a fork keeps, by number before from; nil: all. It returns the names of
-- those, and of the others, the last attempt of those, when they were recorded, and up to where they cover the frames
-- of each attempt.
function ff_fork.choose(ctx, id, from)
  local log, told, keep, drop, left = redis.call('HGETALL', keys.step_log(ctx.r, id)), {}, {}, {}, {}
  local last, at, covered = 0, '0', {}
  for i = 1, #log, 2 do told[log[i]] = log[i + 1] end
  for i = 1, #log, 2 do
    local name = log[i]
    local attempt, when, order, place = steps.told(log[i + 1])
    local wait = string.match(name, '^streamed: (.*)$') -- the frames announce children that are made again
    local outcome = wait and told[wait_children.step(wait)]
    local _, _, over = steps.told(outcome)
    local announces = wait and (not outcome or from and over >= from)
    if (from and order >= from) or announces or string.sub(name, 1, 3) == waitpoint.prefix then
      drop[#drop + 1] = name
      if string.byte(name, 1) ~= 31 then left[#left + 1] = name end
    else
      keep[#keep + 1] = name
      if tonumber(attempt) > last then last = tonumber(attempt) end
      if tonumber(when) > tonumber(at) then at = when end
      local c = covered[attempt]
      if place and (not c or tonumber(place.sequence) > tonumber(c.sequence)) then covered[attempt] = place end
    end
  end
  table.sort(left)
  return keep, drop, left, { last = last, at = at, covered = covered }
end

-- rest is what the last wait of an execution was answered, if that is no step yet and its wait began before a step of
-- this number; nil, and maybe an error.
function ff_fork.rest(ctx, c, id, from)
  if not c.had_waits then return nil end
  local u = suspension.read(ctx, id)
  if from and tonumber(u.after or '0') >= from then return nil end
  local kept, bad = suspension.remember(ctx, c, id, u)
  if not kept then return nil, bad end
  local attempt, at, took = suspension.span(ctx, u)
  kept.log = attempt .. ' ' .. at .. ' ' .. took .. ' ' .. (u.after or '0')
  kept.attempt, kept.at = tonumber(attempt), at
  return kept
end

-- group is what ff_create_execution would be told of a fork.
function ff_fork.group(ctx, c, id)
  local namespace, name, rest, gates = route.split(route.read(ctx, c.route))
  if not namespace then return nil end
  local kind, caps = string.match(rest, '^([^\31]*)\31(.*)$')
  if gates ~= '' then caps = caps .. '\31' .. gates end
  local tags = c.has_tags and redis.call('HGETALL', keys.tags(ctx.r, id)) or {}
  local group = { namespace = namespace, lane = name, kind = kind, capabilities = caps, priority = c.priority or '0',
    delay = '', deadline = '', policy = '', timeout = '', creator = '', tags = tags }
  group.name = table.concat({ namespace, name, kind, caps, group.priority, '', '', '', '', '' }, '\n')
  return group
end

-- refuse tells why no fork is made in a group; nil when it may be.
function ff_fork.refuse(ctx, group)
  if not group then return reply.err('corrupt', 'its route has no row') end
  local why = create.template(ctx, group).refusal or create.admit(ctx, { group = group })
  if not why then return nil end
  local code, detail = string.match(why, '^%-(%S+) ?(.*)$')
  return reply.err(code, detail)
end

-- values copies steps and what the log says of them, and returns their bytes.
function ff_fork.values(ctx, id, to, keep, drop)
  local bytes = 0
  if #keep == 0 then return bytes end
  local pairs_ = { { keys.steps(ctx.r, id), keys.steps(ctx.r, to) },
    { keys.step_log(ctx.r, id), keys.step_log(ctx.r, to) } }
  for i = 1, 2 do
    redis.call('COPY', pairs_[i][1], pairs_[i][2])
    if #drop > 0 then redis.call('HDEL', pairs_[i][2], unpack(drop)) end
  end
  for i = 1, #keep do bytes = bytes + #keep[i] + redis.call('HSTRLEN', pairs_[1][2], keep[i]) end
  return bytes
end

-- attempts gives a fork the attempts up to a number, of which it is told when the last one ended for it, and what of
-- their frames it has. covered says up to where the steps cover those of this link; earlier ones count whole.
function ff_fork.attempts(ctx, c, id, to, n, cut)
  local r, folded, held = ctx.r, {}, {}
  local _, first, kept = chain.of(c)
  for attempt = kept, n do
    local a = reply.int(attempt)
    local v = redis.call('HMGET', keys.attempts(r, id), a, a .. 'r', a .. 'b', a .. 'w', a .. 's')
    if attempt == n and attempt >= first then
      local had = v[1] and pack.split(v[1], '\31') or { c.attempt_type or '', c.claimed_at or '', '', '', '',
        c.session or '', c.epoch or '', c.claim_number or '', core.began(c) or '' }
      had[3], had[4], had[5] = cut.at, 'forked', ''
      v[1], v[2], v[4], v[5] = table.concat(had, '\31'), false, false, false
    end
    if attempt == n and v[1] then -- its claims have later epochs
      record.set(ctx, to, 'epoch', pack.split(v[1], '\31')[7])
    end
    if v[1] then folded[#folded + 1], folded[#folded + 2] = a, v[1] end
    if v[2] then folded[#folded + 1], folded[#folded + 2] = a .. 'r', v[2] end
    if v[4] then folded[#folded + 1], folded[#folded + 2] = a .. 'w', v[4] end
    if v[5] then folded[#folded + 1], folded[#folded + 2] = a .. 's', v[5] end
    local before, place = base.read(v[3] or ''), cut.covered[a]
    local owner = before and before.owner or id
    if attempt < first then
      place = before or steps.place(redis.call('HGET', keys.meta(r, owner, a), 'r') or nil)
      if attempt <= tonumber(c.dropped_attempts or '0') then place = nil end
    end
    if place then
      folded[#folded + 1] = a .. 'b'
      folded[#folded + 1] = base.measure(ctx, owner, a, place)
      held[owner] = held[owner] or {}
      held[owner][#held[owner] + 1] = a
      ff_fork.summary(ctx, owner, to, a, folded[#folded])
    end
  end
  if #folded > 0 then
    for at = 1, #folded, 500 do
      redis.call('HSET', keys.attempts(r, to), unpack(folded, at, math.min(at + 499, #folded)))
    end
  end
  for owner, list in pairs(held) do base.hold(ctx, owner, to, list) end
end

-- summary copies the summary document of an attempt, if it is that of the last delta which the fork has.
function ff_fork.summary(ctx, owner, to, a, text)
  local b = base.read(text)
  if b.deltas == '0' then return end
  local key = keys.summary(ctx.r, owner, a)
  if redis.call('HGET', key, 'v') == b.deltas then redis.call('COPY', key, keys.summary(ctx.r, to, a)) end
end

-- input gives a fork its input, in its record or beside it.
function ff_fork.input(ctx, c, id, n, to, q)
  local size = q.other and #q.input or tonumber(c.input_size or '0')
  if size > 0 then n.input_size = reply.int(size) end
  if size > 0 and size <= record.inline then
    n.input = q.other and q.input or c.input
  elseif size > 0 and q.other then
    record.write(ctx, keys.input(ctx.r, to), q.input)
  elseif size > 0 then
    redis.call('COPY', keys.input(ctx.r, id), keys.input(ctx.r, to))
  end
end

-- turn is the turn that a fork is in which keeps the steps before a number, nil: all; nil for its first one.
function ff_fork.turn(c, from)
  if not c.turn or not from then return c.turn end
  return reply.int(math.min(talk.turn(c), from - 1))
end

-- fresh is the record of a fork.
function ff_fork.fresh(ctx, c, id, q, t)
  local by = trail.by(ctx)
  local n = { state = 'R1f', created_at = ctx.t, route = t.route, priority = c.priority, policy = c.policy,
    retention = c.retention, has_categories = c.has_categories, attempt_timeout = c.attempt_timeout,
    has_tags = c.has_tags, creator = by ~= '' and by or c.creator, links = c.links,
    fork_of = id .. ' ' .. q.step, turn = ff_fork.turn(c, q.from) }
  if c.deadline then
    local span = tonumber(c.deadline_span or '') or tonumber(c.deadline) - tonumber(c.created_at)
    n.deadline = reply.int(ctx.now + math.max(1, span))
  end
  return n
end

-- make writes a fork.
function ff_fork.make(ctx, c, q, group, keep, drop, cut, rest)
  local id, to, t = q.id, q.fork, group.template
  create.place(ctx, t)
  local n = ff_fork.fresh(ctx, c, id, q, t)
  local _, first = chain.of(c)
  local last = math.max(cut.last, rest and rest.attempt or 0)
  if last == 0 then last = first - 1 end
  if rest and tonumber(rest.at) > tonumber(cut.at) then cut.at = rest.at end
  if last > 0 then
    n.attempt, n.base = reply.int(last), reply.int(last)
    if last >= first then n.state = 'R1p' end
  end
  local bytes = ff_fork.values(ctx, id, to, keep, drop)
  if rest then
    bytes = bytes + #rest.name + #rest.value
    redis.call('HSET', keys.steps(ctx.r, to), rest.name, rest.value)
    redis.call('HSET', keys.step_log(ctx.r, to), rest.name, rest.log)
  end
  if c.step_order then n.step_order = c.step_order end
  if bytes > 0 then n.step_bytes = reply.int(bytes) end
  if c.has_tags then redis.call('COPY', keys.tags(ctx.r, id), keys.tags(ctx.r, to)) end
  local categories = c.has_categories and redis.call('HGET', keys.attempts(ctx.r, id), 'categories')
  if categories then redis.call('HSET', keys.attempts(ctx.r, to), 'categories', categories) end
  ff_fork.input(ctx, c, id, n, to, q)
  record.add(ctx, to, n)
  ff_fork.attempts(ctx, c, id, to, last, cut)
  route.used(ctx, t.route, 1)
  catalogue.add(ctx, t.route, n.created_at, to, group.tags)
  indexes.enqueue(ctx, t.route, lane.score(ctx, n), to)
  if n.deadline then indexes.alarm(ctx, tonumber(n.deadline), to) end
  local by, why = trail.by(ctx), trail.why(ctx, 1024)
  local at = string.match(ctx.r, '%d+') .. '-' -- full ids
  history.add(ctx, n, to, 'forked', by, '< ' .. at .. id .. ' ' .. q.step .. '\31' .. why)
  history.add(ctx, c, id, 'forked', by, '> ' .. at .. to .. ' ' .. q.step .. '\31' .. why)
  return n
end

-- known answers for a fork whose id exists, or existed; nil when it is new.
function ff_fork.known(ctx, q)
  local c = core.read(ctx, q.fork)
  if c.state and c.fork_of == q.id .. ' ' .. q.step then
    return reply.already(c.state, reply.int(core.started(c)), reply.int(steps.count(ctx, q.fork)), '0')
  end
  if c.state then return reply.err('idempotency_conflict', q.fork) end
  local code = purge.read(ctx, q.fork)
  return code and reply.err('result_purged', code)
end

local function ff_fork_execution(ctx, q)
  local id, step = q.id, q.step
  if step ~= '' and not steps.name(step) then return reply.err('invalid_input', 'step: another first byte') end
  if q.fork == id then return reply.err('invalid_input', 'fork: the id of another execution') end
  local answer = ff_fork.known(ctx, q)
  if answer then return answer end
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  if c.purged_until then return reply.err('result_purged', c.state) end
  if c.has_inputs then return reply.err('invalid_input', 'it is a member that others have left inputs') end
  local from = nil
  if step ~= '' then
    from = c.step_bytes and steps.order(ctx, id, step)
    if not from then return reply.err('step_not_found', step) end
  end
  q.from = from
  local group, rest = ff_fork.group(ctx, c, id), nil
  answer = ff_fork.refuse(ctx, group)
  if answer then return answer end
  rest, answer = ff_fork.rest(ctx, c, id, from)
  if answer then return answer end
  local keep, drop, left, cut = ff_fork.choose(ctx, id, from)
  local n = ff_fork.make(ctx, c, q, group, keep, drop, cut, rest)
  indexes.apply(ctx)
  create.close(ctx)
  local out = { 1, 'OK', n.state, n.attempt or '0', reply.int(#keep + (rest and 1 or 0)), reply.int(#left) }
  for i = 1, #left do out[#out + 1] = left[i] end
  return out
end
