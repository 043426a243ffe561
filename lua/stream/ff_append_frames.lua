-- ff_append_frames: appends up to 100 frames to the stream of the held attempt. The producer sequence makes a
-- repeat exact: what is already there is skipped, a gap is refused, all or nothing. Frames are durable
-- unless modes says otherwise, one word a frame: d, s (a summary delta: base is the document's version before the batch,
-- document what it is after it) or l<ttl in ms> (best effort: keep is how many the live log holds).
-- Plain frames (durable, utf8, of one type, nothing else said about them) are that type and a payload each: most batches
-- are such, and four more arguments a frame cost as much as storing it.
-- Flags:   allow-oom
-- Go:      Engine.AppendFrames
-- Args:    protocol id session claim epoch attempt first (count {type encoding correlation produced payload} [modes base document keep] or count type {* payload})
-- Replies: OK id frames sequence version appended; ALREADY_SATISFIED the same
-- Errors:  invalid_input payload_too_large execution_not_found stream_closed execution_not_active stale_owner_cannot_append frame_sequence_gap summary_too_large summary_version_conflict fence_required partial_fence partition_missing partition_frozen protocol_mismatch
local ff_append = { encodings = { [''] = true, json = true, bytes = true }, names = { 't', 'e', 'c', 'w' } }

-- refuse maps the fence's answer to the stream's vocabulary.
function ff_append.refuse(ctx, c, answer)
  local code = answer[2]
  if code == 'lease_expired' then return reply.err('stale_owner_cannot_append', 'expired') end
  if code == 'lease_revoked' then return reply.err('stale_owner_cannot_append', 'revoked') end
  if code == 'stale_lease' then return reply.err('stale_owner_cannot_append', 'superseded') end
  if code == 'execution_not_active' and core.terminal(c) then return reply.err('stream_closed', c.s) end
  return answer
end

-- judge validates the frames and returns their payload bytes, or nil and an error.
function ff_append.judge(argv, count)
  local bytes = 0
  for i = 9, 4 + 5 * count, 5 do
    if #argv[i] > 128 then return nil, reply.err('invalid_input', 'frame type: at most 128 bytes') end
    if not ff_append.encodings[argv[i + 1]] then return nil, reply.err('invalid_input', 'encoding') end
    if #argv[i + 2] > 256 then return nil, reply.err('invalid_input', 'correlation: at most 256 bytes') end
    if argv[i + 3] ~= '' and not args.int(argv[i + 3], 0, 9007199254740991) then
      return nil, reply.err('invalid_input', 'produced at: whole ms')
    end
    if #argv[i + 4] > 65536 then return nil, reply.err('payload_too_large', 'frame: at most 65536 bytes') end
    bytes = bytes + #argv[i + 4]
  end
  return bytes
end

-- measure is judge for plain frames.
function ff_append.measure(argv, count)
  if #argv[9] > 128 then return nil, reply.err('invalid_input', 'frame type: at most 128 bytes') end
  local bytes = 0
  for i = 10, 9 + count do
    local size = #argv[i]
    if size > 65536 then return nil, reply.err('payload_too_large', 'frame: at most 65536 bytes') end
    bytes = bytes + size
  end
  return bytes
end

-- spell gives plain frames the five arguments that others have.
function ff_append.spell(argv, count)
  local out = { unpack(argv, 1, 8) }
  for n = 1, count do
    local i = 4 + 5 * n
    out[i], out[i + 1], out[i + 2], out[i + 3], out[i + 4] = argv[9], '', '', '', argv[9 + n]
  end
  return out
end

local two = {} -- the last two digits of numbers: to join them to what comes before costs a fifth of formatting a number

-- plain writes plain frames from number from of the batch on; the last one trims. This loop is what a frame costs.
function ff_append.plain(key, argv, first, from, count, keep)
  local call, kind, ids, high = redis.call, argv[9], {}, nil
  for n = from, count - 1 do
    local sequence, text = first + n - 1, nil
    local low = sequence % 100
    if sequence < 100 then
      text = reply.int(sequence)
    else
      if low == 0 or not high then high = reply.int((sequence - low) / 100) end
      two[low] = two[low] or (low < 10 and '0' or '') .. reply.int(low)
      text = high .. two[low]
    end
    ids[n - from + 1] = call('XADD', key, '*', 'q', text, 'p', argv[9 + n], 't', kind)
  end
  ids[count - from + 1] = call('XADD', key, 'MAXLEN', '~', keep, '*', 'q', reply.int(first + count - 1), 'p', argv[9 + count], 't', kind)
  return ids
end

