-- steps: the durable steps of an execution. Their values are one hash, which claims bring along. What people are told
-- of each is another hash, the log, which no claim reads: name -> "attempt recorded took order", times in ms. Both
-- have the same names. Steps are numbered in the order in which they are recorded; the answer of a wait, which is
-- recorded later, has the number of the last step before the wait.
local steps = {}

-- put stores a step: the attempt that it belongs to, when it was recorded, how long it took, and its number, the next
-- one unless it is given.
function steps.put(ctx, c, id, name, value, attempt, at, took, order)
  if not order then
    order = reply.int(tonumber(c.step_order or '0') + 1)
    record.set(ctx, id, 'step_order', order)
    c.step_order = order
  end
  redis.call('HSET', keys.steps(ctx.r, id), name, value)
  redis.call('HSET', keys.step_log(ctx.r, id), name, attempt .. ' ' .. at .. ' ' .. took .. ' ' .. order)
end

-- order is the number of a step, nil if it is not recorded.
function steps.order(ctx, id, name)
  local text = redis.call('HGET', keys.step_log(ctx.r, id), name)
  return tonumber((string.match(text or '', ' (%d+)$')))
end

-- since lists the steps that were recorded from a number on.
function steps.since(ctx, id, from)
  local log, out = redis.call('HGETALL', keys.step_log(ctx.r, id)), {}
  for i = 1, #log, 2 do
    if tonumber((string.match(log[i + 1], ' (%d+)$'))) >= from then out[#out + 1] = log[i] end
  end
  return out
end

-- drop forgets some steps, at most the 1,000 that there may be.
function steps.drop(ctx, id, names)
  redis.call('HDEL', keys.steps(ctx.r, id), unpack(names))
  redis.call('HDEL', keys.step_log(ctx.r, id), unpack(names))
end

-- clear forgets all of them.
function steps.clear(ctx, id) redis.call('UNLINK', keys.steps(ctx.r, id), keys.step_log(ctx.r, id)) end

-- failed notes the step whose function returned the error that an attempt failed with, beside the record of that
-- attempt.
function steps.failed(ctx, id, attempt, name, took)
  redis.call('HSET', keys.attempts(ctx.r, id), attempt .. 's', took .. ' ' .. name)
end

-- name tells whether a text can be the name of a step; those of the library begin with the unit separator.
function steps.name(text) return text and #text >= 1 and #text <= 128 and string.byte(text, 1) ~= 31 end
