-- ff_put_schedule: creates or changes a schedule. expected is the revision it must have: '' any, 0 none, it must be new.
-- seen is the next due time its caller knew ('' does not matter), so that nothing is fired between reading and changing; missed
-- are instants that were due before the change and will not be fired. next is when it is due from now on. The same definition again
-- changes nothing. A paused schedule stays paused.
-- Flags:   none
-- Go:      Engine.PutSchedule
-- Args:    protocol name expected seen next missed first last why by definition payload
-- Replies: OK revision next; ALREADY_SATISFIED revision next
-- Errors:  invalid_input payload_too_large schedule_changed partition_missing partition_frozen protocol_mismatch
local ff_put = {}

-- judge returns what is wrong with the arguments, or nil.
function ff_put.judge(argv)
  if not args.name(argv[2], 64) then return 'name: 1..64 printable bytes without braces' end
  if argv[3] ~= '' and not args.int(argv[3], 0, 9007199254740991) then return 'expected revision' end
  if argv[4] ~= '' and not args.int(argv[4], 0, 9007199254740991) then return 'seen' end
  if not args.int(argv[5], 0, 9007199254740991) then return 'next' end
  if not argv[10] or #argv[10] > 64 then return 'by: at most 64 bytes' end
  if not argv[11] or #argv[11] < 1 or #argv[11] > 65536 then return 'definition: 1..65536 bytes' end
  if not argv[12] then return 'payload' end
  return nil
end

local function ff_put_schedule(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local wrong, missed = ff_put.judge(argv), schedule.missed(argv, 6)
  if not missed then wrong = wrong or 'missed: count, first, last, reason' end
  if wrong then return reply.err('invalid_input', wrong) end
  if #argv[12] > 1048576 then return reply.err('payload_too_large', 'payload: at most 1048576 bytes') end
  local name, key = argv[2], keys.schedule(ctx.r, argv[2])
  local c = schedule.read(ctx, name)
  if c then
    if redis.call('HGET', key, 'df') == argv[11] then return reply.already(c.rv, c.nx or '0') end
    if argv[3] ~= '' and argv[3] ~= c.rv then return reply.err('schedule_changed', c.rv) end
    if argv[4] ~= '' and argv[4] ~= c.nx then return reply.err('schedule_changed', c.rv) end
  else
    if argv[3] ~= '' and argv[3] ~= '0' then return reply.err('schedule_changed', '0') end
    if redis.call('ZCARD', keys.schedule_names(ctx.r)) >= 10000 then
      return reply.err('invalid_input', 'name: at most 10000 schedules in a partition')
    end
  end

  local rv = schedule.revise(ctx)
  redis.call('HSET', key, 'df', argv[11], 'rv', rv, 'up', ctx.t)
  if #argv[10] > 0 then
    redis.call('HSET', key, 'by', argv[10])
  else
    redis.call('HDEL', key, 'by')
  end
  if #argv[12] > 0 then
    redis.call('HSET', key, 'in', argv[12], 'il', reply.int(#argv[12]))
  else
    redis.call('HDEL', key, 'in', 'il')
  end
  if c then
    schedule.miss(ctx, name, c, missed)
  else
    redis.call('HSET', key, 'ic', rv, 'ct', ctx.t)
    redis.call('ZADD', keys.schedule_names(ctx.r), '0', name)
  end
  schedule.file(ctx, name, c or {}, argv[5])
  return reply.ok(rv, argv[5])
end
