-- stream: the part of an attempt's output stream that transitions touch. Meta fields: c durable frames ever
-- appended, v summary deltas (the document's version), l best-effort frames, b payload bytes, q last producer sequence,
-- i last id, k durable frames to keep, m<number> marks and t the last one that was used (frames.trim), z closed at,
-- y closed reason, e run of the last frame, n runs when there is more than one, r the place of the last
-- frame that a recorded step covers (stream.recorded). It counts for all three logs, and closes them all.
--
-- A run is one pass of the handler: it has the epoch of its claim. A claim that is kept while the handler runs again
-- (its wait was answered already) is marked in e by a letter. A later run of an attempt repeats what the earlier one
-- left unrecorded, so its first frame has an entry of the same id in the log of runs: n number, e epoch, w why the
-- run before it stopped, r its sequence and id, d durable frames before it.
local stream = {}

local reasons = { h = 'released', d = 'delayed', u = 'suspended' } -- by the letter of the release

-- begin enters the run of a fence whose first frame was just appended. has says of the attempt: run, that of the frame
-- before, before, how many durable frames came before, and most, how many it keeps. release is the last one of the
-- core. It returns the run's number, and for live tailers what its entry says.
function stream.begin(ctx, f, has, release, first)
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local v = redis.call('HMGET', meta, 'n', 'r')
  local number = reply.int((tonumber(v[1] or '1') or 1) + 1)
  local recorded = string.match(v[2] or '', '^%d+ %d+%-%d+') or '0 0-0'
  local own, before = string.match(has.run, '^' .. f.epoch .. '(%a)$'), reply.int(has.before)
  local why = reasons[own or string.match(release or '', '^(%a),') or ''] or ''
  redis.call('XADD', keys.runs(ctx.r, f.id, f.attempt), 'MAXLEN', '~', has.most + 256, first, 'n', number, 'e', f.epoch,
    'w', why, 'r', recorded, 'd', before)
  redis.call('HSET', meta, 'n', number)
  return number, f.epoch .. ' ' .. why .. ' ' .. recorded .. ' ' .. before
end

-- again notes that the handler runs again under the claim that it has.
function stream.again(ctx, c, f)
  if c.frames_attempt == f.attempt then redis.call('HSET', keys.meta(ctx.r, f.id, f.attempt), 'e', f.epoch .. 'u') end
end

-- recorded notes that a step of this fence was recorded: the frames of its run until now are not repeated. A run that
-- has appended nothing leaves the frames of an earlier one as they are. It returns the place of the last one, nil if
-- its run has appended nothing: sequence and id, and if there are frames of other modes or several runs, how many
-- durable ones, deltas and runs there are up to it.
function stream.recorded(ctx, c, f)
  if c.frames_attempt ~= f.attempt then return nil end
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local v = redis.call('HMGET', meta, 'e', 'q', 'i', 'c', 'v', 'n')
  if v[1] ~= f.epoch or not v[2] or not v[3] then return nil end
  local place = v[2] .. ' ' .. v[3]
  if v[4] ~= v[2] or v[6] then
    place = place .. ' ' .. (v[4] or '0') .. ' ' .. (v[5] or '0') .. ' ' .. (v[6] or '1')
  end
  redis.call('HSET', meta, 'r', place)
  return place
end

-- finish closes the stream of an attempt that has one; the first close wins. The event that every
-- transition publishes wakes the tailers.
function stream.finish(ctx, id, attempt, reason)
  local meta = keys.meta(ctx.r, id, attempt)
  if redis.call('HSETNX', meta, 'z', ctx.t) == 1 then redis.call('HSET', meta, 'y', reason) end
end

-- close does that for the current attempt of a core.
function stream.close(ctx, c, id, reason)
  local attempt = core.attempt(c)
  if attempt ~= '' and c.frames_attempt == attempt then stream.finish(ctx, id, attempt, reason) end
end
