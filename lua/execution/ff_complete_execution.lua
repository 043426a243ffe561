-- ff_complete_execution: settles up to 100 held executions as completed, each judged alone, and may claim the
-- next ones in the same call (claim = 1, then the arguments of ff_claim_next). An answer is + (settled), = (an
-- earlier identical call had settled it) or -<code> <detail>.
-- Flags:   allow-oom
-- Go:      Engine.CompleteExecutions
-- Args:    protocol completions:rows(1..100) {fence result:bytes(1048576)} claim:flag [search]
-- Replies: OK answers:rows {answer:text} claim:flag [1 OK {as ff_claim_next} or 0 code:text [detail:text]]
-- Errors:  @root invalid_input
local ff_complete = {}

-- repeated tells whether the completion was recorded before, under the same fence, and the reply was lost.
function ff_complete.repeated(c, f)
  return c.state == 'T1' and c.session == f.session and c.claim_number == f.claim and c.epoch == f.epoch
    and core.attempt(c) == f.attempt
end

-- plainly reads the records of all items and settles the plain ones that are no members of a flow, without a table
-- for each, where nobody asked for more. Of the others it leaves the answer open, but for what comes twice.
function ff_complete.plainly(ctx, argv, count, out)
  local texts, written, list, r = ctx.cache.texts, record.writes(ctx), {}, ctx.r
  local done, kept, filed, size
  local by, claim, epoch, attempt, held, n_held, token, ended, message
  for n = 1, count do list[n] = keys.core(r, argv[6 * n - 3]) end
  local values = redis.call('MGET', unpack(list))
  for n = 1, count do
    local i = 6 * n - 3
    local id, text, result = argv[i], values[n], argv[i + 5]
    if text and ctx.calm and (argv[i + 3] ~= epoch or argv[i + 1] ~= by or argv[i + 2] ~= claim or
        argv[i + 4] ~= attempt) then
      by, claim, epoch, attempt = argv[i + 1], argv[i + 2], argv[i + 3], argv[i + 4]
      token, size = record.token(by, claim, epoch, attempt), nil
      message = 'T1 ' .. attempt
      held = nil
    end
    if texts[id] ~= nil then
      out[3 + n] = '-invalid_input the same execution twice in one call'
    elseif token and text and string.find(text, token, 1, true) == 1 and #result <= record.inline and
        record.bare(text, token) and session.read(ctx, by).alive then
      if not held then
        held = indexes.unheld(ctx, by)
        n_held = #held
      end
      if not done then
        done, kept = indexes.usual(ctx)
        filed = #done
      end
      if #result ~= size then
        size = #result
        ended = record.ended(token, ctx.t, size)
      end
      text = record.completed(text, token, ended, result)
      written[#written + 1], written[#written + 2] = list[n], text
      n_held = n_held + 1
      held[n_held], done[filed + 1], done[filed + 2] = id, kept, id
      filed = filed + 2
      publish.to(keys.events(r, id), message)
      out[3 + n] = '+'
    end
    texts[id] = text
  end
end

-- judge returns nil for an item that is to be settled, else its answer. It notes of a plain record its token, route,
-- and of a member the flow; of another one its fields.
function ff_complete.judge(ctx, f)
  local id = f.id
  if #f.result > 1048576 then return '-payload_too_large result: at most 1048576 bytes' end
  local bad = fence.refuse(f)
  if bad then return '-' .. table.concat(bad, ' ', 2) end
  local text, token = ctx.cache.texts[id], record.token(f.session, f.claim, f.epoch, f.attempt)
  if text and string.find(text, token, 1, true) == 1 and session.read(ctx, f.session).alive then
    f.token, f.route, f.flow = token, record.plain(text, token)
    if f.route then return nil end
  end
  local c = core.read(ctx, id)
  if ff_complete.repeated(c, f) then return '=' end
  bad = fence.check(ctx, c, f)
  if bad then return '-' .. table.concat(bad, ' ', 2) end
  f.core, f.flow = c, c.flow
  return nil
end

local function ff_complete_execution(k, argv)
  local count = args.int(argv[2], 1, 100)
  local position = 3 + 6 * (count or 0)
  local wants = argv[position]
  local ctx, refused = root.enter(k, argv, count and wants == '1')
  if not ctx then return refused end
  if not count then return reply.err('invalid_input', 'count: 1..100') end
  if wants ~= '0' and wants ~= '1' then return reply.err('invalid_input', 'claim: 0 or 1') end
  local q, bad = nil, nil
  if wants == '1' then
    q, bad = claim.parse(argv, position + 1)
    if not q then return bad end
  end

  local out, linked, settled = { 1, 'OK', argv[2] }, {}, {}
  ff_complete.plainly(ctx, argv, count, out)
  for n = 1, count do
    if not out[3 + n] then
      local i = 6 * n - 3
      local f = { id = argv[i], session = argv[i + 1], claim = argv[i + 2], epoch = argv[i + 3], attempt = argv[i + 4],
        result = argv[i + 5], token = nil, route = nil, flow = nil, core = nil }
      local answer = ff_complete.judge(ctx, f)
      out[3 + n] = answer or '+'
      if not answer then
        settled[#settled + 1] = f
        if f.flow then linked[#linked + 1] = f.id end
      end
    end
  end
  if #linked > 0 then links.load(ctx, linked) end
  for n = 1, #settled do
    local f = settled[n]
    if f.core then settle.complete(ctx, f.core, f.id, f.result) else settle.splice(ctx, f) end
  end
  local members = ctx.moves.members or 0
  if members > 0 then ctx.moves.nodes = 64 - math.floor(members / 2) end
  if q and members > 0 then ctx.moves.coming = true end
  flow.apply(ctx)
  if ctx.moves.coming then -- what their ends made to do is paid for by claiming less
    q.max = math.min(q.max, math.max(8, 40 - math.floor(members / 7) + ctx.moves.nodes))
  end
  out[4 + count] = wants
  if q then
    local claimed = claim.run(ctx, q)
    ctx.moves.coming = nil
    if members > 0 then indexes.apply(ctx) end -- what a claim that was refused has left
    out[5 + count] = reply.int(claimed[1])
    for i = 2, #claimed do out[#out + 1] = claimed[i] end
  end
  return out
end
