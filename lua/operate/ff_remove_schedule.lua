-- ff_remove_schedule: forgets a schedule, if it has the expected revision ('' any). What it submitted stays.
-- Flags:   allow-oom
-- Go:      Engine.RemoveSchedule
-- Args:    protocol name:name(64) expected:n?
-- Replies: OK revision:n; ALREADY_SATISFIED
-- Errors:  @root invalid_input schedule_changed
local function ff_remove_schedule(ctx, q)
  local name, key = q.name, keys.schedule(ctx.r, q.name)
  local rv = redis.call('HGET', key, 'rv')
  if not rv then return reply.already() end
  if q.expected and reply.int(q.expected) ~= rv then return reply.err('schedule_changed', rv) end

  redis.call('DEL', key)
  redis.call('ZREM', keys.schedules(ctx.r), name)
  redis.call('ZREM', keys.schedule_names(ctx.r), name)
  return reply.ok(rv)
end
