-- ff_put_schedule: creates or changes a schedule. expected is the revision it must have: '' any, 0 none, it must be
-- new. seen is the next due time its caller knew ('' does not matter), so that nothing is fired between reading and
-- changing; missed are instants that were due before the change and will not be fired. next is when it is due from
-- now on, '' for never; one that is new is due at once if begin is 1. limit is how often it may fire since its
-- creation, '' without end: once it has, it is never due. The same definition again changes nothing. A paused
-- schedule stays paused.
-- Flags:   none
-- Go:      Engine.PutSchedule
-- Args:    protocol name:name(64) expected:n? seen:instant? next:instant? missed:n first:instant? last:instant? why:bytes(32)
--          limit:n(1..)? begin:flag definition:bytes(1..65536) !payload_too_large
--          payload:bytes(1048576)
-- Replies: OK revision:n next:instant; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large schedule_changed
local function ff_put_schedule(ctx, q)
  local missed = schedule.missed(q)
  if not missed then return reply.err('invalid_input', 'missed: with first, last and why, or 0') end
  local name, key = q.name, keys.schedule(ctx.r, q.name)
  local c = schedule.read(ctx, name)
  if c then
    if redis.call('HGET', key, 'df') == q.definition then return reply.already(c.rv, c.nx or '0') end
    if q.expected and reply.int(q.expected) ~= c.rv then return reply.err('schedule_changed', c.rv) end
    if q.seen ~= '' and q.seen ~= c.nx then return reply.err('schedule_changed', c.rv) end
  else
    if (q.expected or 0) ~= 0 then return reply.err('schedule_changed', '0') end
    if redis.call('ZCARD', keys.schedule_names(ctx.r)) >= 10000 then
      return reply.err('invalid_input', 'name: at most 10000 schedules in a partition')
    end
  end

  local rv = schedule.revise(ctx)
  redis.call('HSET', key, 'df', q.definition, 'rv', rv, 'up', ctx.t)
  local by = trail.by(ctx)
  if by ~= '' then
    redis.call('HSET', key, 'by', by)
  else
    redis.call('HDEL', key, 'by')
  end
  if #q.payload > 0 then
    redis.call('HSET', key, 'in', q.payload, 'il', reply.int(#q.payload))
  else
    redis.call('HDEL', key, 'in', 'il')
  end
  if c then
    schedule.miss(ctx, name, c, missed)
  else
    if q.begin then q.next = ctx.t end
    redis.call('HSET', key, 'ic', rv, 'ct', ctx.t)
    redis.call('ZADD', keys.schedule_names(ctx.r), '0', name)
  end
  local at = schedule.file(ctx, name, c or {}, q.next, q.limit and reply.int(q.limit) or '')
  return reply.ok(rv, at ~= '' and at or '0')
end
