-- frames: a batch of frames, as ff_append_frames gets it, stores it and tells live tailers of it. Each mode has a log
-- of its own, so that none can trim or expire another: d durable frames, s summary deltas beside the merged document,
-- l best-effort frames, whose log has a TTL. The id of an entry is "<ms>-<producer sequence>", and its ms never steps
-- back: a reader merges the logs by it, and the sequence needs no field. Neighbours of a group are one entry, as many
-- as have 64 KiB together: a p for each payload, and the id and the fields of the last one, from which those of the
-- others follow. Fields: p payload, t type, e encoding, c correlation and, behind a unit separator, the source, w
-- produced at (absent if empty), and beside frames of other modes d durable frames so far (absent when that is the
-- sequence), v summary version, x ttl.
local frames = { most = 100, document = 262144, deltas = 64, entry = 65536 } -- frames, bytes, entries, bytes

local encodings = { [''] = true, json = true, bytes = true }
local names = { 't', 'e', 'c', 'w' }
local logs = { d = keys.stream, s = keys.deltas, l = keys.live }

-- lifetime reads the ttl of a mode "l<ms>", or returns nil.
local function lifetime(mode)
  if string.byte(mode) ~= 108 then return nil end
  return args.int(string.sub(mode, 2), 1000, 60000)
end

