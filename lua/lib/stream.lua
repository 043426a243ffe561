-- stream: the part of an attempt's output stream that transitions touch. Meta fields: c durable frames ever
-- appended, v summary deltas (the document's version), l best-effort frames, b payload bytes, q last producer sequence,
-- i last id, k durable frames to keep, z closed at, y closed reason. It counts for all three logs, and closes them all.
local stream = {}

-- finish closes the stream of an attempt that has one; the first close wins (spec 30 T17). The event that every
-- transition publishes wakes the tailers.
function stream.finish(ctx, id, attempt, reason)
  local meta = keys.meta(ctx.r, id, attempt)
  if redis.call('HSETNX', meta, 'z', ctx.t) == 1 then redis.call('HSET', meta, 'y', reason) end
end

-- close does that for the current attempt of a core.
function stream.close(ctx, c, id, reason)
  local attempt = core.attempt(c)
  if attempt ~= '' and c.fa == attempt then stream.finish(ctx, id, attempt, reason) end
end
