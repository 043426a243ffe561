-- purge: removes every key of an ended execution and leaves a tombstone, so that its id stays
-- taken for a while; its key is free. A tombstone is "code expiry digest", the digest of the payload's digest, short;
-- its key's TTL only cleans up: whether it is over is told by the expiry in it.
local purge = {}

-- digest is what a tombstone keeps of the digest of a payload, '' of none.
function purge.digest(text) return text and text ~= '' and string.sub(redis.sha1hex(text), 1, 16) or '' end

-- keep is how long a purge by age leaves a tombstone, ms: an id that was derived, from a schedule or the key of a
-- flow, may come again; a random one (UUIDv7) comes only with a submit that was not answered.
function purge.keep(id) return string.sub(id, 15, 15) == '7' and 3600000 or 86400000 end

-- write leaves a tombstone.
function purge.write(ctx, key, code, digest, keep)
  redis.call('SET', key, code .. ' ' .. reply.int(ctx.now + keep) .. ' ' .. purge.digest(digest), 'PX', reply.int(keep))
end

-- stone reads a tombstone.
function purge.stone(ctx, key)
  local stone = redis.call('GET', key)
  if not stone then return nil end
  local code, expiry, digest = string.match(stone, '^(%w+) (%d+) (.*)$')
  if not code or tonumber(expiry) <= ctx.now then return nil end
  return code, digest, tonumber(expiry)
end

-- read returns code, short digest and expiry of a purged execution, nil when there is no tombstone or its time is over.
function purge.read(ctx, id) return purge.stone(ctx, keys.tombstone(ctx.r, id)) end

-- missing is what a reader is told of an execution that has no record, or one that cannot be read.
function purge.missing(ctx, id)
  local damaged = core.read(ctx, id).damaged
  if damaged then return reply.err('corrupt', damaged) end
  local code = purge.read(ctx, id)
  if code then return reply.err('result_purged', code) end
  return reply.err('execution_not_found')
end

-- unlink removes many keys, a few hundred at a time.
local function unlink(list)
  for first = 1, #list, 500 do redis.call('UNLINK', unpack(list, first, math.min(first + 499, #list))) end
end

-- pinned tells whether a member must stay: its flow has not ended, or has its id and other members, and would be
-- founded again by another execution of this id.
function purge.pinned(ctx, c, id)
  local h = c.flow and graph.head(ctx, c.flow)
  return h and (not h.en or c.flow == id and graph.count(h, 'nn') - graph.count(h, 'pu') > 1)
end

-- flow removes the header of a flow that has no members any more, and leaves a tombstone.
function purge.flow(ctx, h)
  local r = ctx.r
  purge.write(ctx, keys.flow_stone(r, h.id), h.st, h.pd, purge.keep(h.id))
  local key = h.uk and keys.keyed(r, h.uk)
  if key and keyed.owner(key) == graph.own(h) then redis.call('UNLINK', key) end
  redis.call('UNLINK', keys.flow(r, h.id), keys.members(r, h.id), keys.roots(r, h.id), keys.flow_tags(r, h.id))
  redis.call('ZREM', keys.flows(r), h.id)
  redis.call('ZREM', keys.flow_due(r), h.id)
  ctx.cache.flows[h.id] = false
end

-- founder files the member that founded a flow, and is its last one, at its own time: it had to stay for the others.
local function founder(ctx, h)
  local filed = redis.call('ZSCORE', keys.done(ctx.r), h.id)
  local c = filed and core.read(ctx, h.id)
  local ended = c and c.state and core.terminal(c) and tonumber(c.ended_at or '')
  if not ended then return end
  local at = math.max(ctx.now, indexes.over(ctx, c, math.max(ended, tonumber(h.en) or 0)))
  if at >= args.score(filed) then return end
  timers.put(ctx, timers.done, at, h.id)
end

-- member forgets what belongs to a member of a flow, and the flow with the last one.
function purge.member(ctx, c, id)
  links.forget(ctx, id)
  redis.call('UNLINK', keys.children(ctx.r, id))
  redis.call('ZREM', keys.members(ctx.r, c.flow), id)
  local h = graph.head(ctx, c.flow)
  if not h then return end
  graph.add(h, 'pu', 1)
  local left = graph.count(h, 'nn') - graph.count(h, 'pu')
  if h.en and left <= 0 then purge.flow(ctx, h) elseif h.en and left == 1 then founder(ctx, h) end
end

-- run removes an ended execution, at most 200 attempts a call, its core last: until then the core tells how far it got.
-- keep is how long the tombstone stays, ms. Returns true when nothing is left; flow.apply writes the rest.
function purge.run(ctx, c, id, keep)
  local r, gone = ctx.r, {}
  local first, attempts = tonumber(c.purged_until or '1') or 1, core.started(c)
  first = math.max(first, record.kept(c))
  local last = math.min(attempts, first + 199)
  base.let(ctx, c, id, first, last, gone)
  if last < attempts then
    unlink(gone)
    record.set(ctx, id, 'purged_until', reply.int(last + 1))
    return false
  end
  purge.write(ctx, keys.tombstone(r, id), c.state, c.digest, keep)
  if c.had_waits then waitpoint.purge(ctx, id) end
  if c.mailbox then mailbox.purge(ctx, id) end
  if c.key then keyed.free(ctx, c, id) end
  catalogue.drop(ctx, c, id)
  local rest = { keys.core(r, id), keys.input(r, id), keys.tags(r, id), keys.steps(r, id), keys.step_log(r, id),
    keys.attempts(r, id), keys.history(r, id) }
  for i = 1, #rest do gone[#gone + 1] = rest[i] end
  unlink(gone)
  record.forget(ctx, id)
  redis.call('ZREM', keys.done(r), id)
  if core.unsuccessful(c) then redis.call('ZREM', keys.unsuccessful(r), id) end
  if c.flow then purge.member(ctx, c, id) elseif c.children_wait then redis.call('UNLINK', keys.children(r, id)) end
  gate.purged(ctx, c.route, id)
  route.used(ctx, c.route, -1)
  ctx.moves.purged = (ctx.moves.purged or 0) + 1
  return true
end
