-- wait_children: what an execution keeps of the children that it made and waits for, in one core field: "mode children
-- succeeded others after state rest". mode is all, first, success (the first that succeeds) or fast (all have
-- succeeded, or one did not); after is run or cancel, what becomes of the children that are open when the wait is
-- over; state is m (its children are being made), p or d, decided; rest is cancel or leave, what becomes of the
-- children if the parent ends first. The children are a hash beside it: child -> "mark,attempt,node", and under the
-- name 'name' what the handler calls the wait. It stays until the next one. Executions that it did not make are in it
-- under their full ids (lib/wait_others.lua): they count as children do, and nobody cancels them. The mark x is for one
-- that is gone, and nothing tells how it ended. When a wait is over, its outcomes become the step '\31c:' .. name,
-- which the next claim brings: so every later pass is told the same, and none has to ask. The parent is suspended
-- with a condition that has the part K, which other things may end, too (lib/suspension.lua).
local wait_children = {}

wait_children.modes = { all = true, first = true, success = true, fast = true }

function wait_children.parse(text)
  local mode, n, s, o, after, state, rest = string.match(text or '', '^(%l+) (%d+) (%d+) (%d+) (%l+) (%l) (%l+)$')
  if not mode then return nil end
  return { mode = mode, children = tonumber(n), succeeded = tonumber(s), others = tonumber(o), after = after,
    state = state, rest = rest }
end

function wait_children.text(w)
  return w.mode .. ' ' .. reply.int(w.children) .. ' ' .. reply.int(w.succeeded) .. ' ' .. reply.int(w.others) ..
      ' ' .. w.after .. ' ' .. w.state .. ' ' .. w.rest
end

-- count adds an outcome and tells whether that decided the wait.
function wait_children.count(w, mark)
  if mark == 's' then w.succeeded = w.succeeded + 1 else w.others = w.others + 1 end
  return wait_children.decide(w)
end

function wait_children.decide(w)
  if w.state ~= 'p' then return false end
  local ended = w.succeeded + w.others
  if ended >= w.children or (w.mode == 'first' and ended > 0) or (w.mode == 'success' and w.succeeded > 0) or
      (w.mode == 'fast' and w.others > 0) then
    w.state = 'd'
  end
  return w.state == 'd'
end

-- tally counts the children as they are now; w says what is waited for.
function wait_children.tally(ctx, id, w)
  local v = redis.call('HGETALL', keys.children(ctx.r, id))
  w.children, w.succeeded, w.others, w.state = 0, 0, 0, 'p'
  for i = 1, #v, 2 do
    if #v[i] >= 36 then
      local mark = group.record(v[i + 1])
      w.children = w.children + 1
      if mark == 's' then w.succeeded = w.succeeded + 1 elseif mark ~= '.' and mark ~= '~' then
        w.others = w.others + 1
      end
    end
  end
  wait_children.decide(w)
  return w
end

-- make notes what is waited for, for the case that the execution ends before it waits.
function wait_children.make(ctx, id, q)
  local w = wait_children.tally(ctx, id, { mode = q.mode, after = q.after, rest = q.rest })
  w.state = 'm'
  record.set(ctx, id, 'children_wait', wait_children.text(w))
end

-- outcomes is what the handler is told: child, mark, attempt and node of each, an open one with the mark '.'.
function wait_children.outcomes(v)
  local out = {}
  for i = 1, #v, 2 do
    if #v[i] >= 36 then out[#out + 1] = v[i] .. ',' .. string.gsub(v[i + 1], '^%.,1,', '.,,', 1) end
  end
  table.sort(out)
  return table.concat(out, '\31')
end

function wait_children.step(name) return '\31c:' .. name end

-- room returns an error reply when the outcomes of count children, and other steps that come first, do not fit among
-- the steps.
function wait_children.room(ctx, c, id, name, count, others)
  local key, step = keys.steps(ctx.r, id), wait_children.step(name)
  if redis.call('HEXISTS', key, step) == 1 then return nil end
  if tonumber(c.step_bytes or '0') + #step + 120 * count > 8388608 then
    return reply.err('step_limit_exceeded', 'bytes: at most 8388608')
  end
  if steps.full(ctx, id, others) then
    return reply.err('step_limit_exceeded', 'steps: at most 1000')
  end
  return nil
end

-- listed is how many a wait of this name has; none if the list is that of another wait.
function wait_children.listed(ctx, id, name)
  local key = keys.children(ctx.r, id)
  local v = redis.call('HMGET', key, 'name', 'others')
  return v[1] == name and redis.call('HLEN', key) - (v[2] and 2 or 1) or 0
end

-- fresh prepares the list for a wait of this name.
function wait_children.fresh(ctx, c, id, name)
  local key = keys.children(ctx.r, id)
  if redis.call('HGET', key, 'name') == name then return end
  wait_others.leave(ctx, c, id)
  redis.call('UNLINK', key)
  redis.call('HSET', key, 'name', name)
  if c.children_wait then record.clear(ctx, id, 'children_wait') end
end

-- open lists the children that have not ended, those that depend on others before these: so that nobody who is about
-- to be cancelled spares another.
function wait_children.open(ctx, v, flow_id)
  local ids, numbers, at, out = {}, {}, {}, {}
  for i = 1, #v, 2 do
    local mark = #v[i] == 36 and string.byte(v[i + 1], 1)
    if mark == 46 or mark == 126 then ids[#ids + 1] = v[i] end -- . or ~
  end
  for first = 1, #ids, 500 do
    local last = math.min(first + 499, #ids)
    local scores = redis.call('ZMSCORE', keys.members(ctx.r, flow_id), unpack(ids, first, last))
    for i = first, last do
      local score = scores[i - first + 1]
      local number = score and tonumber(score) or -i -- one that the flow has lost comes last
      numbers[i], at[number] = number, ids[i]
    end
  end
  table.sort(numbers) -- plain numbers: a comparison in Lua would take as long as all the rest
  for i = #numbers, 1, -1 do out[#out + 1] = at[numbers[i]] end
  return table.concat(out)
end

-- work is the name of what cancels the open children of a wait that is over. A parent may have several such at once.
function wait_children.work(ctx, id, name)
  return id .. ':' .. reply.int(steps.order(ctx, id, wait_children.step(name)) or 0)
end

-- over ends a wait: how the children are now becomes a step, and those that are open are cancelled if the wait says
-- so. Room for the step was judged when the wait began. name is that of the wait, nil: as the hash says. It returns
-- the outcomes.
function wait_children.over(ctx, id, w, name)
  local c, v = record.read(ctx, id), redis.call('HGETALL', keys.children(ctx.r, id))
  local outcomes = wait_children.outcomes(v)
  for i = 1, #v, 2 do
    if v[i] == 'name' then name = v[i + 1] end
  end
  name = name or ''
  wait_others.over(ctx, id, v)
  local key, step = keys.steps(ctx.r, id), wait_children.step(name)
  if redis.call('HEXISTS', key, step) == 0 then
    record.set(ctx, id, 'step_bytes', reply.int(tonumber(c.step_bytes or '0') + #step + #outcomes))
    steps.put(ctx, record.read(ctx, id), id, step, outcomes, core.attempt(c), ctx.t, '0')
  end
  w.state = 'd'
  record.set(ctx, id, 'children_wait', wait_children.text(w))
  local open = w.after == 'cancel' and wait_children.open(ctx, v, c.flow) or ''
  if open ~= '' then graph.push(ctx, 'o', wait_children.work(ctx, id, name), c.flow, '0 ' .. open) end
  return outcomes
end
