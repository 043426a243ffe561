-- token: the states of the keys that waitpoint tokens are signed with. The server knows a
-- key by its id, its fingerprint and until when it is good; secrets and tokens never come here. Fields of the hash:
--   current    id of the key that signs
--   k:<kid>    "<fingerprint> <expiry>", expiry 0 for the current one
local token = {}

local most_refused = 256

-- hex: exactly size lower-case digits.
function token.hex(text, size) return text and #text == size and not string.find(text, '[^0-9a-f]') end

-- state returns fingerprint and expiry of a key, nil when it is not known.
function token.state(ctx, kid)
  local text = redis.call('HGET', keys.kids(ctx.r), 'k:' .. kid)
  if not text then return nil end
  local fingerprint, expiry = string.match(text, '^(%x+) (%d+)$')
  return fingerprint, tonumber(expiry or '1')
end

-- good: the current key has expiry 0, the others are good until theirs.
function token.good(ctx, expiry) return expiry and (expiry == 0 or expiry > ctx.now) end

-- current is the id of the key that signs, nil when none was ever set.
function token.current(ctx)
  if ctx.cache.kid == nil then ctx.cache.kid = redis.call('HGET', keys.kids(ctx.r), 'current') end
  return ctx.cache.kid or nil
end

-- mintable returns nil when a token signed with the key may be stored, else the error. A key that was rotated out
-- still signs what ends (until, nil: never) before it does.
function token.mintable(ctx, kid, until_ms)
  local v = redis.call('HMGET', keys.kids(ctx.r), 'current', 'k:' .. kid)
  ctx.cache.kid = v[1]
  local expiry = v[2] and tonumber(string.match(v[2], '^%x+ (%d+)$'))
  if not v[1] or (kid == v[1] and not expiry) then return reply.err('hmac_secret_not_initialized') end
  if expiry == 0 or (expiry and until_ms and until_ms < expiry) then return nil end
  return reply.err('kid_not_current', v[1])
end

-- verify judges a token, presented by its digest, before anything else is looked at: whether there is such a
-- waitpoint is told only to those who hold its token. w is the waitpoint, or nil. Digests are hashes, so how long their
-- comparison takes says nothing of the token.
function token.verify(ctx, w, digest)
  local all, kids = redis.call('HGETALL', keys.kids(ctx.r)), {} -- the same command whatever there is
  for i = 1, #all, 2 do kids[all[i]] = all[i + 1] end
  if not kids.current then return reply.err('hmac_secret_not_initialized') end
  if not w or w.digest ~= digest then return reply.err('invalid_token') end
  local state = kids['k:' .. w.kid]
  local expiry = state and tonumber(string.match(state, '^%x+ (%d+)$') or '1')
  if not expiry then return reply.err('invalid_token') end
  if not token.good(ctx, expiry) then return reply.err('token_expired') end
  return nil
end

-- refused leaves the trace of a token that opened nothing: a count for all, and for the waitpoint that it named,
-- there or not, when; the latest ones are kept. The commands are the same whatever there is, and within a second the
-- same again change nothing but the count.
function token.refused(ctx, id, wid)
  redis.call('HINCRBY', keys.refusals(ctx.r), 'n', '1')
  redis.call('ZADD', keys.refused(ctx.r), reply.int(ctx.now - ctx.now % 1000), id .. ':' .. wid)
  redis.call('ZREMRANGEBYRANK', keys.refused(ctx.r), '0', reply.int(-1 - most_refused))
end
