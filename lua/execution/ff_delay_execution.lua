-- ff_delay_execution: the holder puts its attempt aside until an instant; the same attempt goes on later and no
-- retry is consumed. An instant that is not in the future makes it claimable at once. reason is a service whose turn it
-- waits for (ff_acquire), '' = none; ff_set_delay can ask for that.
-- Flags:   allow-oom
-- Go:      Engine.DelayExecution
-- Args:    protocol fence delay:when reason:service?
-- Replies: OK instant:instant; ALREADY_SATISFIED instant:instant
-- Errors:  @root @fence invalid_input
local function ff_delay_execution(ctx, q)
  local f, at = q.fence, args.instant(q.delay, ctx.now)
  if not at then return reply.err('invalid_input', 'delay: at most ten years') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    local slot = fence.released(c, f, 'd')
    if slot then return reply.already(string.match(slot, '^%d+')) end
    return answer
  end
  local put_off = at > ctx.now and not talk.hurries(ctx, f.id) -- who is to heed a stop does it at once
  settle.pause(ctx, c, f.id, put_off and at or nil, fence.release('d', f.epoch, f.attempt,
    reply.int(at) .. (q.reason ~= '' and ' ' .. q.reason or '')))
  flow.apply(ctx)
  return reply.ok(reply.int(at))
end
