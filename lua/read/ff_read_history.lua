-- ff_read_history: one consistent look at what happened to an execution: the core's times, the ended attempts, and the
-- list of what was out of the ordinary, the last suspension among it.
-- Flags:   no-writes
-- Go:      Engine.ReadHistory
-- Args:    protocol id:id
-- Replies: OK core attempts events:rows {entry:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_history(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local out = { 1, 'OK' }
  reply.add(out, record.list(c), 2)
  reply.add(out, redis.call('HGETALL', keys.attempts(ctx.r, id)), 2)
  local events = redis.call('LRANGE', keys.history(ctx.r, id), 0, -1)
  local told = c.had_waits and suspension.events(c, suspension.read(ctx, id)) or {}
  for i = 1, #told do events[#events + 1] = told[i] end
  return reply.add(out, events)
end
