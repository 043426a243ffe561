-- steps: the durable steps of an execution. Their values are one hash, which claims bring along. What people are told
-- of each is another hash, the log, which no claim reads: name -> "attempt recorded took order", times in ms, and if
-- its run had frames, the place of the last one then (stream.recorded), up to which the step covers them. Both have
-- the same names. Steps are numbered in the order in which they are recorded; the answer of a wait, which is
-- recorded later, has the number of the last step before the wait. A step that records a waitpoint is in neither hash
-- but a part of the waitpoint, as long as that is remembered: lib/waitpoint.lua makes name, value and log of it.
local steps = {}

local most = 1000

-- kept calls visit for every step that is a part of a waitpoint: name, value, log, number, waitpoint and its id.
local function kept(ctx, id, visit)
  if not record.read(ctx, id).had_waits then return end
  for wid, w in pairs(waitpoint.all(ctx, id)) do
    local name, value, log, order = waitpoint.step(wid, w)
    if name then visit(name, value, log, order, w, wid) end
  end
end

-- next is the number of a step that is recorded now.
function steps.next(ctx, c, id)
  local order = reply.int(tonumber(c.step_order or '0') + 1)
  record.set(ctx, id, 'step_order', order)
  c.step_order = order
  return order
end

-- put stores a step: the attempt that it belongs to, when it was recorded, how long it took, its number, the next one
-- unless it is given, and the place of the last frame that it covers, if there is one (stream.recorded).
function steps.put(ctx, c, id, name, value, attempt, at, took, order, place)
  local log = attempt .. ' ' .. at .. ' ' .. took .. ' ' .. (order or steps.next(ctx, c, id))
  redis.call('HSET', keys.steps(ctx.r, id), name, value)
  redis.call('HSET', keys.step_log(ctx.r, id), name, place and log .. ' ' .. place or log)
end

-- place takes the place of a frame apart (stream.recorded); nil if it is none.
function steps.place(text)
  local sequence, id, more = string.match(text or '', '^(%d+) (%d+%-%d+)(.*)$')
  if not sequence then return nil end
  local durables, deltas, runs = string.match(more, '^ (%d+) (%d+) (%d+)$')
  return { text = text, sequence = sequence, id = id, durables = durables or sequence, deltas = deltas or '0',
    runs = runs or '1' }
end

-- told takes apart what the log says of a step: attempt, when it was recorded, its number, and the place of the last
-- frame that it covers, nil if it covers none.
function steps.told(text)
  local attempt, at, order, place = string.match(text or '', '^(%d+) (%d+) %d+ (%d+) ?(.*)$')
  if not attempt then return nil end
  return attempt, at, tonumber(order), steps.place(place)
end

-- order is the number of a step, nil if it is not recorded.
function steps.order(ctx, id, name)
  local _, _, order = steps.told(redis.call('HGET', keys.step_log(ctx.r, id), name) or nil)
  return order
end

