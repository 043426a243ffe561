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

-- has reads what the attempt of a fence has, from its metadata.
function ff_append.has(f, meta)
  local m = redis.call('HMGET', meta, 'c', 'b', 'q', 'i', 'z', 'k', 'v', 'l', 'e', 't')
  if not m[3] then return nil end
  return { durables = tonumber(m[1]), bytes = tonumber(m[2]), sequence = tonumber(m[3]), id = m[4], closed = m[5],
    keep = tonumber(m[6] or '0'), version = tonumber(m[7] or '0'), lives = tonumber(m[8] or '0'), run = m[9],
    gone = m[10] and tonumber(string.match(m[10], '^%d+')) or 0 }
end

-- begin enters the first frames of an attempt on its record, and how many it keeps.
function ff_append.begin(ctx, c, f, has, set)
  has.keep = policy.read(c.policy).frames
  record.set(ctx, f.id, 'frames_attempt', f.attempt)
  if has.keep > 0 then set[2], set[3] = 'k', reply.int(has.keep) end
end

-- enter has the counts of an attempt and the run of its last frame set. first is the id of the batch's first frame. It
-- returns, if another run begins with that, the run's number and what its entry says.
function ff_append.enter(ctx, f, has, first, set)
  local n = #set
  has.q = reply.int(has.sequence)
  has.c = has.durables == has.sequence and has.q or reply.int(has.durables)
  set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'c', has.c, 'q', has.q
  set[n + 5], set[n + 6], set[n + 7], set[n + 8] = 'b', reply.int(has.bytes), 'i', has.id
  if has.run == f.epoch then return end
  set[n + 9], set[n + 10] = 'e', f.epoch
  if has.run then return stream.begin(ctx, f, has, core.read(ctx, f.id).last_release, first) end
end

-- publish tells live tailers what told has: attempt, count, the run's number, what its entry says if it begins here,
-- for which the first place is left, then the frames.
function ff_append.publish(ctx, f, count, told, number, entry, meta)
  number = number or redis.call('HGET', meta, 'n') or '1'
  entry = entry or ''
  told[1] = f.attempt .. ' ' .. reply.int(count) .. ' ' .. number .. ' ' .. reply.int(#entry) .. ':' .. entry
  publish.to(keys.frames(ctx.r, f.id), table.concat(told))
end

local function ff_append_frames(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local first = args.int(argv[7], 1, 9007199254740000)
  if not first then return reply.err('invalid_input', 'first sequence') end
  local batch
  batch, bad = frames.parse(argv, 8)
  if not batch then return bad end

  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local has, c = fence.holds(ctx, f) and ff_append.has(f, meta), nil
  if not has then -- refused, or the first frames of the attempt
    c = core.read(ctx, f.id)
    bad = fence.check(ctx, c, f)
    if bad then return ff_append.refuse(c, bad) end
    has = { durables = 0, bytes = 0, sequence = 0, id = '0-0', keep = 0, version = 0, lives = 0, gone = 0 }
  end
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

  local set = { meta }
  if c then ff_append.begin(ctx, c, f, has, set) end
  local told = publish.listeners(keys.frames(ctx.r, f.id)) > 0 and { '' } or nil
  has.before, has.most = has.durables, has.keep > 0 and has.keep or ff_append.default
  has.bytes = has.bytes + batch.bytes
  local id = frames.write(ctx, f, argv, batch, has, told)
  frames.trim(ctx, f, has, set)
  if batch.s > 0 then frames.summarize(ctx, f, batch, has, set) end
  if batch.l > 0 then frames.expire(ctx, f, batch, has, set) end
  local number, entry = ff_append.enter(ctx, f, has, id, set)
  redis.call('HSET', unpack(set))
  if told then ff_append.publish(ctx, f, batch.count, told, number, entry, meta) end
  return reply.ok(has.id, has.c, has.q, reply.int(has.version), reply.int(batch.count))
end
