-- ff_complete_execution: settles up to 100 held executions as completed, each judged alone, and may claim the
-- next ones in the same call (claim = 1, then the arguments of ff_claim_next). An answer is + (settled), = (an
-- earlier identical call had settled it) or -<code> <detail>.
-- Flags:   allow-oom
-- Go:      Engine.CompleteExecutions
-- Args:    protocol count {id session claim epoch attempt result} claim [session number ttl max interest table wait rotation]
-- Replies: OK count {answer} claim {as ff_claim_next, with its own envelope}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_complete = {}

-- refuse tells why a caller is not the holder, or that its completion was recorded before and the reply was lost.
function ff_complete.refuse(ctx, v, argv, i)
  local f, bad = fence.parse(argv, i)
  if f then
    local c = { s = v[1], ss = v[2], cl = v[3], e = v[4], n = v[5] }
    if c.s == 'T1' and c.ss == f.session and c.cl == f.claim and c.e == f.epoch and core.attempt(c) == f.attempt then
      return '='
    end
    c.lr = redis.call('HGET', keys.core(ctx.r, f.id), 'lr') or nil
    bad = fence.check(ctx, c, f)
  end
  return '-' .. table.concat(bad, ' ', 2)
end

-- judge reads one item from position i and returns its core fields, or nil and its answer.
function ff_complete.judge(ctx, argv, i, seen)
  local id = argv[i]
  if #argv[i + 5] > 1048576 then return nil, '-payload_too_large result: at most 1048576 bytes' end
  if seen[id] then return nil, '-invalid_input the same execution twice in one call' end
  local key = keys.core(ctx.r, id)
  seen[id] = key
  local v = redis.call('HMGET', key, 's', 'ss', 'cl', 'e', 'n', 'r', 'x')
  if fence.holds(ctx, v, argv, i) then
    -- To look for fields that are not there costs as much as all the others; what an older library claimed has no x.
    if not v[7] or v[7] == '0' or tonumber(v[7]) ~= redis.call('HLEN', key) then
      v.w = redis.call('HMGET', key, 'dl', 'ta', 'fa', 'wp', 'rt', 'fl')
    end
    return v
  end
  return nil, ff_complete.refuse(ctx, v, argv, i)
end

local function ff_complete_execution(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 100)
  if not count then return reply.err('invalid_input', 'count: 1..100') end
  local position = 3 + 6 * count
  local wants = argv[position]
  if wants ~= '0' and wants ~= '1' then return reply.err('invalid_input', 'claim: 0 or 1') end
  local q = nil
  if wants == '1' then
    local bad
    q, bad = claim.parse(argv, position + 1)
    if not q then return bad end
  end

  local held, out, seen = {}, { 1, 'OK', argv[2] }, {}
  for n = 1, count do
    local v, answer = ff_complete.judge(ctx, argv, 6 * n - 3, seen)
    held[n] = v or false
    out[3 + n] = answer or '+'
  end
  for n = 1, count do
    local i = 6 * n - 3
    if held[n] then settle.complete(ctx, held[n], argv[i], argv[i + 4], argv[i + 5], seen[argv[i]]) end
  end
  local members = ctx.members or 0
  if members > 0 then ctx.nodes = 64 - math.floor(members / 2) end
  if q and members > 0 then home.expect(ctx) end
  home.apply(ctx)
  local coming = home.taking(ctx)
  if q and members > 0 then -- what their ends made to do is paid for by claiming less
    q.max = math.min(q.max, math.max(8, 40 - math.floor(members / 7) + ctx.nodes))
  end
  out[4 + count] = wants
  if q then
    local claimed = claim.run(ctx, q)
    if coming then home.met(ctx, coming, ctx.claims) end
    out[5 + count] = reply.int(claimed[1])
    for i = 2, #claimed do out[#out + 1] = claimed[i] end
  end
  return out
end
