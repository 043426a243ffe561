-- steps: the durable steps of an execution. Their values are one hash, which claims bring along. What people are told of each is another
-- hash, the log, which no claim reads: name -> "attempt recorded took", the last two in ms. Both have the same names.
local steps = {}

-- put stores a step: the attempt that it belongs to, when it was recorded, and how long it took.
function steps.put(ctx, id, name, value, attempt, at, took)
  redis.call('HSET', keys.steps(ctx.r, id), name, value)
  redis.call('HSET', keys.step_log(ctx.r, id), name, attempt .. ' ' .. at .. ' ' .. took)
end

-- drop forgets some steps, at most the 1,000 that there may be.
function steps.drop(ctx, id, names)
  redis.call('HDEL', keys.steps(ctx.r, id), unpack(names))
  redis.call('HDEL', keys.step_log(ctx.r, id), unpack(names))
end

-- clear forgets all of them.
function steps.clear(ctx, id) redis.call('UNLINK', keys.steps(ctx.r, id), keys.step_log(ctx.r, id)) end

-- failed notes the step whose function returned the error that an attempt failed with, beside the record of that attempt.
function steps.failed(ctx, id, attempt, name, took)
  redis.call('HSET', keys.attempts(ctx.r, id), attempt .. 's', took .. ' ' .. name)
end

-- name tells whether a text can be the name of a step; those of the library begin with the unit separator.
function steps.name(text) return text and #text >= 1 and #text <= 128 and string.byte(text, 1) ~= 31 end
