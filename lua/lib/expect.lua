-- expect: executions that wait for an event with a subject (lib/subject.lua). The waitpoint that takes the event is
-- registered in the partition of the subject, under its name "<partition>.<execution>:<waitpoint>". It is filed under
-- one of the terms of its filter, "-" if it has none: an event looks at what is filed under its own terms only. That
-- term is the one with the fewest, so what many filters ask for, such as a state, fills no file.
--   keys.expected              zset of the partition: "<subject>:<name>" by when it was registered
--   keys.expectations          hash of a subject: "r<name>" -> "<term> <digest of the token> <terms, by comma>", and
--                              "n<term>" -> how many are filed under it
--   keys.filed                 set of a subject and a term: the names
-- A registration takes one event: to publish removes it, in the same call. Its notices in the outbox (lib/gate.lua):
--   r <partition>.<execution> <waitpoint> <digest>      behind the event: it resumes this
--   x <subject> <execution> <waitpoint>                 of the execution's partition: the waitpoint is closed
local expect = { most = 1000 }

-- name is what a registration is called.
function expect.name(waiter, wid) return waiter .. ':' .. wid end

-- read returns under which term a registration is filed, the digest, and its terms; nil if there is none.
local function read(ctx, id, name)
  local row = redis.call('HGET', keys.expectations(ctx.r, id), 'r' .. name)
  return string.match(row or '', '^(%S+) (%x+) (%S*)$')
end

-- drop forgets registrations that are filed under one term.
local function drop(ctx, id, term, names)
  local key, rows, members = keys.expectations(ctx.r, id), {}, {}
  for i = 1, #names do rows[i], members[i] = 'r' .. names[i], id .. ':' .. names[i] end
  redis.call('HDEL', key, unpack(rows))
  redis.call('ZREM', keys.expected(ctx.r), unpack(members))
  redis.call('SREM', keys.filed(ctx.r, id, term), unpack(names))
  if redis.call('HINCRBY', key, 'n' .. term, reply.int(-#names)) < 1 then redis.call('HDEL', key, 'n' .. term) end
end

-- forget removes one registration, and tells whether it was there.
function expect.forget(ctx, id, name)
  local term = read(ctx, id, name)
  if term then drop(ctx, id, term, { name }) end
  return term ~= nil
end

-- place is the term under which a filter is filed, and how many are there.
local function place(ctx, id, terms)
  local list = #terms > 0 and terms or { '-' }
  local fields, best, fewest = {}, nil, nil
  for i = 1, #list do fields[i] = 'n' .. list[i] end
  local counts = redis.call('HMGET', keys.expectations(ctx.r, id), unpack(fields))
  for i = 1, #list do
    local n = tonumber(counts[i] or '0')
    if not fewest or n < fewest then best, fewest = list[i], n end
  end
  return best, fewest
end

-- add registers a waitpoint, and tells whether that was so; nil if there is no room. Another filter replaces the one
-- before.
function expect.add(ctx, id, name, digest, terms)
  local text = digest .. ' ' .. table.concat(terms, ',')
  local old, before, filter = read(ctx, id, name)
  if old and before .. ' ' .. filter == text then return true end
  local term, n = place(ctx, id, terms)
  if n >= expect.most then return nil end
  if old then drop(ctx, id, old, { name }) end
  redis.call('HSET', keys.expectations(ctx.r, id), 'r' .. name, term .. ' ' .. text)
  redis.call('HINCRBY', keys.expectations(ctx.r, id), 'n' .. term, '1')
  redis.call('SADD', keys.filed(ctx.r, id, term), name)
  redis.call('ZADD', keys.expected(ctx.r), ctx.t, id .. ':' .. name)
  return false
end

-- candidates lists the terms of an event under which something is filed, and how much that is in all.
local function candidates(ctx, id, terms)
  local fields, asked, files, total = { 'n-' }, {}, {}, 0
  for i = 1, #terms do
    if not asked[terms[i]] then
      asked[terms[i]] = true
      fields[#fields + 1] = 'n' .. terms[i]
    end
  end
  local counts = redis.call('HMGET', keys.expectations(ctx.r, id), unpack(fields))
  for i = 1, #fields do
    if counts[i] then files[#files + 1], total = string.sub(fields[i], 2), total + tonumber(counts[i]) end
  end
  return files, total
end

-- matching lists the registrations whose filters an event meets, by term; has is the set of its terms. Of too many
-- candidates it looks at none and returns nil.
function expect.matching(ctx, id, terms, has)
  local files, total = candidates(ctx, id, terms)
  if total > expect.most then return nil end
  local found = { count = 0 }
  for i = 1, #files do
    local names, rows = redis.call('SMEMBERS', keys.filed(ctx.r, id, files[i])), {}
    table.sort(names)
    for n = 1, #names do rows[n] = 'r' .. names[n] end
    local texts, some = #rows > 0 and redis.call('HMGET', keys.expectations(ctx.r, id), unpack(rows)) or {},
      { term = files[i], names = {}, digests = {} }
    for n = 1, #names do
      local digest, filter = string.match(texts[n] or '', '^%S+ (%x+) (%S*)$')
      if digest and subject.meets(has, filter) then
        some.names[#some.names + 1], some.digests[#some.digests + 1] = names[n], digest
      end
    end
    if #some.names > 0 then found[#found + 1], found.count = some, found.count + #some.names end
  end
  return found
end

-- resume adds notices for what matching found to an entry of the outbox, and forgets it.
function expect.resume(ctx, id, found, entry)
  for i = 1, #found do
    local some = found[i]
    for n = 1, #some.names do
      local waiter, wid = string.match(some.names[n], '^([^:]*):(.*)$')
      entry[#entry + 1], entry[#entry + 2] = 'r', waiter .. ' ' .. wid .. ' ' .. some.digests[n]
    end
    drop(ctx, id, some.term, some.names)
  end
end

-- notice tells whether a notice of the outbox is one of these.
function expect.notice(kind, text)
  local a, b, c = string.match(text, '^(%S+) (%S+) (%S+)$')
  if kind == 'r' then return args.ref(a) and args.uuid(b) and token.hex(c, 64) and true or false end
  return args.uuid(a) and args.uuid(b) and args.uuid(c) and true or false
end
