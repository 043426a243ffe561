-- ff_rewind_execution: an execution, in any state, goes on again from a recorded step on: that step and all that was
-- recorded at or after it are forgotten, and it is claimable at once, for an attempt of type replay. Who holds it loses
-- it, what it waits for is closed, and children that it waits for are cancelled; no retry is used up. One that has
-- ended is replayed, also a success. With an attempt that is not 0, it is refused unless the execution is in that one,
-- so that of two who saw the same one wins. With an encoding, a message is recorded as the receipt "edit" and the step.
-- The answer says in which attempt it goes on, and which steps are forgotten. A repeated request id changes nothing,
-- and is not told the steps.
-- Flags:   none
-- Go:      Engine.RewindExecution
-- Args:    protocol id:id request:id step:bytes(1..128) attempt:n(0..4294967295) encoding:json|utf8|bytes|
--          !payload_too_large payload:bytes(65536)
-- Replies: OK attempt:n steps:rows {name:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large execution_not_found attempt_changed flow_cancelled resolution_pending
--          step_not_found max_replays_exhausted key_taken step_limit_exceeded
local function ff_rewind_execution(ctx, q)
  local id, step = q.id, q.step
  if not steps.name(step) or q.encoding ~= '' and #step > 120 then
    return reply.err('invalid_input', 'step: another first byte, or more than 120 bytes with a message')
  end
  q.from, q.steps, q.force = step, 'from ' .. step, true
  local c = core.read(ctx, id)
  local answer = rewind.refuse(ctx, c, id, q)
  if answer then return answer end
  local rival = core.terminal(c) and keyed.rival(ctx, c, id)
  if rival then return reply.err('key_taken', rival) end
  answer = rewind.run(ctx, c, id, q)
  flow.apply(ctx)
  return answer
end
