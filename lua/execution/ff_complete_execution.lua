-- ff_complete_execution: settles up to 100 held executions as completed, each judged alone, and may claim the
-- next ones in the same call (claim = 1, then the arguments of ff_claim_next).
-- Flags:   allow-oom
-- Go:      Engine.CompleteExecutions
-- Args:    protocol count {id session claim epoch attempt result} claim [session number ttl max interest table wait rotation]
-- Replies: OK count {status slot1 slot2 slot3 slot4} claim {as ff_claim_next, with its own envelope}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_complete_fields = { 's', 'ss', 'cl', 'e', 'n', 'lr', 'r', 'dl', 'ta', 'fa' }

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
      items[n] = { answer = bad }
    elseif #argv[i + 5] > 1048576 then
      items[n] = { answer = reply.err('payload_too_large', 'result: at most 1048576 bytes') }
    elseif seen[f.id] then
      items[n] = { answer = reply.err('invalid_input', 'the same execution twice in one call') }
    else
      seen[f.id] = true
      local c = core.read(ctx, f.id, ff_complete_fields)
      local answer = fence.check(ctx, c, f)
      if answer and fence.released(c, f, 'c') then answer = reply.already('completed') end
      items[n] = { f = f, c = c, answer = answer, result = argv[i + 5] }
    end
  end

  local out = { 1, 'OK', reply.int(count) }
  for n = 1, count do
    local x = items[n]
    if not x.answer then
      local f = x.f
      settle.finish(ctx, x.c, f.id, 'T1', 'attempt_success', { 'lr', fence.release('c', f.epoch, f.attempt, '') })
      if #x.result > 0 then redis.call('SET', keys.result(ctx.r, f.id, f.attempt), x.result) end
      x.answer = reply.ok('completed')
    end
    for slot = 2, 6 do out[#out + 1] = x.answer[slot] or '' end
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
