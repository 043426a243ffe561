-- ff_complete_execution: settles up to 100 held executions as completed, each judged alone, and may claim the
-- next ones in the same call (claim = 1, then the arguments of ff_claim_next). An answer is + (settled), = (an
-- earlier identical call had settled it) or -<code> <detail>.
-- Flags:   allow-oom
-- Go:      Engine.CompleteExecutions
-- Args:    protocol count {id session claim epoch attempt result} claim [session number ttl max interest table wait rotation grants]
-- Replies: OK count {answer} claim [status code {as ff_claim_next} or 0 code [detail]]
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_complete = {}

-- repeated tells whether the completion was recorded before, under the same fence, and the reply was lost.
function ff_complete.repeated(c, f)
  return c.s == 'T1' and c.ss == f.session and c.cl == f.claim and c.e == f.epoch and core.attempt(c) == f.attempt
end

-- judge looks at one item from position i. It returns its fence and, of a plain record, token, route and of a member its flow; or its fence
-- and its fields; or nil and its answer.
function ff_complete.judge(ctx, argv, i, seen)
  local id = argv[i]
  if #argv[i + 5] > 1048576 then return nil, '-payload_too_large result: at most 1048576 bytes' end
  if seen[id] then return nil, '-invalid_input the same execution twice in one call' end
  seen[id] = true
  local f, bad = fence.parse(argv, i)
  if not f then return nil, '-' .. table.concat(bad, ' ', 2) end
  local text, token = ctx.texts[id], record.token(f.session, f.claim, f.epoch, f.attempt)
  if text and string.find(text, token, 1, true) == 1 and session.read(ctx, f.session).alive then
    local route_id, flow_id = record.plain(text, token)
    if route_id then return f, token, route_id, flow_id end
  end
  local c = core.read(ctx, id)
  if ff_complete.repeated(c, f) then return nil, '=' end
  bad = fence.check(ctx, c, f)
  if bad then return nil, '-' .. table.concat(bad, ' ', 2) end
  return f, c
end

local function ff_complete_execution(k, argv)
  local count = args.int(argv[2], 1, 100)
  local ctx, refused = root.enter(k, argv, count and argv[3 + 6 * count] == '1')
  if not ctx then return refused end
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

  local ids = {}
  for n = 1, count do
    local i = 6 * n - 3
    if not argv[i + 5] then return reply.err('invalid_input', 'arguments: item ' .. reply.int(n) .. ' is cut short') end
    ids[n] = argv[i]
  end
  record.load(ctx, ids)
  local items, out, seen, linked = {}, { 1, 'OK', argv[2] }, {}, {}
  for n = 1, count do
    local f, found, route_id, flow_id = ff_complete.judge(ctx, argv, 6 * n - 3, seen)
    items[n] = f and { f = f, found = found, route = route_id, flow = flow_id } or false
    out[3 + n] = f and '+' or found
    if f and (flow_id or not route_id and found.fl) then linked[#linked + 1] = f.id end
  end
  if #linked > 0 then links.load(ctx, linked) end
  for n = 1, count do
    local item = items[n]
    if item then
      local f, result = item.f, argv[6 * n + 2]
      if item.route then
        settle.splice(ctx, f, result, ctx.texts[f.id], item.found, item.route, item.flow)
      else
        settle.complete(ctx, item.found, f.id, result)
      end
    end
  end
  local members = ctx.members or 0
  if members > 0 then ctx.nodes = 64 - math.floor(members / 2) end
  if q and members > 0 then ctx.coming = true end
  flow.apply(ctx)
  if ctx.coming then -- what their ends made to do is paid for by claiming less
    q.max = math.min(q.max, math.max(8, 40 - math.floor(members / 7) + ctx.nodes))
  end
  out[4 + count] = wants
  if q then
    local claimed = claim.run(ctx, q)
    ctx.coming = nil
    if members > 0 then home.apply(ctx) end -- what a claim that was refused has left
    out[5 + count] = reply.int(claimed[1])
    for i = 2, #claimed do out[#out + 1] = claimed[i] end
  end
  return out
end
