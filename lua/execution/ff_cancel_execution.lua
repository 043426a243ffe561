-- ff_cancel_execution: ends an execution on request, from every state that is not terminal. An active one is
-- cancelled by its holder (full fence) or by an explicit override, which may name a person; the holder then learns of
-- it at once.
-- Flags:   allow-oom
-- Go:      Engine.CancelExecution
-- Args:    protocol fence0 source:owner|operator_override|flow_cascade
-- Replies: OK "cancelled" previous:code; ALREADY_SATISFIED "cancelled"
-- Errors:  @root @fence invalid_input
local function ff_cancel_execution(ctx, q)
  local f, id, source, reason, person = q.fence, q.fence.id, q.source, trail.why(ctx, 1024), ''
  if f.session == '' then
    if source == 'owner' then return reply.err('fence_required') end
    f = nil
  end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if c.state == 'T3' or c.state == 'T3n' then return reply.already('cancelled') end
  if core.terminal(c) then return fence.not_active(c) end
  if f then
    local answer = fence.check(ctx, c, f)
    if answer then return answer end
  end

  if f then source = 'owner' end -- whatever it says: the session that is kept names the worker
  if source == 'operator_override' then person = trail.by(ctx) end
  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', '', '') end
  if #reason > 0 then redis.call('HSET', keys.attempts(ctx.r, id), 'cancel', reason) end
  local extra = { 'cancel_source', source }
  if f then extra[3], extra[4] = 'last_release', fence.release('x', f.epoch, f.attempt, '') end
  if person ~= '' then extra[3], extra[4] = 'cancelled_by', person end
  history.add(ctx, c, id, 'cancelled', source .. ' ' .. person, reason)
  settle.finish(ctx, c, id, 'T3', 'attempt_cancelled', extra)
  if c.state == 'A1' and not f then session.lost(ctx, c.session, id, c.epoch, 'cancelled') end
  flow.apply(ctx)
  return reply.ok('cancelled', c.state)
end