-- add writes one frame; absent parts are not stored.
function ff_append.add(key, argv, i, sequence, trim)
  local w = { 'q', sequence, 'p', argv[i + 4] }
  for part = 1, 4 do
    if argv[i + part - 1] ~= '' then
      w[#w + 1] = ff_append.names[part]
      w[#w + 1] = argv[i + part - 1]
    end
  end
  if trim then return redis.call('XADD', key, 'MAXLEN', '~', trim, '*', unpack(w)) end
  return redis.call('XADD', key, '*', unpack(w))
end

-- text is the message for live tailers: attempt, count, the run's number, what its entry says if it begins here, then every part
-- of every frame with its length.
function ff_append.text(attempt, run, ids, argv, first, skip, spelled)
  local out = { attempt, ' ', reply.int(#ids), ' ', run.number, ' ' }
  local function part(s)
    out[#out + 1] = reply.int(#s)
    out[#out + 1] = ':'
    out[#out + 1] = s
  end
  part(run.entry or '')
  for n = 1, #ids do
    local i = 9 + 5 * (skip + n - 1)
    part(ids[n])
    part(reply.int(first + skip + n - 1))
    for p = 0, 4 do part(argv[i + p]) end
    part(spelled and spelled[n] or '') -- '': durable, and so is everything before it
  end
  return table.concat(out)
end

local function ff_append_frames(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local first, count = args.int(argv[7], 1, 9007199254740000), args.int(argv[8], 1, 100)
  if not first then return reply.err('invalid_input', 'first sequence') end
  local plain = count and #argv == 9 + count -- never as many as the other forms have
  if not count or not plain and #argv ~= 8 + 5 * count and #argv ~= 12 + 5 * count then
    return reply.err('invalid_input', 'count: 1..100')
  end
  local bytes, mixed
  bytes, bad = (plain and ff_append.measure or ff_append.judge)(argv, count)
  if not bytes then return bad end
  if bytes > 524288 then return reply.err('payload_too_large', 'batch: at most 524288 bytes') end
  if not plain and #argv > 8 + 5 * count then
    mixed, bad = modes.parse(argv, 9 + 5 * count, count)
    if not mixed then return bad end
  end

  local c = core.read(ctx, f.id)
  bad = fence.check(ctx, c, f)
  if bad then return ff_append.refuse(ctx, c, bad) end
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local m = { false, false, false, false, false, false, false, false, false }
  if c.fa == f.attempt then m = redis.call('HMGET', meta, 'c', 'b', 'q', 'i', 'z', 'k', 'v', 'l', 'e') end
  local total, last = tonumber(m[1] or '0'), tonumber(m[3] or '0')
  if m[5] then return reply.err('stream_closed', 'attempt') end
  if first > last + 1 then return reply.err('frame_sequence_gap', reply.int(last)) end
  local skip = math.min(last + 1 - first, count)
  if skip == count then return reply.already(m[4] or '0-0', reply.int(total), reply.int(last), m[7] or '0', '0') end
  if mixed and modes.conflict(mixed, m[7], skip) then
    return reply.err('summary_version_conflict', m[7] or '0')
  end

  if plain and (m[7] or m[8]) then
    argv = ff_append.spell(argv, count)
    plain = false
  end
  for n = 1, skip do bytes = bytes - #argv[plain and 9 + n or 8 + 5 * n] end
  local keep = tonumber(m[6] or '0')
  local key, ids, fresh, spelled = keys.stream(ctx.r, f.id, f.attempt), {}, count - skip, nil
  if c.fa ~= f.attempt then
    keep = policy.read(c.po).frames
    record.set(ctx, f.id, 'fa', f.attempt)
    if keep > 0 then redis.call('HSET', meta, 'k', reply.int(keep)) end
  end
  if mixed or m[7] or m[8] then -- an attempt that ever was mixed takes its ids from the order that its logs share
    ids, spelled, fresh = modes.append(ctx, f, argv, mixed, { first = first, skip = skip, count = count,
      last = m[4], total = total, version = m[7], live = m[8], keep = keep > 0 and keep or 10000 })
  elseif plain then
    ids = ff_append.plain(key, argv, first, skip + 1, count, keep > 0 and keep or 10000)
  else
    for n = skip + 1, count do
      local trim = n == count and (keep > 0 and keep or 10000) or nil
      ids[#ids + 1] = ff_append.add(key, argv, 9 + 5 * (n - 1), reply.int(first + n - 1), trim)
    end
  end
  local now_total = total + fresh
  if keep > 0 and math.floor(now_total / 64) > math.floor(total / 64) then redis.call('XTRIM', key, 'MAXLEN', keep) end
  local run, size = {}, reply.int(tonumber(m[2] or '0') + bytes)
  if m[9] == f.epoch then
    redis.call('HSET', meta, 'c', reply.int(now_total), 'b', size, 'q', reply.int(first + count - 1), 'i', ids[#ids])
  else
    redis.call('HSET', meta, 'c', reply.int(now_total), 'b', size, 'q', reply.int(first + count - 1), 'i', ids[#ids], 'e', f.epoch)
    if m[9] then run.number, run.entry = stream.begin(ctx, f, m[9], c.lr, ids[1], keep > 0 and keep or 10000) end
  end
  local channel = keys.frames(ctx.r, f.id)
  if publish.listeners(channel) > 0 then
    if plain then argv = ff_append.spell(argv, count) end
    run.number = run.number or redis.call('HGET', meta, 'n') or '1'
    publish.to(channel, ff_append.text(f.attempt, run, ids, argv, first, skip, spelled))
  end
  return reply.ok(ids[#ids], reply.int(now_total), reply.int(first + count - 1), mixed and mixed.version or m[7] or '0',
    reply.int(#ids))
end
