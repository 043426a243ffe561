-- registry: the worker instances that said they are there (spec 40 §5). One lives in the partition that the hash of its
-- name chooses: its row is in workers by expiry, its record is a hash: token (whose it is), exp, seen (last heard of),
-- reg (first heard of), in (executions it says it holds), info (what it is, opaque), and dead and why once an operator
-- gave it up. Nothing depends on a row: leases decide who holds what. The record outlives its expiry by an hour, so that
-- one can see when a lost worker was last there.
local registry = {}

registry.kept = 3600000 -- ms

function registry.read(ctx, instance)
  local v = redis.call('HMGET', keys.worker(ctx.r, instance), 'token', 'exp', 'reg', 'dead')
  local w = { token = v[1], exp = v[2] and tonumber(v[2]), reg = v[3], dead = v[4] }
  w.alive = w.exp and w.exp > ctx.now and not w.dead
  return w
end

-- beyond tells whether a comes after b in a zset, byte by byte: the server may compare texts by its locale.
local function beyond(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- page lists up to most members of a zset by score, from behind a cursor '<score> <member>' on ('' is the start), as
-- ZRANGE WITHSCORES does. A member whose score grows meanwhile may come twice, and none that stays is missed. It returns
-- nil for what is no cursor.
function registry.page(key, after, most)
  local first = 0
  if after ~= '' then
    local score, member = string.match(after or '', '^(%d+) (.+)$')
    if not score or not args.int(score, 0, 9007199254740991) then return nil end
    local last = redis.call('ZCOUNT', key, '-inf', score)
    first = redis.call('ZCOUNT', key, '-inf', '(' .. score)
    while first < last do -- the cursor's member may be gone, and many may have its score
      local middle = math.floor((first + last) / 2)
      local there = redis.call('ZRANGE', key, reply.int(middle), reply.int(middle))
      if beyond(there[1], member) then
        last = middle
      else
        first = middle + 1
      end
    end
  end
  return redis.call('ZRANGE', key, reply.int(first), reply.int(first + most - 1), 'WITHSCORES')
end
