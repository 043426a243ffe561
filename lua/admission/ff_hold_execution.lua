-- ff_hold_execution: an operator keeps an execution that could be claimed from being handed out, until
-- ff_unhold_execution. Others are refused: one that runs, is suspended or delayed, waits for others, or has ended.
-- Flags:   allow-oom
-- Go:      Engine.HoldExecution
-- Args:    protocol id:id
-- Replies: OK code:code; ALREADY_SATISFIED code:code
-- Errors:  @root invalid_input execution_not_found execution_not_active execution_not_eligible
local function ff_hold_execution(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if core.paused(c) then return reply.already(c.state) end
  if core.terminal(c) then return fence.not_active(c) end
  if not core.waiting(c) and not core.granted(c) then return reply.err('execution_not_eligible', c.state) end

  local code = 'R4' .. string.sub(c.state, 3)
  home.leave(ctx, c, id)
  record.set(ctx, id, 'state', code)
  if c.grant_deadline then
    record.clear(ctx, id, 'grant_deadline', 'grant_session', 'grant_number')
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)
  end
  redis.call('ZADD', keys.paused(ctx.r), ctx.t, id)
  history.add(ctx, c, id, 'paused', trail.by(ctx), trail.why(ctx, 256))
  core.announce(ctx, c, id, code)
  flow.apply(ctx)
  return reply.ok(code)
end
