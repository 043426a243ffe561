-- ff_unhold_execution: an execution that an operator paused may be claimed again, in its old place; one that was put
-- off meanwhile, when that is over.
-- Flags:   allow-oom
-- Go:      Engine.UnholdExecution
-- Args:    protocol id:id
-- Replies: OK code:code; ALREADY_SATISFIED code:code
-- Errors:  @root invalid_input execution_not_found execution_not_active execution_not_eligible
local function ff_unhold_execution(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if core.terminal(c) then return fence.not_active(c) end
  if core.waiting(c) or core.granted(c) then return reply.already(c.state) end
  if not core.paused(c) then return reply.err('execution_not_eligible', c.state) end

  local at = tonumber(c.delay_until or '0')
  local code = (at > ctx.now and 'R2a' or 'R1') .. string.sub(c.state, 3)
  home.ready(ctx, c, id, at > ctx.now and at)
  record.set(ctx, id, 'state', code)
  if c.delay_until and at <= ctx.now then record.clear(ctx, id, 'delay_until') end
  history.add(ctx, c, id, 'unpaused', trail.by(ctx))
  core.announce(ctx, c, id, code)
  flow.apply(ctx)
  return reply.ok(code)
end
