-- frames: a batch of frames, as ff_append_frames gets it, stores it and tells live tailers of it. Each mode has a log
-- of its own, so that none can trim or expire another: d durable frames, s summary deltas beside the merged document,
-- l best-effort frames, whose log has a TTL. The id of an entry is "<ms>-<producer sequence>", and its ms never steps
-- back: a reader merges the logs by it, and the sequence needs no field. Fields of an entry: p payload, t type, e
-- encoding, c correlation and, behind a unit separator, the source, w produced at (absent if empty), and beside frames
-- of other modes d durable frames so far (absent when that is the sequence), v summary version, x ttl.
local frames = { most = 100, document = 262144, deltas = 64 } -- frames, bytes, entries

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
  return { mode = ttl and 'l' or mode, ttl = ttl, at = at, first = at + 6, last = at + 5 + count, fields = fields,
    size = #fields }
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

-- place adds to the fields of a group where its next frame stands among frames of other modes, and returns the same
-- in a word for tailers.
local function place(group, durables, version)
  local fields, size, total = group.fields, group.size, reply.int(durables)
  fields[size + 1], fields[size + 2] = 'd', total
  if group.mode == 'd' then return 'd,' .. total end
  local detail = reply.int(group.ttl or version)
  fields[size + 3], fields[size + 4] = group.ttl and 'x' or 'v', detail
  return group.mode .. detail .. ',' .. total
end

local function part(text) return reply.int(#text) .. ':' .. text end

-- tell adds a frame to what live tailers get: each part with its length.
local function tell(told, argv, group, id, payload, word)
  if not group.head then
    group.head = part(argv[group.at + 1]) .. part(argv[group.at + 2]) .. part(argv[group.at + 3]) ..
      part(argv[group.at + 4])
  end
  told[#told + 1] = part(id) .. group.head .. part(payload) .. part(word)
end

local digits = {} -- the last two digits of a number: to join them to the others costs a fifth of formatting all of it

-- write stores a batch behind what an attempt has, and counts it there: sequence and id of its last frame, durables,
-- version, lives. told collects the frames for live tailers, if there are any. It returns the id of the first frame.
-- Its loop is what a frame costs.
function frames.write(ctx, f, argv, batch, has, told)
  local call, ms = redis.call, tonumber(string.match(has.id, '^%d+'))
  local before = (ctx.now > ms and ctx.t or reply.int(ms)) .. '-' -- the clock may have stepped back, ids never do
  local sequence, durables, version, first, hundreds = has.sequence, has.durables, has.version, nil, nil
  for n = 1, #batch do
    local group = batch[n]
    local key, mode, fields = logs[group.mode](ctx.r, f.id, f.attempt), group.mode, group.fields
    for i = group.first, group.last do
      sequence = sequence + 1
      local rest, id, word = sequence % 100, nil, ''
      if sequence < 100 then
        id = before .. reply.int(sequence)
      else
        if rest == 0 or not hundreds then hundreds = before .. reply.int((sequence - rest) / 100) end
        digits[rest] = digits[rest] or (rest < 10 and '0' or '') .. reply.int(rest)
        id = hundreds .. digits[rest]
      end
      if mode == 'd' then
        durables = durables + 1
      elseif mode == 's' then
        version = version + 1
      end
      if durables ~= sequence then word = place(group, durables, version) end
      call('XADD', key, id, 'p', argv[i], unpack(fields))
      first, has.id = first or id, id
      if told then tell(told, argv, group, id, argv[i], word) end
    end
  end
  has.sequence, has.durables, has.version, has.lives = sequence, durables, version, has.lives + batch.l
  return first
end

-- trim keeps so many durable frames of an attempt, about as many if exact is not set.
function frames.trim(ctx, f, keep, exact)
  redis.call('XTRIM', keys.stream(ctx.r, f.id, f.attempt), 'MAXLEN', exact and '=' or '~', keep)
end

-- summarize stores the document of a batch with deltas, and counts them.
function frames.summarize(ctx, f, batch, has)
  redis.call('XTRIM', keys.deltas(ctx.r, f.id, f.attempt), 'MAXLEN', '~', frames.deltas)
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
  redis.call('XTRIM', live, 'MAXLEN', '~', batch.keep)
  redis.call('PEXPIRE', live, 2 * ttl)
  redis.call('HSET', keys.meta(ctx.r, f.id, f.attempt), 'l', reply.int(has.lives))
end
