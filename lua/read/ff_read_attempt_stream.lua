-- ff_read_attempt_stream: what is known about the stream of one attempt; the frames themselves are read by plain
-- XRANGE. An attempt that wrote nothing still ends (spec 30 T5).
-- Flags:   no-writes
-- Go:      Engine.ReadAttemptStream
-- Args:    protocol id attempt
-- Replies: OK exists frames bytes sequence lastid firstid retained closed closedat reason attempts code
-- Errors:  invalid_input execution_not_found partition_missing partition_frozen protocol_mismatch
local ff_stream_reasons = {
  T1 = 'attempt_success', T2 = 'attempt_failure', T3 = 'attempt_cancelled', T4 = 'expired', R1t = 'attempt_failure',
  R2b = 'attempt_failure', R1r = 'lease_expired',
}

local function ff_read_attempt_stream(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id, attempt = args.id(argv[2]), args.int(argv[3], 0, 4294967295)
  if not id then return reply.err('invalid_input', 'execution id') end
  if not attempt then return reply.err('invalid_input', 'attempt') end
  local c = core.read(ctx, id)
  if not c.s then return reply.err('execution_not_found') end
  local started = tonumber(c.n or '0')
  local m = redis.call('HMGET', keys.meta(ctx.r, id, argv[3]), 'c', 'b', 'q', 'i', 'z', 'y')
  local first, retained = '0-0', 0
  if m[1] then
    local key = keys.stream(ctx.r, id, argv[3])
    retained = redis.call('XLEN', key)
    local head = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
    if head[1] then first = head[1][1] end
  end
  local closed, reason = m[5] and true or false, m[6] or ''
  if not m[1] then
    if attempt < started - 1 then
      closed = true
    elseif attempt == started - 1 then
      closed = not settle.open(c)
      if closed then reason = ff_stream_reasons[c.s] or '' end
    else
      closed = core.terminal(c)
    end
  end
  return reply.ok(m[1] and '1' or '0', m[1] or '0', m[2] or '0', m[3] or '0', m[4] or '0-0', first, reply.int(retained),
    closed and '1' or '0', m[5] or '0', reason, reply.int(started), c.s)
end
