-- ff_unpause_execution: an execution that an operator paused may be claimed again, in its old place.
-- Flags:   allow-oom
-- Go:      Engine.UnholdExecution
-- Args:    protocol id by
-- Replies: OK code; ALREADY_SATISFIED code
-- Errors:  invalid_input execution_not_found execution_not_active execution_not_eligible partition_missing partition_frozen protocol_mismatch
local function ff_unpause_execution(ctx, argv)
  local id, by = args.id(argv[2]), argv[3]
  if not id then return reply.err('invalid_input', 'execution id') end
  if not by or #by > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if core.terminal(c) then return fence.not_active(c) end
  if core.waiting(c) or core.granted(c) then return reply.already(c.state) end
  if not core.paused(c) then return reply.err('execution_not_eligible', c.state) end

  local code = 'R1' .. string.sub(c.state, 3)
  indexes.leave(ctx, c, id)
  record.set(ctx, id, 'state', code)
  indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  history.add(ctx, c, id, 'unpaused', by)
  core.announce(ctx, c, id, code)
  flow.apply(ctx)
  return reply.ok(code)
end
