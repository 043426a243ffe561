-- ff_record_step: stores the value of one durable step under its name; the next pass of the handler gets it with
-- its claim. At most 1,000 steps of 256 KiB, 8 MiB in all. The frames that its run has appended so far count as
-- recorded, too. took is how long the step ran, in ms by the worker's own clock. turn is what the step is to a run that
-- talks (lib/talk.lua): over ends its turn, which is refused while a stop waits; stopped heeds that stop, and ends the
-- turn; begin opens one. The answer tells the request of the stop that waits, or that was heeded.
-- Flags:   none
-- Go:      Engine.RecordStep
-- Args:    protocol fence name:bytes(1..128) !payload_too_large value:bytes(262144) !invalid_input
--          took:ms(0..315360000000) turn:over|stopped|begin?
-- Replies: OK "recorded" stop:text; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input payload_too_large step_limit_exceeded step_conflict turn_stopped
local function ff_record_step(ctx, q)
  local f, name, value, took = q.fence, q.name, q.value, q.took
  if not steps.name(name) then return reply.err('invalid_input', 'name: another first byte') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local key = keys.steps(ctx.r, f.id)
  local stop = talk.pending(c)
  local stored = c.step_bytes and redis.call('HGET', key, name)
  if stored then
    if stored == value then return reply.already('recorded', stop) end
    return reply.err('step_conflict', name)
  end
  if q.turn == 'over' and stop ~= '' then return reply.err('turn_stopped', stop) end
  local total = tonumber(c.step_bytes or '0') + #value + #name
  if total > 8388608 then return reply.err('step_limit_exceeded', 'bytes: at most 8388608') end
  if c.step_bytes and steps.full(ctx, f.id) then
    return reply.err('step_limit_exceeded', 'steps: at most 1000')
  end
  record.set(ctx, f.id, 'step_bytes', reply.int(total))
  steps.put(ctx, c, f.id, name, value, f.attempt, ctx.t, reply.int(took), nil, stream.recorded(ctx, c, f))
  if q.turn == 'begin' then talk.open(ctx, c, f.id) end
  if q.turn == 'over' or q.turn == 'stopped' then talk.close(ctx, c, f.id) end
  if q.turn == 'stopped' and stop ~= '' then record.clear(ctx, f.id, 'stop') end
  return reply.ok('recorded', stop)
end
