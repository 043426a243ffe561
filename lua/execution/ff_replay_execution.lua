-- ff_replay_execution: runs an ended execution again, at its old age and priority, with a new attempt of type replay.
-- Counters of retries and reclaims start over; epochs, attempts and their results stay. Recorded steps are kept, so
-- that only what is missing runs, or dropped, all or from one of a name on in the order in which they were recorded.
-- If a wait whose time was over ended the execution, what was recorded since its waitpoint was opened goes, too, so
-- that the same people are asked again. A success is replayed only if forced. The deadline gets its original span
-- again. A repeated request id changes nothing. A member of a flow waits for those of its upstreams that have not
-- succeeded, and opens a flow that has ended again. One whose key another execution has by now is refused, and else
-- has it again.
-- Flags:   none
-- Go:      Engine.ReplayExecution
-- Args:    protocol id:id request:id steps:text force:flag
-- Replies: OK code:code replays:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found execution_not_terminal flow_cancelled resolution_pending
--          replay_not_allowed step_not_found max_replays_exhausted key_taken
local function ff_replay_execution(ctx, q)
  local id, bad = q.id, replay.judge(q)
  if bad then return bad end
  local c = core.read(ctx, id)
  local answer = replay.refuse(ctx, c, id, q)
  if answer then return answer end
  local rival = keyed.rival(ctx, c, id)
  if rival then return reply.err('key_taken', rival) end
  local code, count = replay.run(ctx, c, id, q)
  keyed.retake(ctx, c, id)
  flow.apply(ctx)
  return reply.ok(code, count)
end
