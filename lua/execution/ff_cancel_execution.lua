-- ff_cancel_execution: ends an execution on request, from every state that is not terminal. An active one is
-- cancelled by its holder (full fence) or by an explicit override, which may name a person; the holder then learns of
-- it at once.
-- Flags:   allow-oom
-- Go:      Engine.CancelExecution
-- Args:    protocol fence0 source:owner|operator_override|flow_cascade reason:bytes(1024) by:bytes(64)
-- Replies: OK "cancelled" previous:code; ALREADY_SATISFIED "cancelled"
-- Errors:  @root @fence invalid_input
local function ff_cancel_execution(ctx, argv)
  local id, source, reason, person = args.id(argv[2]), argv[7], argv[8], argv[9]
  if not id then return reply.err('invalid_input', 'execution id') end
  if source ~= 'owner' and source ~= 'operator_override' and source ~= 'flow_cascade' then
    return reply.err('invalid_input', 'source: owner, operator_override or flow_cascade')
  end
  if not reason or #reason > 1024 then return reply.err('invalid_input', 'reason: at most 1024 bytes') end
  if not person or #person > 64 or person ~= '' and source ~= 'operator_override' then
    return reply.err('invalid_input', 'by: at most 64 bytes, and only with operator_override')
  end
  local f, bad = fence.parse(argv, 2)
  if not f and (source == 'owner' or bad[2] ~= 'fence_required') then return bad end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if c.state == 'T3' or c.state == 'T3n' then return reply.already('cancelled') end
  if core.terminal(c) then return fence.not_active(c) end
  if f then
    local answer = fence.check(ctx, c, f)
    if answer then return answer end
  end

  if f then source, person = 'owner', '' end -- whatever it says: the session that is kept names the worker
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
