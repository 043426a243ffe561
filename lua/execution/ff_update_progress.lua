-- ff_update_progress: what the holder says of how far it got. It overwrites: an empty percent or message keeps the
-- attempt's last one. It belongs to the attempt, so the next one begins without.
-- Flags:   none
-- Go:      Engine.UpdateProgress
-- Args:    protocol fence percent:n(0..100)? message:bytes(1024)
-- Replies: OK "stored"
-- Errors:  @root @fence invalid_input
local function ff_update_progress(ctx, q)
  local f, percent, message = q.fence, q.percent and reply.int(q.percent) or '', q.message
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local key = keys.attempts(ctx.r, f.id)
  if percent == '' or message == '' then
    local attempt, before,
      text = string.match(redis.call('HGET', key, 'progress') or '', '^(%d+)\31%d+\31(%d*)\31(.*)$')
    if attempt == f.attempt then
      if percent == '' then percent = before end
      if message == '' then message = text end
    end
  end
  redis.call('HSET', key, 'progress', table.concat({ f.attempt, ctx.t, percent, message }, '\31'))
  return reply.ok('stored')
end
