-- ff_resume_execution: an operator, or a policy, resumes a suspended execution without any signal, in somebody's
-- name. With a suspension id only that one is resumed. A repeated request id changes nothing.
-- Flags:   allow-oom
-- Go:      Engine.ResumeExecution
-- Args:    protocol id:id suspension:id? request:id trigger:operator|auto_resume delay:ms(0..2592000000)
-- Replies: OK code:code suspension:uuid; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found execution_not_suspended suspension_changed
local function ff_resume_execution(ctx, q)
  local id, expected, request, trigger, delay = q.id, q.suspension, q.request, q.trigger, q.delay
  local by, refused = trail.named(ctx)
  if not by then return refused end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  local u = c.had_waits and suspension.read(ctx, id) or {}
  if c.resume_request == request then return reply.already(c.state, u.id) end
  if not core.suspended(c) then return reply.err('execution_not_suspended', c.state) end
  if expected ~= '' and expected ~= u.id then return reply.err('suspension_changed', u.id) end
  suspension.resume(ctx, c, id, u, { reason = trigger == 'operator' and 'resumed_by_operator' or 'resumed',
    cause = 'operator', trigger = trigger, by = by, why = trail.why(ctx, 1024), delay = delay,
    core = { resume_request = request } }) -- not in the suspension: the next one replaces that
  flow.apply(ctx)
  return reply.ok(delay > 0 and 'R2c' or 'R1i', u.id)
end
