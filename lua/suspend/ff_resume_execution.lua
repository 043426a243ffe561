-- ff_resume_execution: an operator, or a policy, resumes a suspended execution without any signal. With a suspension id
-- only that one is resumed. A repeated request id changes nothing.
-- Flags:   allow-oom
-- Go:      Engine.ResumeExecution
-- Args:    protocol id:id suspension:id? request:uuid trigger:operator|auto_resume by:line(1..64) reason:bytes(1024)
--          delay:ms(0..2592000000)
-- Replies: OK code:code suspension:uuid; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found execution_not_suspended suspension_changed
local function ff_resume_execution(ctx, argv)
  local id, expected, request, trigger, by, why = args.id(argv[2]), argv[3], args.id(argv[4]), argv[5], argv[6], argv[7]
  local delay = args.int(argv[8], 0, 2592000000)
  if not id then return reply.err('invalid_input', 'execution id') end
  if expected ~= '' and not args.id(expected) then return reply.err('invalid_input', 'suspension id') end
  if not request then return reply.err('invalid_input', 'request id') end
  if trigger ~= 'operator' and trigger ~= 'auto_resume' then
    return reply.err('invalid_input', 'trigger: operator or auto_resume')
  end
  if not by or #by < 1 or #by > 64 or string.find(by, '%c') then
    return reply.err('invalid_input', 'by: 1..64 bytes without control characters')
  end
  if not why or #why > 1024 or string.find(why, '[%z\31]') then
    return reply.err('invalid_input', 'reason: at most 1024 bytes')
  end
  if not delay then return reply.err('invalid_input', 'delay: 0..2592000000 ms') end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  local u = c.had_waits and suspension.read(ctx, id) or {}
  if c.resume_request == request then return reply.already(c.state, u.id) end
  if not core.suspended(c) then return reply.err('execution_not_suspended', c.state) end
  if expected ~= '' and expected ~= u.id then return reply.err('suspension_changed', u.id) end
  suspension.resume(ctx, c, id, u, { reason = trigger == 'operator' and 'resumed_by_operator' or 'resumed',
    cause = 'operator',
    trigger = trigger, by = by, why = why, delay = delay,
    core = { resume_request = request } }) -- not in the suspension: the next one replaces that
  flow.apply(ctx)
  return reply.ok(delay > 0 and 'R2c' or 'R1i', u.id)
end
