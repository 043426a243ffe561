-- ff_fail_execution: ends the attempt; the stored policy decides between a retry and the dead letter. step is the
-- durable step whose function returned the error, after took ms by the worker's own clock; '' if it was none.
-- Flags:   allow-oom
-- Go:      Engine.FailExecution
-- Args:    protocol fence category:line(1..64) reason:bytes(1024) permanent:flag after:ms(0..315360000000)? step:bytes(128)
--          took:ms(0..315360000000)
-- Replies: OK outcome:retry|failed instant:instant? now:instant; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input
local function ff_fail_execution(ctx, q)
  local f, category, reason, after, step, took = q.fence, q.category, q.reason, q.after, q.step, q.took
  if string.find(category, '[^%w_.:-]') then
    return reply.err('invalid_input', 'category: 1..64 letters, digits, _ . : or -')
  end
  if step ~= '' and not steps.name(step) then return reply.err('invalid_input', 'step: another first byte') end
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
  local what, at = settle.fail(ctx, c, f.id, { category = category, reason = reason, permanent = q.permanent,
    after = after, release = f, timeout = timeout })
  if step ~= '' then steps.failed(ctx, f.id, f.attempt, step, reply.int(took)) end
  flow.apply(ctx)
  return reply.ok(what, at, reply.int(ctx.now))
end
