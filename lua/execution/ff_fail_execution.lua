-- ff_fail_execution: ends the attempt; the stored policy decides between a retry and the dead letter. step is the
-- durable step whose function returned the error, after took ms by the worker's own clock; '' if it was none.
-- Flags:   allow-oom
-- Go:      Engine.FailExecution
-- Args:    protocol fence category:line(1..64) reason:bytes(1024) permanent:flag after:when? step:bytes(128)
--          took:ms(0..315360000000)
-- Replies: OK outcome:retry|failed instant:instant? now:instant; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input
local function ff_fail_execution(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local category, reason, after = argv[7], argv[8], nil
  if not category or #category < 1 or #category > 64 or string.find(category, '[^%w_.:-]') then
    return reply.err('invalid_input', 'category: 1..64 bytes of letters, digits or _.:-')
  end
  if not reason or #reason > 1024 then return reply.err('invalid_input', 'reason: at most 1024 bytes') end
  if argv[9] ~= '0' and argv[9] ~= '1' then return reply.err('invalid_input', 'permanent: 0 or 1') end
  if argv[10] ~= '' then
    after = args.int(argv[10], 0, 315360000000)
    if not after then return reply.err('invalid_input', 'retry after: whole ms, at most ten years') end
  end
  local step, took = argv[11], args.int(argv[12], 0, 315360000000)
  if step ~= '' and not steps.name(step) then return reply.err('invalid_input', 'step: at most 128 bytes') end
  if not took then return reply.err('invalid_input', 'took: whole ms, at most ten years') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    local slot = fence.released(c, f, 'f')
    if slot == 'failed' then return reply.already('failed', '', reply.int(ctx.now)) end
    if slot then return reply.already('retry', slot, reply.int(ctx.now)) end
    return answer
  end
  -- The holder's own timer may be faster than the tick: the same end, whichever notices first.
  local timeout = category == 'attempt_timeout' and c.attempt_deadline and tonumber(c.attempt_deadline) <= ctx.now
  local what, at = settle.fail(ctx, c, f.id, { category = category, reason = reason, permanent = argv[9] == '1',
    after = after, release = f, timeout = timeout })
  if step ~= '' then steps.failed(ctx, f.id, f.attempt, step, reply.int(took)) end
  flow.apply(ctx)
  return reply.ok(what, at, reply.int(ctx.now))
end
