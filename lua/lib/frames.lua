-- frames: a batch of frames, as ff_append_frames gets it, stores it and tells live tailers of it. Each mode has a log
-- of its own, so that none can trim or expire another: d durable frames, s summary deltas beside the merged document,
-- l best-effort frames, whose log has a TTL. The id of an entry is "<ms>-<producer sequence>", and its ms never steps
-- back: a reader merges the logs by it, and the sequence needs no field. Neighbours of a group are one entry, as many
-- as have 64 KiB together: its id and its place are those of the last one, from which those of the others follow.
-- An entry has no names. It is a list of texts, as the arguments of its group have them: the place (see place), type,
-- encoding, correlation and, behind a unit separator, the source, produced at, how many payloads, and these. As a
-- stream stores pairs, a p stands before the place if the payloads are an odd number.
local frames = { most = 100, document = 262144, deltas = 64, entry = 65536 } -- frames, bytes, entries, bytes

local encodings = { [''] = true, json = true, bytes = true }
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
  return { mode = ttl and 'l' or mode, ttl = ttl, head = at + 6, first = at + 6, last = at + 5 + count }
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
    local before = bytes
    for i = group.first, group.last do
      local size = #argv[i]
      if size > 65536 then return nil, reply.err('payload_too_large', 'frame: at most 65536 bytes') end
      bytes = bytes + size
    end
    group.bytes = bytes - before
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
    for i = group.first, group.first + known - 1 do
      batch.bytes, group.bytes = batch.bytes - #argv[i], group.bytes - #argv[i]
    end
    group.first, count = group.first + known, count - known
    batch[group.mode] = batch[group.mode] - known
    if group.mode == 's' then batch.base = batch.base + known end
  end
end

-- place says in a word where a frame stands among frames of other modes: empty for a durable one with nothing but such
-- before it, else mode, version or ttl, and durable frames so far.
local function place(group, durables, version)
  if group.mode == 'd' then return 'd,' .. reply.int(durables) end
  return group.mode .. reply.int(group.ttl or version) .. ',' .. reply.int(durables)
end

