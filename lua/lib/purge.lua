-- purge: removes every key of an ended execution and leaves a tombstone, so that its id and idempotency key stay
-- taken for a while (design §9). A tombstone is "code expiry digest"; its key's TTL only cleans up (design §2.7).
local purge = {}

-- stone reads a tombstone.
function purge.stone(ctx, key)
  local stone = redis.call('GET', key)
  if not stone then return nil end
  local code, expiry, digest = string.match(stone, '^(%w+) (%d+) (.*)$')
  if not code or tonumber(expiry) <= ctx.now then return nil end
  return code, digest, tonumber(expiry)
end

-- read returns code, payload digest and expiry of a purged execution, nil when there is no tombstone or its time is over.
function purge.read(ctx, id) return purge.stone(ctx, keys.tombstone(ctx.r, id)) end

-- missing is what a reader is told of an execution that has no core.
function purge.missing(ctx, id)
  local code = purge.read(ctx, id)
  if code then return reply.err('result_purged', code) end
  return reply.err('execution_not_found')
end

-- unlink removes many keys, a few hundred at a time.
local function unlink(list)
  for first = 1, #list, 500 do redis.call('UNLINK', unpack(list, first, math.min(first + 499, #list))) end
end

-- pinned tells whether a member must stay: its flow has not ended, or has its id and other members, and would be founded again
-- by another execution of this id.
function purge.pinned(ctx, c, id)
  local h = c.fl and graph.head(ctx, c.fl)
  return h and (not h.en or c.fl == id and graph.count(h, 'nn') - graph.count(h, 'pu') > 1)
end

-- flow removes the header of a flow that has no members any more, and leaves a tombstone.
function purge.flow(ctx, h)
  local r, keep = ctx.r, 86400000
  redis.call('SET', keys.flow_stone(r, h.id), h.st .. ' ' .. reply.int(ctx.now + keep) .. ' ' .. (h.pd or ''), 'PX', reply.int(keep))
  redis.call('UNLINK', keys.flow(r, h.id), keys.members(r, h.id), keys.roots(r, h.id), keys.flow_tags(r, h.id))
  redis.call('ZREM', keys.flows(r), h.id)
  redis.call('ZREM', keys.flow_due(r), h.id)
  ctx.flows[h.id] = false
end

-- member forgets what belongs to a member of a flow, and the flow with the last one.
function purge.member(ctx, c, id)
  redis.call('UNLINK', keys.outgoing(ctx.r, id), keys.incoming(ctx.r, id), keys.children(ctx.r, id))
  redis.call('ZREM', keys.members(ctx.r, c.fl), id)
  local h = graph.head(ctx, c.fl)
  if not h then return end
  graph.add(h, 'pu', 1)
  if h.en and graph.count(h, 'pu') >= graph.count(h, 'nn') then purge.flow(ctx, h) end
end

-- run removes an ended execution, at most 200 attempts a call, its core last: until then the core tells how far it got.
-- keep is how long the tombstone stays, ms. Returns true when nothing is left; home.apply writes the rest.
function purge.run(ctx, c, id, keep)
  local r, gone = ctx.r, {}
  local first, attempts = tonumber(c.pu or '0') or 0, tonumber(c.n or '0') or 0
  local last = math.min(attempts, first + 200)
  for attempt = first, last - 1 do
    local a = reply.int(attempt)
    local own = { keys.result(r, id, a), keys.stream(r, id, a), keys.meta(r, id, a), keys.deltas(r, id, a), keys.live(r, id, a),
      keys.summary(r, id, a) }
    for i = 1, #own do gone[#gone + 1] = own[i] end
  end
  if last < attempts then
    unlink(gone)
    redis.call('HSET', keys.core(r, id), 'pu', reply.int(last))
    return false
  end
  redis.call('SET', keys.tombstone(r, id), c.s .. ' ' .. reply.int(ctx.now + keep) .. ' ' .. (c.pd or ''), 'PX', reply.int(keep))
  if c.uw then waitpoint.purge(ctx, id) end
  local rest = { keys.core(r, id), keys.input(r, id), keys.tags(r, id), keys.steps(r, id), keys.attempts(r, id), keys.history(r, id) }
  for i = 1, #rest do gone[#gone + 1] = rest[i] end
  unlink(gone)
  redis.call('ZREM', keys.done(r), id)
  if c.fl then purge.member(ctx, c, id) end
  ctx.counting = ctx.counting or tonumber(redis.call('HGET', r, 'counting') or '9007199254740991')
  if (tonumber(c.ct or '') or 0) >= ctx.counting then home.used(ctx, c.r, -1) end -- older ones were never counted
  ctx.purged = (ctx.purged or 0) + 1
  return true
end
