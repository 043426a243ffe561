-- registry: the worker instances that said they are there. One lives in the partition that the hash of its name
-- chooses: its row is in workers by expiry, its record is a hash: token (whose it is), exp, seen (last heard of), reg
-- (first heard of), in (handlers it says are at work), stuck (those of them that ignore the end of their context),
-- info (what it is, opaque), and dead and why once an operator gave it up. Nothing depends on a row: leases decide
-- who holds what. The record outlives its expiry by an hour, so that one can see when a lost worker was last there.
local registry = {}

-- stale tells that a worker was last heard of before the clock stepped back: seen lies ahead of now. Such a row says
-- nothing until it is renewed, which takes a third of its ttl if the worker lives.
function registry.stale(ctx, seen) return seen and (tonumber(seen) or 0) > ctx.now + root.step end

function registry.read(ctx, instance)
  local v = redis.call('HMGET', keys.worker(ctx.r, instance), 'token', 'exp', 'reg', 'dead', 'seen')
  local w = { token = v[1], exp = v[2] and tonumber(v[2]), reg = v[3], dead = v[4] }
  w.alive = w.exp and w.exp > ctx.now and not w.dead and not registry.stale(ctx, v[5])
  return w
end

-- page lists up to most members of a zset by score, from behind a cursor '<score> <member>' on ('' is the start), and
-- tells whether there are more. A member whose score grows meanwhile may come twice, and none that stays is missed.
-- It returns nil for what is no cursor.
function registry.page(key, after, most)
  if after == '' then return listing.page(key, nil, false, most) end
  local score, member = string.match(after or '', '^(%d+) (.+)$')
  local cursor = score and listing.cursor(score, member)
  if not cursor then return nil end
  return listing.page(key, cursor, false, most)
end
