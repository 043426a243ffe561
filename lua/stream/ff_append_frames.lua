-- ff_append_frames: appends up to 100 frames to the stream of the held attempt. The producer sequence makes a
-- repeat exact: what is already there is skipped, a gap is refused, all or nothing. Neighbours that differ in nothing
-- but their payloads are one group. Its mode is d (durable), s (a summary delta) or l<ttl in ms> (best effort). If
-- there are deltas, base is the document's version before the batch, and document what it is after it. If there are
-- best-effort frames, keep is how many their log holds. The source of a frame, if it has one, is behind its correlation
-- and a unit separator.
-- Flags:   allow-oom
-- Go:      Engine.AppendFrames
-- Args:    protocol fence first:n(1..9007199254740000) groups:rows(1..100) {mode:bytes(1..6) type:bytes(128)
--          encoding:json|utf8|bytes| correlation:bytes(321) produced:instant? frames:rows(1..100)
--          {payload:bytes(65536)}} [base:n document:bytes(262144)] [keep:n(1..16384)]
-- Replies: OK id:text frames:n sequence:n version:n appended:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large execution_not_found stream_closed execution_not_active
--          stale_owner_cannot_append frame_sequence_gap summary_too_large summary_version_conflict fence_required
--          partial_fence
local ff_append = { default = 10000 } -- durable frames that an attempt keeps if its policy does not say

-- refuse maps the fence's answer to the stream's vocabulary.
function ff_append.refuse(c, answer)
  local code = answer[2]
  if code == 'lease_expired' then return reply.err('stale_owner_cannot_append', 'expired') end
  if code == 'lease_revoked' then return reply.err('stale_owner_cannot_append', 'revoked') end
  if code == 'stale_lease' then return reply.err('stale_owner_cannot_append', 'superseded') end
  if code == 'execution_not_active' and core.terminal(c) then return reply.err('stream_closed', c.state) end
  return answer
end

-- has reads what the attempt of a fence has.
function ff_append.has(ctx, c, f)
  local m = {}
  if c.frames_attempt == f.attempt then
    m = redis.call('HMGET', keys.meta(ctx.r, f.id, f.attempt), 'c', 'b', 'q', 'i', 'z', 'k', 'v', 'l', 'e')
  end
  return { durables = tonumber(m[1] or '0'), bytes = tonumber(m[2] or '0'), sequence = tonumber(m[3] or '0'),
    id = m[4] or '0-0', closed = m[5], keep = tonumber(m[6] or '0'), version = tonumber(m[7] or '0'),
    lives = tonumber(m[8] or '0'), run = m[9] }
end

-- begin enters the first frames of an attempt on its record, and how many it keeps.
function ff_append.begin(ctx, c, f, has)
  has.keep = policy.read(c.policy).frames
  record.set(ctx, f.id, 'frames_attempt', f.attempt)
  if has.keep > 0 then redis.call('HSET', keys.meta(ctx.r, f.id, f.attempt), 'k', reply.int(has.keep)) end
end

-- enter stores the counts of an attempt and the run of its last frame. first is the id of the batch's first frame. It
-- returns, if another run begins with that, the run's number and what its entry says.
function ff_append.enter(ctx, c, f, has, first)
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local total, bytes, sequence = reply.int(has.durables), reply.int(has.bytes), reply.int(has.sequence)
  if has.run == f.epoch then
    redis.call('HSET', meta, 'c', total, 'b', bytes, 'q', sequence, 'i', has.id)
    return
  end
  redis.call('HSET', meta, 'c', total, 'b', bytes, 'q', sequence, 'i', has.id, 'e', f.epoch)
  if has.run then return stream.begin(ctx, f, has, c.last_release, first) end
end

-- publish tells live tailers: attempt, count, the run's number, what its entry says if it begins here, then the frames.
function ff_append.publish(ctx, f, count, told, number, entry)
  number = number or redis.call('HGET', keys.meta(ctx.r, f.id, f.attempt), 'n') or '1'
  entry = entry or ''
  publish.to(keys.frames(ctx.r, f.id),
    f.attempt .. ' ' .. reply.int(count) .. ' ' .. number .. ' ' .. reply.int(#entry) .. ':' .. entry ..
    table.concat(told))
end

local function ff_append_frames(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local first = args.int(argv[7], 1, 9007199254740000)
  if not first then return reply.err('invalid_input', 'first sequence') end
  local batch
  batch, bad = frames.parse(argv, 8)
  if not batch then return bad end

  local c = core.read(ctx, f.id)
  bad = fence.check(ctx, c, f)
  if bad then return ff_append.refuse(c, bad) end
  local has = ff_append.has(ctx, c, f)
  if has.closed then return reply.err('stream_closed', 'attempt') end
  if first > has.sequence + 1 then return reply.err('frame_sequence_gap', reply.int(has.sequence)) end
  local known = math.min(has.sequence + 1 - first, batch.count)
  if known == batch.count then
    return reply.already(has.id, reply.int(has.durables), reply.int(has.sequence), reply.int(has.version), '0')
  end
  if known > 0 then frames.skip(batch, argv, known) end
  if batch.s > 0 and batch.base ~= has.version then
    return reply.err('summary_version_conflict', reply.int(has.version))
  end

  if c.frames_attempt ~= f.attempt then ff_append.begin(ctx, c, f, has) end
  local told = publish.listeners(keys.frames(ctx.r, f.id)) > 0 and {} or nil
  has.before, has.most = has.durables, has.keep > 0 and has.keep or ff_append.default
  has.bytes = has.bytes + batch.bytes
  local id = frames.write(ctx, f, argv, batch, has, told)
  frames.trim(ctx, f, has)
  if batch.s > 0 then frames.summarize(ctx, f, batch, has) end
  if batch.l > 0 then frames.expire(ctx, f, batch, has) end
  local number, entry = ff_append.enter(ctx, c, f, has, id)
  if told then ff_append.publish(ctx, f, batch.count, told, number, entry) end
  return reply.ok(has.id, reply.int(has.durables), reply.int(has.sequence), reply.int(has.version),
    reply.int(batch.count))
end