-- group reads at most so many frames that differ in nothing but their payloads, from position at. For what is
-- malformed it returns nil and an error reply.
function frames.group(argv, at, most)
  local count = args.int(argv[at + 5], 1, most)
  if not count or not argv[at + 5 + count] then
    return nil, reply.err('invalid_input', 'count: 1..100 frames in all')
  end
  local mode = argv[at]
  local ttl = mode ~= 'd' and mode ~= 's' and lifetime(mode)
  if ttl == nil then return nil, reply.err('invalid_input', 'mode: d, s, or l and a ttl of 1000..60000 ms') end
  if #argv[at + 1] > 128 then return nil, reply.err('invalid_input', 'frame type: at most 128 bytes') end
  if not encodings[argv[at + 2]] then return nil, reply.err('invalid_input', 'encoding') end
  if #argv[at + 3] > 321 then return nil, reply.err('invalid_input', 'correlation: at most 321 bytes') end
  if argv[at + 4] ~= '' and not args.int(argv[at + 4], 0, 9007199254740991) then
    return nil, reply.err('invalid_input', 'produced at: whole ms')
  end
  local fields = {}
  for part = 1, 4 do
    if argv[at + part] ~= '' then
      fields[#fields + 1] = names[part]
      fields[#fields + 1] = argv[at + part]
    end
  end
  return { mode = ttl and 'l' or mode, ttl = ttl, at = at, first = at + 6, last = at + 5 + count, fields = fields }
end

-- extras reads what follows the groups: with deltas the version before the first and the document after the last,
-- with best-effort frames how many their log holds.
function frames.extras(batch, argv, at)
  if batch.s > 0 then
    batch.base, batch.text = args.int(argv[at], 0, 9007199254740000), argv[at + 1] or ''
    if not batch.base then return nil, reply.err('invalid_input', 'base: the version before the first delta') end
    if #batch.text > frames.document then
      return nil, reply.err('summary_too_large', 'document: at most 262144 bytes')
    end
    if #batch.text < 2 then return nil, reply.err('invalid_input', 'document') end
    at = at + 2
  end
  if batch.l > 0 then
    batch.keep = args.int(argv[at], 1, 16384)
    if not batch.keep then return nil, reply.err('invalid_input', 'keep: 1..16384 entries') end
    at = at + 1
  end
  if argv[at] then return nil, reply.err('invalid_input', 'more arguments than the groups say') end
  return batch
end

-- parse reads a batch from position at: its groups, how many frames of each mode (d, s, l) and of all (count) they
-- have, and the bytes of their payloads. For what is malformed it returns nil and an error reply.
function frames.parse(argv, at)
  local groups = args.int(argv[at], 1, frames.most)
  if not groups then return nil, reply.err('invalid_input', 'groups: 1..100') end
  local batch, bytes = { d = 0, s = 0, l = 0, count = 0 }, 0
  at = at + 1
  for n = 1, groups do
    local group, bad = frames.group(argv, at, frames.most - batch.count)
    if not group then return nil, bad end
    for i = group.first, group.last do
      local size = #argv[i]
      if size > 65536 then return nil, reply.err('payload_too_large', 'frame: at most 65536 bytes') end
      bytes = bytes + size
    end
    local count = group.last - group.first + 1
    batch[group.mode], batch.count = batch[group.mode] + count, batch.count + count
    batch[n], at = group, group.last + 1
  end
  if bytes > 524288 then return nil, reply.err('payload_too_large', 'batch: at most 524288 bytes') end
  batch.bytes = bytes
  return frames.extras(batch, argv, at)
end

-- skip leaves out the first frames of a batch, which are stored already.
function frames.skip(batch, argv, count)
  batch.count = batch.count - count
  for n = 1, #batch do
    local group = batch[n]
    local known = math.min(count, group.last - group.first + 1)
    for i = group.first, group.first + known - 1 do batch.bytes = batch.bytes - #argv[i] end
    group.first, count = group.first + known, count - known
    batch[group.mode] = batch[group.mode] - known
    if group.mode == 's' then batch.base = batch.base + known end
  end
end

-- place says in a word for tailers where a frame stands among frames of other modes, and adds the same to the fields of
-- its entry.
local function place(group, fields, durables, version)
  local n, total = #fields, reply.int(durables)
  fields[n + 1], fields[n + 2] = 'd', total
  if group.mode == 'd' then return 'd,' .. total end
  local detail = reply.int(group.ttl or version)
  fields[n + 3], fields[n + 4] = group.ttl and 'x' or 'v', detail
  return group.mode .. detail .. ',' .. total
end

local function part(text) return reply.int(#text) .. ':' .. text end

-- tell adds an entry to what live tailers get: each part with its length, how many payloads there are, and these.
local function tell(told, argv, group, from, upto, id, word)
  if not group.head then
    group.head = part(argv[group.at + 1]) .. part(argv[group.at + 2]) .. part(argv[group.at + 3]) ..
      part(argv[group.at + 4])
  end
  told[#told + 1] = part(id) .. group.head .. part(word) .. reply.int(upto - from + 1) .. ':'
  for i = from, upto do told[#told + 1] = part(argv[i]) end
end

-- write stores a batch behind what an attempt has, and counts it there: sequence and id of its last frame, durables,
-- version, lives. told collects the frames for live tailers, if there are any. It returns the id of the first frame.
function frames.write(ctx, f, argv, batch, has, told)
  local call, ms = redis.call, tonumber(string.match(has.id, '^%d+'))
  local before = (ctx.now > ms and ctx.t or reply.int(ms)) .. '-' -- the clock may have stepped back, ids never do
  local sequence, durables, version = has.sequence, has.durables, has.version
  batch.entries = 0
  for n = 1, #batch do
    local group = batch[n]
    local key, mode, i = logs[group.mode](ctx.r, f.id, f.attempt), group.mode, group.first
    while i <= group.last do
      local fields, from, bytes, word = { 'p', argv[i] }, i, #argv[i], ''
      while i < group.last and bytes + #argv[i + 1] <= frames.entry do
        i = i + 1
        bytes = bytes + #argv[i]
        fields[#fields + 1], fields[#fields + 2] = 'p', argv[i]
      end
      local count = i - from + 1
      sequence = sequence + count
      if mode == 'd' then
        durables = durables + count
      elseif mode == 's' then
        version = version + count
      end
      for k = 1, #group.fields do fields[#fields + 1] = group.fields[k] end
      if durables ~= sequence then word = place(group, fields, durables, version) end
      has.id = before .. reply.int(sequence)
      call('XADD', key, has.id, unpack(fields))
      if told then tell(told, argv, group, from, i, has.id, word) end
      batch.entries, i = batch.entries + 1, i + 1
    end
  end
  local first = before .. reply.int(has.sequence + 1)
  has.sequence, has.durables, has.version, has.lives = sequence, durables, version, has.lives + batch.l
  return first
end

-- trim keeps so many durable frames of an attempt, and up to a 64th of that or 64 more. A stream counts entries, so the
-- metadata has marks: every so many frames the number and the id of the last one, behind which nothing is cut. What is
-- gone is the mark that was used last.
function frames.trim(ctx, f, has)
  local step = math.max(64, math.floor(has.most / 64))
  if math.floor(has.durables / step) == math.floor(has.before / step) then return end
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  local marks, gone = redis.call('HGET', meta, 'm') or '', nil
  marks = marks .. reply.int(has.durables) .. ' ' .. has.id .. ' '
  local number, id, behind = string.match(marks, '^(%d+) (%d+%-%d+) ()')
  while number and tonumber(number) <= has.durables - has.most do
    gone, marks = number .. ' ' .. id, string.sub(marks, behind)
    number, id, behind = string.match(marks, '^(%d+) (%d+%-%d+) ()')
  end
  if not gone then
    redis.call('HSET', meta, 'm', marks)
    return
  end
  local ms, sequence = string.match(gone, ' (%d+%-)(%d+)$')
  redis.call('XTRIM', keys.stream(ctx.r, f.id, f.attempt), 'MINID', ms .. reply.int(tonumber(sequence) + 1))
  redis.call('HSET', meta, 'm', marks, 't', gone)
end

-- cut keeps about so many frames in a log whose entries have as many as those of a batch.
local function cut(key, keep, batch)
  redis.call('XTRIM', key, 'MAXLEN', math.floor((keep * batch.entries + batch.count - 1) / batch.count))
end

-- summarize stores the document of a batch with deltas, and counts them.
function frames.summarize(ctx, f, batch, has)
  cut(keys.deltas(ctx.r, f.id, f.attempt), frames.deltas, batch)
  local summary, version = keys.summary(ctx.r, f.id, f.attempt), reply.int(has.version)
  if has.version == batch.s then redis.call('HSET', summary, 'f', ctx.t) end
  redis.call('HSET', summary, 'd', batch.text, 'v', version, 'l', ctx.t)
  redis.call('HSET', keys.meta(ctx.r, f.id, f.attempt), 'v', version)
end

-- expire has the log of best-effort frames end some time after the newest of them, as nothing in it is durable, and
-- counts them.
function frames.expire(ctx, f, batch, has)
  local live, ttl = keys.live(ctx.r, f.id, f.attempt), nil
  for n = 1, #batch do ttl = batch[n].ttl or ttl end
  cut(live, batch.keep, batch)
  redis.call('PEXPIRE', live, 2 * ttl)
  redis.call('HSET', keys.meta(ctx.r, f.id, f.attempt), 'l', reply.int(has.lives))
end
