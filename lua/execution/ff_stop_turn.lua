-- ff_stop_turn: somebody asks the run of an execution to end what it says, and to keep what it has. The run hears of
-- it at once if a worker has it; one that waits for people or children goes on, as on the word of an operator, and
-- one that is delayed is claimable at once, but for its first start. Until a step heeds it (ff_record_step), it waits
-- in the record, and a claim tells. One at a time waits: another one is answered with that. Between two turns there is
-- nothing to stop. The answer names the steps of the turn that are recorded so far. The same request is applied once.
-- Flags:   allow-oom
-- Go:      Engine.StopTurn
-- Args:    protocol id:id request:id
-- Replies: OK request:text by:text steps:rows {name:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found result_purged corrupt target_not_signalable nothing_to_stop
local function ff_stop_turn(ctx, q)
  local id, by, why = q.id, trail.by(ctx), trail.why(ctx, 1024)
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local before = talk.turn(c)
  local last = history.last(ctx, id, 'stopped')
  if last and last[6] == q.request then
    return reply.add(reply.already(q.request, string.match(last[7], '^[^\t]*')), steps.named(ctx, id, before + 1))
  end
  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end
  if talk.idle(ctx, c, id) then return reply.err('nothing_to_stop', c.state) end
  local pending, other = talk.pending(c)
  if pending ~= '' then return reply.add(reply.already(pending, other), steps.named(ctx, id, before + 1)) end

  local answer = reply.add(reply.ok(q.request, by), steps.named(ctx, id, before + 1))
  talk.ask(ctx, id, q.request, by, why)
  history.add(ctx, c, id, 'stopped', q.request, why == '' and by or by .. '\t' .. why)
  if c.state == 'A1' then
    session.lost(ctx, c.session, id, c.epoch, 'stop:' .. q.request)
  elseif core.suspended(c) then
    talk.hurries(ctx, id)
    talk.resume(ctx, id)
  elseif core.delayed(c) and c.state ~= 'R2af' and talk.hurries(ctx, id) then
    home.promote(ctx, core.read(ctx, id), id)
  end
  flow.apply(ctx)
  return answer
end
