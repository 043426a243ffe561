-- base: what the attempts of a fork stand on. A fork has the first attempts of the execution that it was made of, up
-- to the number in the field base of its record. Their frames are not copied: the attempts hash of the fork says under
-- "<attempt>b" whose they are, and up to where the fork has them: "owner sequence id durables deltas live runs bytes".
-- The owner is who wrote them, also for a fork of a fork, under the same number of the attempt. It has a hash of
-- references: "<attempt>" -> how many forks have frames of it, with " x" behind if the owner itself has let go of it;
-- and "<fork>" -> how many of its attempts that fork has. What is referred to outlives its owner, and goes with the
-- last fork that has it.
local base = {}

local shape = '^(%S+) (%d+) (%d+%-%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'

-- read takes such a text apart; nil if it is none.
function base.read(text)
  local owner, sequence, id, durables, deltas, live, runs, bytes = string.match(text or '', shape)
  if not owner then return nil end
  return { owner = owner, sequence = sequence, id = id, durables = durables, deltas = deltas, live = live, runs = runs,
    bytes = bytes }
end

-- of is what an attempt of an execution stands on, nil if it is its own, or nobody's.
function base.of(ctx, c, id, attempt)
  if not c.base or attempt > tonumber(c.base) then return nil end
  return base.read(redis.call('HGET', keys.attempts(ctx.r, id), reply.int(attempt) .. 'b'))
end

-- measure is what a fork has of an attempt of its owner up to a place, as text. The bytes are an estimate unless that
-- is the last one.
function base.measure(ctx, owner, attempt, at)
  local q = tonumber(at.sequence)
  local m = redis.call('HMGET', keys.meta(ctx.r, owner, attempt), 'i', 'c', 'v', 'n', 'b', 'q')
  local durables, deltas, runs = at.durables, at.deltas, at.runs
  if m[1] == at.id then durables, deltas, runs = m[2] or '0', m[3] or '0', m[4] or '1' end
  local all = math.max(1, tonumber(m[6] or '0'))
  local bytes = math.floor(tonumber(m[5] or '0') * math.min(q, all) / all)
  return table.concat({ owner, at.sequence, at.id, durables, deltas,
    reply.int(q - tonumber(durables) - tonumber(deltas)), runs, reply.int(bytes) }, ' ')
end

-- hold notes that a fork has frames of attempts of an owner. attempts are numbers as texts.
function base.hold(ctx, owner, fork, attempts)
  local key = keys.references(ctx.r, owner)
  for i = 1, #attempts do
    local n, gone = string.match(redis.call('HGET', key, attempts[i]) or '0', '^(%d+)(.*)$')
    redis.call('HSET', key, attempts[i], reply.int(tonumber(n) + 1) .. gone)
  end
  redis.call('HINCRBY', key, fork, reply.int(#attempts))
  if record.read(ctx, owner).state then record.set(ctx, owner, 'forked', '1') end
end

-- release notes that a fork has an attempt of an owner no more. Frames that nobody has are added to gone.
local function release(ctx, owner, fork, attempt, gone)
  local key = keys.references(ctx.r, owner)
  local n, let = string.match(redis.call('HGET', key, attempt) or '', '^(%d+)(.*)$')
  if not n then return end
  if tonumber(n) > 1 then
    redis.call('HSET', key, attempt, reply.int(tonumber(n) - 1) .. let)
  else
    redis.call('HDEL', key, attempt)
    if let ~= '' then base.frames(ctx.r, owner, attempt, gone) end
  end
  if redis.call('HINCRBY', key, fork, '-1') < 1 then redis.call('HDEL', key, fork) end
end

-- frames adds the keys of the frames of an attempt to a list.
function base.frames(r, id, a, list)
  local own = { keys.stream(r, id, a), keys.meta(r, id, a), keys.deltas(r, id, a), keys.live(r, id, a),
    keys.summary(r, id, a), keys.runs(r, id, a) }
  for i = 1, #own do list[#list + 1] = own[i] end
end

-- let lists in gone what goes when an execution lets go of its attempts from one number to another, at most 200: all
-- that is stored of them but the frames that a fork has; and what goes because it is a fork itself.
function base.let(ctx, c, id, from, upto, gone)
  local r, numbers, standing = ctx.r, {}, {}
  for attempt = from, upto do
    local a = reply.int(attempt)
    numbers[#numbers + 1], standing[#standing + 1] = a, a .. 'b'
    gone[#gone + 1], gone[#gone + 2] = keys.result(r, id, a), keys.log(r, id, a)
  end
  if #numbers == 0 then return end
  local held = c.forked and redis.call('HMGET', keys.references(r, id), unpack(numbers)) or {}
  for i = 1, #numbers do
    local n = string.match(held[i] or '', '^%d+')
    if n then
      redis.call('HSET', keys.references(r, id), numbers[i], n .. ' x')
    else
      base.frames(r, id, numbers[i], gone)
    end
  end
  if not c.base or from > tonumber(c.base) then return end
  local texts = redis.call('HMGET', keys.attempts(r, id), unpack(standing))
  for i = 1, #numbers do
    local b = base.read(texts[i] or '')
    if b then release(ctx, b.owner, id, numbers[i], gone) end
  end
end
