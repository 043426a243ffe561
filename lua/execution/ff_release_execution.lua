-- ff_release_execution: hands unfinished work back (drain). The attempt is kept, no retry is consumed, and the
-- next claim continues it.
-- Flags:   allow-oom
-- Go:      Engine.ReleaseExecution
-- Args:    protocol fence
-- Replies: OK "released"; ALREADY_SATISFIED "released"
-- Errors:  @root @fence invalid_input
local function ff_release_execution(ctx, q)
  local f = q.fence
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    if fence.released(c, f, 'h') then return reply.already('released') end
    return answer
  end
  settle.pause(ctx, c, f.id, nil, fence.release('h', f.epoch, f.attempt, ''))
  flow.apply(ctx)
  return reply.ok('released')
end
