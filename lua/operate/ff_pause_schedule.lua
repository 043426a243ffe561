-- ff_pause_schedule: pauses a schedule (paused 1), or resumes it (0), if it has the expected revision ('' any). What
-- comes due while it is paused is not fired later; who fires it next counts it as missed. An instant that was due
-- before the pause and not fired counts with it.
-- Flags:   allow-oom
-- Go:      Engine.PauseSchedule
-- Args:    protocol name:name(64) paused:flag expected:n?
-- Replies: OK since:instant; ALREADY_SATISFIED since:instant
-- Errors:  @root invalid_input schedule_not_found schedule_changed
local function ff_pause_schedule(ctx, q)
  local name, by, pause = q.name, trail.by(ctx), q.paused
  local c = schedule.read(ctx, name)
  if not c then return reply.err('schedule_not_found', name) end
  if q.expected and reply.int(q.expected) ~= c.rv then return reply.err('schedule_changed', c.rv) end
  local key = keys.schedule(ctx.r, name)
  if pause == (c.pz ~= nil) then return reply.already((pause and c.pa or c.ra) or '0') end

  if pause then
    c.pz = '1'
    redis.call('HSET', key, 'pz', '1', 'pa', ctx.t, 'pb', by)
  else
    c.pz = nil
    redis.call('HDEL', key, 'pz')
    redis.call('HSET', key, 'ra', ctx.t, 'rb', by)
  end
  schedule.file(ctx, name, c, c.nx or '', '')
  return reply.ok(ctx.t)
end
