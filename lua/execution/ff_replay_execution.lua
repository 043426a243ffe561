-- ff_replay_execution: runs an ended execution again, at its old age and priority, with a new attempt of type replay.
-- Counters of retries and reclaims start over; epochs, attempts and their results stay. Recorded steps are kept, so
-- that only what is missing runs, or dropped. A success is replayed only if forced. The deadline gets its original
-- span again. A repeated request id changes nothing.
-- Flags:   none
-- Go:      Engine.ReplayExecution
-- Args:    protocol id request steps force by reason
-- Replies: OK code replays; ALREADY_SATISFIED code replays
-- Errors:  invalid_input execution_not_found execution_not_terminal replay_not_allowed max_replays_exhausted partition_missing partition_frozen protocol_mismatch
local ff_replay = {}

-- clear removes what the last run left on the core and beside it (10-D22).
function ff_replay.clear(ctx, c, id, drop)
  local key = keys.core(ctx.r, id)
  redis.call('HDEL', key, 'en', 'rc', 'lc', 'fc', 'cb', 'lr', 'du', 'ta', 'tr')
  redis.call('HDEL', keys.attempts(ctx.r, id), 'cancel', 'progress')
  if drop then
    if c.sb then
      redis.call('HDEL', key, 'sb')
      redis.call('UNLINK', keys.steps(ctx.r, id))
    end
    if c.sg then redis.call('HDEL', key, 'sg') end
  elseif c.uw and c.sb then
    ff_replay.reopen(ctx, c, id)
  end
end

-- reopen forgets the steps that hold waitpoints: their end closed those, so that the next run needs new ones.
function ff_replay.reopen(ctx, c, id)
  local all, gone, bytes = redis.call('HKEYS', keys.steps(ctx.r, id)), {}, tonumber(c.sb)
  for i = 1, #all do
    if string.sub(all[i], 1, 3) == '\31w:' then
      gone[#gone + 1] = all[i]
      bytes = bytes - #all[i] - redis.call('HSTRLEN', keys.steps(ctx.r, id), all[i])
    end
  end
  if #gone == 0 then return end
  redis.call('HDEL', keys.steps(ctx.r, id), unpack(gone))
  if #gone == #all then
    redis.call('HDEL', keys.core(ctx.r, id), 'sb')
  else
    redis.call('HSET', keys.core(ctx.r, id), 'sb', reply.int(bytes))
  end
end

-- rearm gives the deadline its original span again (spec README, settled questions).
function ff_replay.rearm(ctx, c, id)
  if not c.dl then return end
  local span = c.ds or reply.int(math.max(1, tonumber(c.dl) - tonumber(c.ct)))
  local due = ctx.now + tonumber(span)
  redis.call('HSET', keys.core(ctx.r, id), 'dl', reply.int(due), 'ds', span)
  home.alarm(ctx, due, id)
end

local function ff_replay_execution(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id, request, steps, force, by, reason = args.id(argv[2]), args.id(argv[3]), argv[4], argv[5], argv[6], argv[7]
  if not id then return reply.err('invalid_input', 'execution id') end
  if not request then return reply.err('invalid_input', 'request id') end
  if steps ~= 'keep' and steps ~= 'drop' then return reply.err('invalid_input', 'steps: keep or drop') end
  if force ~= '0' and force ~= '1' then return reply.err('invalid_input', 'force: 0 or 1') end
  if not by or #by > 64 then return reply.err('invalid_input', 'by: at most 64 bytes') end
  if not reason or #reason > 1024 then return reply.err('invalid_input', 'reason: at most 1024 bytes') end
  local c = core.read(ctx, id)
  if not c.s or c.pu then return reply.err('execution_not_found') end
  if c.rq == request then return reply.already(c.s, c.pc) end
  if not core.terminal(c) then return reply.err('execution_not_terminal', c.s) end
  if c.s == 'T1' and force == '0' then return reply.err('replay_not_allowed', 'it succeeded; a success is replayed only if forced') end
  local cap, count = policy.read(c.po).replays, tonumber(c.pc or '0')
  if count >= cap then return reply.err('max_replays_exhausted', reply.int(cap)) end

  redis.call('HSET', keys.core(ctx.r, id), 's', 'R1p', 'pc', reply.int(count + 1), 'rq', request)
  if c.s == 'T1' then settle.fold(ctx, c, id, 'ended_success', '', '', c.en) end
  history.add(ctx, c, id, 'replayed', by, table.concat({ c.s, c.en or '', c.fc or '', steps, reason }, ' '))
  ff_replay.clear(ctx, c, id, steps == 'drop')
  ff_replay.rearm(ctx, c, id)
  redis.call('ZREM', keys.done(ctx.r), id)
  home.enqueue(ctx, c.r, core.score(c), id)
  core.announce(ctx, c, id, 'R1p')
  home.apply(ctx)
  return reply.ok('R1p', reply.int(count + 1))
end
