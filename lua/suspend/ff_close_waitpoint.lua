-- ff_close_waitpoint: the holder takes back a pending waitpoint. What was buffered stays readable. The step that
-- recorded the waitpoint says so from then on, with 0 for its expiry, so that later runs know.
-- Flags:   allow-oom
-- Go:      Engine.CloseWaitpoint
-- Args:    protocol fence waitpoint:id
-- Replies: OK "closed"; ALREADY_SATISFIED "closed"
-- Errors:  @root @fence invalid_input waitpoint_not_found waitpoint_not_pending
local function ff_close_waitpoint(ctx, q)
  local f, wid = q.fence, q.waitpoint
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local w = waitpoint.read(ctx, f.id, wid)
  if not w then return reply.err('waitpoint_not_found') end
  if not waitpoint.open(w) then return reply.already('closed') end
  if w.state ~= 'p' then return reply.err('waitpoint_not_pending') end
  local _, step = waitpoint.step(wid, w)
  waitpoint.close(ctx, f.id, wid, w, 'c', 'proactive_close')
  waitpoint.count(ctx, c, f.id, -1)
  waitpoint.resize(ctx, c, f.id, wid, w, step)
  flow.apply(ctx)
  return reply.ok('closed')
end
