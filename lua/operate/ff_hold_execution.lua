-- ff_hold_execution: an operator keeps an execution that could be claimed from being handed out (held 1), or lets it
-- be claimed again (0), in its old place; one that was put off meanwhile, when that is over. Others are refused: one
-- that runs, is suspended or delayed, waits for others, or has ended.
-- Flags:   allow-oom
-- Go:      Engine.HoldExecution
-- Args:    protocol id:id held:flag
-- Replies: OK code:code; ALREADY_SATISFIED code:code
-- Errors:  @root invalid_input execution_not_found execution_not_active execution_not_eligible
local function ff_hold_execution(ctx, q)
  local id, hold = q.id, q.held
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if core.terminal(c) then return fence.not_active(c) end
  local paused = core.paused(c)
  if not paused and not core.waiting(c) and not core.granted(c) then
    return reply.err('execution_not_eligible', c.state)
  end
  if hold == paused then return reply.already(c.state) end

  local at = not hold and tonumber(c.delay_until or '0') > ctx.now and tonumber(c.delay_until)
  local code = (hold and 'R4' or at and 'R2a' or 'R1') .. string.sub(c.state, 3)
  if hold then home.leave(ctx, c, id) else home.ready(ctx, c, id, at) end
  record.set(ctx, id, 'state', code)
  if c.grant_deadline then
    record.clear(ctx, id, 'grant_deadline', 'grant_session', 'grant_number')
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  if hold then
    redis.call('ZADD', keys.paused(ctx.r), ctx.t, id)
  elseif c.delay_until and not at then
    record.clear(ctx, id, 'delay_until')
  end
  history.add(ctx, c, id, hold and 'paused' or 'unpaused', trail.by(ctx), hold and trail.why(ctx, 256))
  core.announce(ctx, c, id, code)
  flow.apply(ctx)
  return reply.ok(code)
end
