-- ff_record_step: stores the value of one durable step under its name; the next pass of the handler gets it with
-- its claim. At most 1,000 steps of 256 KiB, 8 MiB in all. The frames that its run has appended so far count as
-- recorded, too. took is how long the step ran, in ms by the worker's own clock.
-- Flags:   none
-- Go:      Engine.RecordStep
-- Args:    protocol fence name:bytes(1..128) !payload_too_large value:bytes(262144) !invalid_input
--          took:ms(0..315360000000)
-- Replies: OK "recorded"; ALREADY_SATISFIED "recorded"
-- Errors:  @root @fence invalid_input payload_too_large step_limit_exceeded step_conflict
local function ff_record_step(ctx, q)
  local f, name, value, took = q.fence, q.name, q.value, q.took
  if not steps.name(name) then return reply.err('invalid_input', 'name: another first byte') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local key = keys.steps(ctx.r, f.id)
  local stored = c.step_bytes and redis.call('HGET', key, name)
  if stored then
    if stored == value then return reply.already('recorded') end
    return reply.err('step_conflict', name)
  end
  local total = tonumber(c.step_bytes or '0') + #value + #name
  if total > 8388608 then return reply.err('step_limit_exceeded', 'bytes: at most 8388608') end
  if c.step_bytes and steps.full(ctx, f.id) then
    return reply.err('step_limit_exceeded', 'steps: at most 1000')
  end
  record.set(ctx, f.id, 'step_bytes', reply.int(total))
  steps.put(ctx, c, f.id, name, value, f.attempt, ctx.t, reply.int(took))
  stream.recorded(ctx, c, f)
  return reply.ok('recorded')
end
