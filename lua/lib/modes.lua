-- modes: frames that are not durable stand in logs of their own, so that none can trim or expire another:
-- summary deltas beside the merged document, and best-effort frames, whose log has a TTL. All entries of an attempt
-- take their ids from one order, and a reader merges the logs by it. Fields of an entry beside those of a durable
-- frame: d durable frames so far (absent when that is q), v summary version, x ttl.
local modes = { parts = { 't', 'e', 'c', 'w' }, document = 262144, deltas = 64 } -- bytes, entries

-- parse reads the four arguments about modes from position at. The result holds for each frame d, s or its ttl in ms;
-- s and l are how many there are of either. For what is malformed it returns nil and an error reply.
function modes.parse(argv, at, count)
  local m, text, from = { s = 0, l = 0 }, argv[at], 1
  for n = 1, count do
    local comma = n < count and string.find(text, ',', from, true)
    local word = comma and string.sub(text, from, comma - 1) or string.sub(text, from)
    from = comma and comma + 1 or #text + 1
    m[n] = word
    if word == 's' then
      m.s = m.s + 1
    elseif word ~= 'd' then
      m[n] = string.byte(word) == 108 and args.int(string.sub(word, 2), 1000, 60000)
      if not m[n] then
        return nil, reply.err('invalid_input', 'modes: for each frame d, s, or l and a ttl of 1000..60000 ms')
      end
      m.l = m.l + 1
    end
  end
  if m.s + m.l == 0 then return nil, reply.err('invalid_input', 'modes: not needed') end
  m.base, m.text = args.int(argv[at + 1], 0, 9007199254740000), argv[at + 2]
  if (m.s > 0) ~= (m.base ~= nil) or (m.s == 0 and argv[at + 1] ~= '') then
    return nil, reply.err('invalid_input', 'base: the version before the first delta')
  end
  if #m.text > modes.document then
    return nil, reply.err('summary_too_large', 'document: at most 262144 bytes')
  end
  if (m.s > 0) ~= (#m.text > 1) or #m.text == 1 then return nil, reply.err('invalid_input', 'document') end
  m.keep = args.int(argv[at + 3], 1, 16384)
  if (m.l > 0) ~= (m.keep ~= nil) or (m.l == 0 and argv[at + 3] ~= '') then
    return nil, reply.err('invalid_input', 'keep: 1..16384 entries')
  end
  return m
end

-- conflict tells whether the deltas that are new in the batch were merged into another version than the stored one.
function modes.conflict(m, version, skip)
  local old = 0
  for n = 1, skip do
    if m[n] == 's' then old = old + 1 end
  end
  m.s = m.s - old
  return m.s > 0 and m.base + old ~= tonumber(version or '0')
end

-- entry is what a frame's entry holds; absent parts are not stored.
function modes.entry(argv, i, sequence, durable)
  local w = { 'q', sequence, 'p', argv[i + 4] }
  local function put(name, value)
    w[#w + 1] = name
    w[#w + 1] = value
  end
  for part = 1, 4 do
    if argv[i + part - 1] ~= '' then put(modes.parts[part], argv[i + part - 1]) end
  end
  if durable ~= sequence then put('d', durable) end
  return w, put
end

-- append writes the new frames of a batch: m is what parse made of it, nil when all of them are durable; b tells first,
-- skip, count, and of the attempt its last id, total of durable frames, version, live frames, and durable frames to
-- keep. Returns the ids, for tailers the mode of each frame in a word, and how many of them are durable.
function modes.append(ctx, f, argv, m, b)
  local ms, seq = string.match(b.last or '0-0', '^(%d+)%-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if ctx.now > ms then ms, seq = ctx.now, -1 end -- the clock may have stepped back, ids never do
  local main, deltas, live = keys.stream(ctx.r, f.id, f.attempt), keys.deltas(ctx.r, f.id, f.attempt),
    keys.live(ctx.r, f.id, f.attempt)
  local ids, words, durable, version, lives, ttl = {}, {}, b.total, tonumber(b.version or '0'), tonumber(b.live or '0'), nil
  for n = b.skip + 1, b.count do
    local mode, sequence, key, word = m and m[n] or 'd', reply.int(b.first + n - 1), main, 'd'
    if mode == 'd' then durable = durable + 1 end
    local w, put = modes.entry(argv, 9 + 5 * (n - 1), sequence, reply.int(durable))
    if mode == 's' then
      key, version = deltas, version + 1
      word = 's' .. reply.int(version)
      put('v', reply.int(version))
    elseif mode ~= 'd' then
      key, ttl, lives, word = live, mode, lives + 1, 'l' .. reply.int(mode)
      put('x', reply.int(mode))
    end
    seq = seq + 1
    ids[#ids + 1] = redis.call('XADD', key, reply.int(ms) .. '-' .. reply.int(seq), unpack(w))
    words[#words + 1] = word .. ',' .. reply.int(durable)
  end
  local meta = keys.meta(ctx.r, f.id, f.attempt)
  if durable > b.total then redis.call('XTRIM', main, 'MAXLEN', '~', b.keep) end
  if m and m.s > 0 then
    redis.call('XTRIM', deltas, 'MAXLEN', '~', modes.deltas)
    local summary = keys.summary(ctx.r, f.id, f.attempt)
    if not b.version then redis.call('HSET', summary, 'f', ctx.t) end
    redis.call('HSET', summary, 'd', m.text, 'v', reply.int(version), 'l', ctx.t)
    redis.call('HSET', meta, 'v', reply.int(version))
  end
  if ttl then -- nothing in this log is durable, so it always expires
    redis.call('XTRIM', live, 'MAXLEN', '~', m.keep)
    redis.call('PEXPIRE', live, 2 * ttl)
    redis.call('HSET', meta, 'l', reply.int(lives))
  end
  if m then m.version = version > 0 and reply.int(version) or nil end
  return ids, words, durable - b.total
end
