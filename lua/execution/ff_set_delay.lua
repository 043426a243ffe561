-- ff_set_delay: an operator changes until when an execution waits that waits for a time: a delayed start, a pause
-- before a retry or a reclaim, a delay of its handler or of a resumption. delay is in ms from now; 0 makes it
-- claimable at once, and is no error for one that is. Others are refused, with their state. The same request is
-- applied once. With a reason it is done only to one that waits for the turn of that service, and leaves no note.
-- Flags:   allow-oom
-- Go:      Engine.SetDelay
-- Args:    protocol id:id delay:ms(0..315360000000) request:id reason:service?
-- Replies: OK; ALREADY_SATISFIED
-- Errors:  @root invalid_input execution_not_found execution_not_active execution_not_eligible
local function ff_set_delay(ctx, q)
  local id, delay = q.id, q.delay
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  local last = history.last(ctx, id, 'delay_changed')
  if last and string.match(last[6], '^%S+ (%S+)') == q.request then return reply.already() end
  if core.terminal(c) then return fence.not_active(c) end
  if delay == 0 and (core.waiting(c) or core.granted(c)) then return reply.already() end
  if not core.delayed(c) or q.reason ~= '' and q.reason ~= fence.waits(c) then
    return reply.err('execution_not_eligible', c.state)
  end

  local until_ = '0'
  if delay > 0 then
    until_ = reply.int(ctx.now + delay)
    record.set(ctx, id, 'delay_until', until_)
    timers.put(ctx, timers.delayed, ctx.now + delay, id)
  else
    home.promote(ctx, c, id)
  end
  if q.reason == '' then
    history.add(ctx, c, id, 'delay_changed', until_ .. ' ' .. q.request .. ' ' .. trail.by(ctx),
      trail.why(ctx, 1024))
  end
  flow.apply(ctx)
  return reply.ok()
end
