-- ff_set_token_keys: makes known which key signs tokens in this partition. seed does it where none is known yet; rotate
-- replaces the current one, whose tokens stay good for grace ms. A rotation under which tokens of open waitpoints would
-- die before they are needed is refused unless forced.
-- Flags:   allow-oom
-- Go:      Engine.setTokenKeys
-- Args:    protocol mode:seed|rotate kid:kid fingerprint:hex(16) grace:ms force:flag
-- Replies: OK outcome:seeded|rotated previous:kid? reaped:n open:n; ALREADY_SATISFIED current:kid good:flag
-- Errors:  @root invalid_input invalid_kid invalid_grace_ms rotation_conflict grace_too_short
local ff_keys = {}

-- reap forgets keys whose time is over, by the predicate that verification uses; the current one has none.
function ff_keys.reap(ctx)
  local all, gone = redis.call('HGETALL', keys.kids(ctx.r)), {}
  for i = 1, #all, 2 do
    local expiry = string.match(all[i + 1], '^%x+ (%d+)$')
    if string.sub(all[i], 1, 2) == 'k:' and not token.good(ctx, tonumber(expiry or '1')) then
      gone[#gone + 1] = all[i]
    end
  end
  for first = 1, #gone, 500 do
    redis.call('HDEL', keys.kids(ctx.r), unpack(gone, first, math.min(first + 499, #gone)))
  end
  return #gone
end

-- needed is until when tokens of a key are needed, and how many waitpoints are open under it.
function ff_keys.needed(ctx, kid)
  local key = keys.open(ctx.r, kid)
  local last = redis.call('ZRANGE', key, '-1', '-1', 'WITHSCORES')
  return last[2] and args.score(last[2]) or 0, redis.call('ZCARD', key)
end

local function ff_set_token_keys(ctx, argv)
  local mode, kid, fingerprint, force = argv[2], argv[3], argv[4], argv[6]
  local grace = args.int(argv[5], 0, 9007199254740991 - ctx.now)
  if mode ~= 'seed' and mode ~= 'rotate' then return reply.err('invalid_input', 'mode: seed or rotate') end
  if not token.kid(kid) then return reply.err('invalid_kid', '1..32 of A-Z a-z 0-9 . _ -') end
  if not token.hex(fingerprint, 16) then return reply.err('invalid_input', 'fingerprint: 16 hex digits') end
  if not grace then return reply.err('invalid_grace_ms', 'whole ms from 0') end
  if force ~= '0' and force ~= '1' then return reply.err('invalid_input', 'force: 0 or 1') end

  local key, current = keys.kids(ctx.r), token.current(ctx)
  local known, expiry = token.state(ctx, kid)
  if known and known ~= fingerprint and (token.good(ctx, expiry) or kid == current) then
    return reply.err('rotation_conflict', kid)
  end
  if mode == 'rotate' and current and kid ~= current and not (known and token.good(ctx, expiry)) and
      redis.call('EXISTS', keys.open(ctx.r, kid)) == 1 then
    return reply.err('rotation_conflict', kid) -- tokens that died with the key of this id would live again
  end
  if current == kid and known then return reply.already(current, '1') end
  if mode == 'seed' and current and current ~= kid then
    return reply.already(current, token.good(ctx, expiry) and '1' or '0')
  end
  local previous, open = '', 0
  if current and current ~= kid then
    local needed
    needed, open = ff_keys.needed(ctx, current)
    if open > 0 and needed > ctx.now + grace and force == '0' then
      return reply.err('grace_too_short', current, reply.int(open), reply.int(needed))
    end
    previous = current
    local outgoing = token.state(ctx, current)
    redis.call('HSET', key, 'k:' .. current, (outgoing or '0') .. ' ' .. reply.int(ctx.now + grace))
  end
  redis.call('HSET', key, 'current', kid, 'k:' .. kid, fingerprint .. ' 0')
  return reply.ok(mode == 'seed' and 'seeded' or 'rotated', previous, reply.int(ff_keys.reap(ctx)), reply.int(open))
end
