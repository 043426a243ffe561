-- ff_read_attempt_stream: what is known about the stream of one attempt; the frames themselves are read by plain
-- XRANGE. An attempt that wrote nothing still ends.
-- Flags:   no-writes
-- Go:      Engine.ReadAttemptStream
-- Args:    protocol id attempt
-- Replies: OK exists frames bytes sequence lastid firstid retained closed closedat reason attempts code version live runs recorded recordedid
-- Errors:  invalid_input execution_not_found result_purged corrupt partition_missing partition_frozen protocol_mismatch

-- The reason why an attempt without frames ended: from its folded record, or from the code when it was the last.
local ff_stream = {
  codes = { T1 = 'attempt_success', T2 = 'attempt_failure', T3 = 'attempt_cancelled', T4 = 'expired' },
  states = { interrupted_reclaimed = 'lease_expired', ended_success = 'attempt_success', ended_cancelled = 'attempt_cancelled',
    ended_failure = 'attempt_failure' },
}

function ff_stream.reason(ctx, id, attempt, code)
  local record = redis.call('HGET', keys.attempts(ctx.r, id), attempt)
  if not record then return ff_stream.codes[code] or '' end
  local state, category = string.match(record, '^[^\31]*\31[^\31]*\31[^\31]*\31([^\31]*)\31([^\31]*)')
  if category == 'attempt_timeout' or category == 'execution_deadline' then return 'expired' end
  if category == 'lease_revoked' or category == 'suspension_timeout' then return category end
  return ff_stream.states[state] or ''
end

local function ff_read_attempt_stream(ctx, argv)
  local id, attempt = args.id(argv[2]), args.int(argv[3], 0, 4294967295)
  if not id then return reply.err('invalid_input', 'execution id') end
  if not attempt then return reply.err('invalid_input', 'attempt') end
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local started = core.started(c)
  local m = redis.call('HMGET', keys.meta(ctx.r, id, argv[3]), 'c', 'b', 'q', 'i', 'z', 'y', 'v', 'l', 'n', 'r')
  local first, retained = '0-0', 0
  if m[1] then
    local key = keys.stream(ctx.r, id, argv[3])
    retained = redis.call('XLEN', key)
    local head = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
    if head[1] then first = head[1][1] end
  end
  local closed, reason = m[5] and true or false, m[6] or ''
  if not m[1] then
    if attempt >= started then
      closed = core.terminal(c)
    else
      closed = attempt < started - 1 or not settle.open(c)
      if closed then reason = ff_stream.reason(ctx, id, argv[3], c.state) end
      if not closed and c.state == 'A3' then closed, reason = true, 'lease_revoked' end
    end
  end
  local recorded, place = '0', '0-0'
  if m[10] and attempt >= tonumber(c.dropped_attempts or '0') then recorded, place = string.match(m[10], '^(%d+) (%d+%-%d+)$') end
  return reply.ok(m[1] and '1' or '0', m[1] or '0', m[2] or '0', m[3] or '0', m[4] or '0-0', first, reply.int(retained),
    closed and '1' or '0', m[5] or '0', reason, reply.int(started), c.state, m[7] or '0', m[8] or '0',
    m[9] or (m[1] and '1' or '0'), recorded or '0', place or '0-0')
end
