-- ff_put_schedule: creates or changes a schedule. expected is the revision it must have: '' any, 0 none, it must be
-- new. seen is the next due time its caller knew ('' does not matter), so that nothing is fired between reading and
-- changing; missed are instants that were due before the change and will not be fired. next is when it is due from
-- now on, '' for never; one that is new is due at once if begin is 1. limit is how often it may fire since its
-- creation, '' without end: once it has, it is never due. The same definition again changes nothing. A paused
-- schedule stays paused.
-- Flags:   none
-- Go:      Engine.PutSchedule
-- Args:    protocol name:name(64) expected:n? seen:instant? next:instant? missed:n first:instant? last:instant? why:text
--          limit:n(1..)? begin:flag by:bytes(64) definition:bytes(1..65536) payload:bytes(1048576)
-- Replies: OK revision:n next:instant; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large schedule_changed
local ff_put = {}

-- judge returns what is wrong with the arguments, or nil.
function ff_put.judge(q)
  if not args.name(q.name, 64) then return 'name: 1..64 printable bytes without braces' end
  if q.expected ~= '' and not args.int(q.expected, 0, 9007199254740991) then return 'expected revision' end
  if q.seen ~= '' and not args.int(q.seen, 0, 9007199254740991) then return 'seen' end
  if q.next ~= '' and not args.int(q.next, 0, 9007199254740991) then return 'next' end
  if q.limit ~= '' and not args.int(q.limit, 1, 9007199254740991) then return 'limit: at least 1' end
  if q.begin ~= '0' and q.begin ~= '1' then return 'begin: 0 or 1' end
  if not q.by or #q.by > 64 then return 'by: at most 64 bytes' end
  if not q.definition or #q.definition < 1 or #q.definition > 65536 then return 'definition: 1..65536 bytes' end
  if not q.payload then return 'payload' end
  return nil
end

local function ff_put_schedule(ctx, argv)
  local q = args.named(argv, 2, { 'name', 'expected', 'seen', 'next', 'missed', 'first', 'last', 'why', 'limit',
    'begin', 'by',
    'definition', 'payload' })
  local wrong, missed = ff_put.judge(q), schedule.missed(argv, 6)
  if not missed then wrong = wrong or 'missed: count, first, last, reason' end
  if wrong then return reply.err('invalid_input', wrong) end
  if #q.payload > 1048576 then return reply.err('payload_too_large', 'payload: at most 1048576 bytes') end
  local name, key = q.name, keys.schedule(ctx.r, q.name)
  local c = schedule.read(ctx, name)
  if c then
    if redis.call('HGET', key, 'df') == q.definition then return reply.already(c.rv, c.nx or '0') end
    if q.expected ~= '' and q.expected ~= c.rv then return reply.err('schedule_changed', c.rv) end
    if q.seen ~= '' and q.seen ~= c.nx then return reply.err('schedule_changed', c.rv) end
  else
    if q.expected ~= '' and q.expected ~= '0' then return reply.err('schedule_changed', '0') end
    if redis.call('ZCARD', keys.schedule_names(ctx.r)) >= 10000 then
      return reply.err('invalid_input', 'name: at most 10000 schedules in a partition')
    end
  end

  local rv = schedule.revise(ctx)
  redis.call('HSET', key, 'df', q.definition, 'rv', rv, 'up', ctx.t)
  if #q.by > 0 then
    redis.call('HSET', key, 'by', q.by)
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
    if q.begin == '1' then q.next = ctx.t end
    redis.call('HSET', key, 'ic', rv, 'ct', ctx.t)
    redis.call('ZADD', keys.schedule_names(ctx.r), '0', name)
  end
  local at = schedule.file(ctx, name, c or {}, q.next, q.limit)
  return reply.ok(rv, at ~= '' and at or '0')
end