-- of returns all steps, as names and values.
function steps.of(ctx, id)
  local out = redis.call('HGETALL', keys.steps(ctx.r, id))
  kept(ctx, id, function(name, value) out[#out + 1], out[#out + 2] = name, value end)
  return out
end

-- names lists all steps.
function steps.names(ctx, id)
  local out = redis.call('HKEYS', keys.steps(ctx.r, id))
  kept(ctx, id, function(name) out[#out + 1] = name end)
  return out
end

-- list returns the names of all steps, and what the log says of each and how long its value is, by name.
function steps.list(ctx, id)
  local key, told, sizes = keys.steps(ctx.r, id), {}, {}
  local names, log = redis.call('HKEYS', key), redis.call('HGETALL', keys.step_log(ctx.r, id))
  for i = 1, #log, 2 do told[log[i]] = log[i + 1] end
  for i = 1, #names do sizes[names[i]] = redis.call('HSTRLEN', key, names[i]) end
  kept(ctx, id, function(name, value, text) names[#names + 1], told[name], sizes[name] = name, text, #value end)
  return names, told, sizes
end

-- read returns value and log of a step, nil if it is not recorded.
function steps.read(ctx, id, name)
  local value = redis.call('HGET', keys.steps(ctx.r, id), name)
  if value then return value, redis.call('HGET', keys.step_log(ctx.r, id), name) end
  local log = nil
  if string.sub(name, 1, 3) ~= waitpoint.prefix then return nil end
  kept(ctx, id, function(other, text, told)
    if other == name then value, log = text, told end
  end)
  return value or nil, log
end

-- waitpoint returns the waitpoint that a step records, by the step's name: its id, nil if none is remembered.
function steps.waitpoint(ctx, id, name)
  local found = nil
  kept(ctx, id, function(other, _, _, _, _, wid)
    if other == name then found = wid end
  end)
  return found
end

-- count is how many steps there are.
function steps.count(ctx, id)
  local n = redis.call('HLEN', keys.steps(ctx.r, id))
  kept(ctx, id, function() n = n + 1 end)
  return n
end

-- full tells whether there is no room for another step, or for as many as are given besides. Waitpoints are read only
-- if it may be they that fill it.
function steps.full(ctx, id, others)
  local n = redis.call('HLEN', keys.steps(ctx.r, id)) + (others or 0)
  return n >= most or n >= most - waitpoint.most and steps.count(ctx, id) + (others or 0) >= most
end

-- since lists the steps that were recorded from a number on, in their order.
function steps.since(ctx, id, from)
  local log, found, out = redis.call('HGETALL', keys.step_log(ctx.r, id)), {}, {}
  local function add(name, order)
    if order >= from then found[#found + 1] = { name = name, order = order } end
  end
  for i = 1, #log, 2 do
    local _, _, order = steps.told(log[i + 1])
    add(log[i], order)
  end
  kept(ctx, id, function(name, _, _, order) add(name, order) end)
  table.sort(found, function(a, b)
    if a.order ~= b.order then return a.order < b.order end
    return a.name < b.name
  end)
  for i = 1, #found do out[i] = found[i].name end
  return out
end

-- named lists those of them that a handler named, and not the library.
function steps.named(ctx, id, from)
  local all, out = steps.since(ctx, id, from), {}
  for i = 1, #all do
    if string.byte(all[i], 1) ~= 31 then out[#out + 1] = all[i] end
  end
  return out
end

-- drop forgets some steps, at most the 1,000 that there may be. It returns how many bytes they had.
function steps.drop(ctx, id, names)
  local gone, bytes = {}, 0
  for i = 1, #names do
    gone[names[i]], bytes = true, bytes + #names[i] + redis.call('HSTRLEN', keys.steps(ctx.r, id), names[i])
  end
  redis.call('HDEL', keys.steps(ctx.r, id), unpack(names))
  redis.call('HDEL', keys.step_log(ctx.r, id), unpack(names))
  kept(ctx, id, function(name, value, _, _, w, wid)
    if not gone[name] then return end
    w.step, bytes = nil, bytes + #value
    waitpoint.save(ctx, id, wid, w)
  end)
  return bytes
end

-- clear forgets all of them.
function steps.clear(ctx, id)
  redis.call('UNLINK', keys.steps(ctx.r, id), keys.step_log(ctx.r, id))
  kept(ctx, id, function(_, _, _, _, w, wid)
    w.step = nil
    waitpoint.save(ctx, id, wid, w)
  end)
end

-- failed notes the step whose function returned the error that an attempt failed with, beside the record of that
-- attempt.
function steps.failed(ctx, id, attempt, name, took)
  redis.call('HSET', keys.attempts(ctx.r, id), attempt .. 's', took .. ' ' .. name)
end

-- name tells whether a text can be the name of a step; those of the library begin with the unit separator.
function steps.name(text) return text and #text >= 1 and #text <= 128 and string.byte(text, 1) ~= 31 end