local function part(text) return reply.int(#text) .. ':' .. text end

-- tell adds the entry of the payloads at..last, as entry has put it there, to what live tailers get: each part with its
-- length, how many payloads there are, and these.
local function tell(told, argv, at, last, id, word)
  local n = #told
  told[n + 1] = part(id) .. part(argv[at - 5]) .. part(argv[at - 4]) .. part(argv[at - 3]) .. part(argv[at - 2]) ..
    part(word) .. argv[at - 1] .. ':'
  n = n + 1
  for i = at, last do
    told[n + 1], told[n + 2], told[n + 3] = #argv[i], ':', argv[i]
    n = n + 3
  end
end

-- entry finds the payloads from position at on that are one entry, and has what they have in common stand before them.
-- It returns the position of the last one.
local function entry(argv, group, at)
  local last, bytes = group.last, group.bytes
  if group.mode == 's' then
    last = at
  elseif bytes > frames.entry then
    last, bytes = at, #argv[at]
    while last < group.last and bytes + #argv[last + 1] <= frames.entry do
      last = last + 1
      bytes = bytes + #argv[last]
    end
  end
  if at ~= group.head then -- earlier payloads are not needed any more
    local h = group.head
    argv[at - 5], argv[at - 4], argv[at - 3], argv[at - 2] = argv[h - 5], argv[h - 4], argv[h - 3], argv[h - 2]
    group.head = at
  end
  argv[at - 1] = reply.int(last - at + 1)
  return last
end

-- write stores a batch behind what an attempt has, and counts it there: sequence and id of its last frame, durables,
-- version, lives. told collects the frames for live tailers, if there are any. It returns the id of the first frame.
function frames.write(ctx, f, argv, batch, has, told)
  local call, ms = redis.call, tonumber(string.match(has.id, '^%d+'))
  local before = (ctx.now > ms and ctx.t or reply.int(ms)) .. '-' -- the clock may have stepped back, ids never do
  local sequence, durables, version = has.sequence, has.durables, has.version
  batch.entries = 0 -- of best-effort frames
  for n = 1, #batch do
    local group = batch[n]
    local key, mode, at = logs[group.mode](ctx.r, f.id, f.attempt), group.mode, group.first
    while at <= group.last do
      local last, word = entry(argv, group, at), ''
      local count = last - at + 1
      sequence = sequence + count
      if mode == 'd' then
        durables = durables + count
      elseif mode == 's' then
        version = version + count
      end
      if durables ~= sequence then word = place(group, durables, version) end
      has.id = before .. reply.int(sequence)
      if count % 2 == 0 then
        call('XADD', key, has.id, word, unpack(argv, at - 5, last))
      else
        call('XADD', key, has.id, 'p', word, unpack(argv, at - 5, last))
      end
      if told then tell(told, argv, at, last, has.id, word) end
      if mode == 'l' then batch.entries = batch.entries + 1 end
      at = last + 1
    end
  end
  local first = before .. reply.int(has.sequence + 1)
  has.sequence, has.durables, has.version, has.lives = sequence, durables, version, has.lives + batch.l
  return first
end

-- trim keeps so many durable frames of an attempt, and up to a 64th of that or 64, and one call more. A stream counts
-- entries, so the metadata has marks, by their numbers: behind every so many frames the number and the id of the last
-- one. The last mark that is old enough is used, as soon as there is one. set is what the metadata will be set to.
function frames.trim(ctx, f, has, set)
  local step, n = math.max(64, math.floor(has.most / 64)), #set
  local mark, spare = math.floor(has.durables / step), has.durables - has.most
  if mark > math.floor(has.before / step) then
    set[n + 1], set[n + 2], n = 'm' .. reply.int(mark), reply.int(has.durables) .. ' ' .. has.id, n + 2
  end
  local from, at = math.floor(has.gone / step), math.floor(spare / step)
  if at <= from then return end
  local names = {}
  for i = 0, 2 do names[i + 1] = 'm' .. reply.int(math.max(at - i, 0)) end -- a call passes two numbers at most
  local marks = redis.call('HMGET', set[1], unpack(names))
  for i = 1, 3 do
    local number, ms, sequence = string.match(marks[i] or '', '^(%d+) (%d+%-)(%d+)$')
    if number and tonumber(number) <= spare then
      redis.call('XTRIM', keys.stream(ctx.r, f.id, f.attempt), 'MINID', ms .. reply.int(tonumber(sequence) + 1))
      set[n + 1], set[n + 2] = 't', marks[i]
      names = {}
      for used = from + 1, at - i + 1 do names[#names + 1] = 'm' .. reply.int(used) end
      redis.call('HDEL', set[1], unpack(names))
      return
    end
  end
end

-- summarize stores the document of a batch with deltas, each of which is an entry, and counts them.
function frames.summarize(ctx, f, batch, has, set)
  redis.call('XTRIM', keys.deltas(ctx.r, f.id, f.attempt), 'MAXLEN', frames.deltas)
  local summary, version = keys.summary(ctx.r, f.id, f.attempt), reply.int(has.version)
  if has.version == batch.s then redis.call('HSET', summary, 'f', ctx.t) end
  redis.call('HSET', summary, 'd', batch.text, 'v', version, 'l', ctx.t)
  local n = #set
  set[n + 1], set[n + 2] = 'v', version
end

-- expire has the log of best-effort frames end some time after the newest of them, as nothing in it is durable, and
-- counts them. It keeps about as many as the batch says, if all entries have as many frames as those of the batch.
function frames.expire(ctx, f, batch, has, set)
  local live, ttl = keys.live(ctx.r, f.id, f.attempt), nil
  for n = 1, #batch do ttl = batch[n].ttl or ttl end
  redis.call('XTRIM', live, 'MAXLEN', math.floor((batch.keep * batch.entries + batch.l - 1) / batch.l))
  redis.call('PEXPIRE', live, 2 * ttl)
  local n = #set
  set[n + 1], set[n + 2] = 'l', reply.int(has.lives)
end
