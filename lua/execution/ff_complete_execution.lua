-- ff_complete_execution: settles up to 100 held executions as completed, each judged alone, and may claim the
-- next ones in the same call (claim = 1, then the arguments of ff_claim_next). An answer is + (settled), = (an
-- earlier identical call had settled it) or -<code> <detail>.
-- Flags:   allow-oom
-- Go:      Engine.CompleteExecutions
-- Args:    protocol count {id session claim epoch attempt result} claim [session number ttl max interest table wait rotation]
-- Replies: OK count {answer} claim {as ff_claim_next, with its own envelope}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_complete = {}

-- read fetches just what settling needs: this is the hottest read of all.
function ff_complete.read(ctx, id)
  local v = redis.call('HMGET', keys.core(ctx.r, id), 's', 'ss', 'cl', 'e', 'n', 'dl', 'ta', 'fa')
  return { s = v[1], ss = v[2], cl = v[3], e = v[4], n = v[5], dl = v[6], ta = v[7], fa = v[8] }
end

-- repeated recognises the holder whose completion was recorded and whose reply was lost.
function ff_complete.repeated(c, f)
  return c.s == 'T1' and c.ss == f.session and c.cl == f.claim and c.e == f.epoch and core.attempt(c) == f.attempt
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

  local items, seen = {}, {}
  for n = 1, count do
    local i = 3 + 6 * (n - 1)
    local f, bad = fence.parse(argv, i)
    if not f then
      items[n] = { bad = bad }
    elseif #argv[i + 5] > 1048576 then
      items[n] = { bad = reply.err('payload_too_large', 'result: at most 1048576 bytes') }
    elseif seen[f.id] then
      items[n] = { bad = reply.err('invalid_input', 'the same execution twice in one call') }
    else
      seen[f.id] = true
      local c = ff_complete.read(ctx, f.id)
      local refusal = fence.check(ctx, c, f)
      local repeated = refusal and ff_complete.repeated(c, f)
      items[n] = { f = f, c = c, repeated = repeated, bad = not repeated and refusal or nil, result = argv[i + 5] }
    end
  end

  local out = { 1, 'OK', reply.int(count) }
  for n = 1, count do
    local x = items[n]
    if x.bad then
      out[#out + 1] = '-' .. table.concat(x.bad, ' ', 2)
    elseif x.repeated then
      out[#out + 1] = '='
    else
      local f = x.f
      settle.finish(ctx, x.c, f.id, 'T1', 'attempt_success')
      if #x.result > 0 then redis.call('SET', keys.result(ctx.r, f.id, f.attempt), x.result) end
      out[#out + 1] = '+'
    end
  end
  home.apply(ctx)
  out[#out + 1] = wants
  if q then
    local claimed = claim.run(ctx, q)
    out[#out + 1] = reply.int(claimed[1])
    for i = 2, #claimed do out[#out + 1] = claimed[i] end
  end
  return out
end
