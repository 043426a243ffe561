-- ff_read_attempt_stream: what is known about the stream of one attempt; the frames themselves are read by plain
-- XRANGE. trimmed is how many of the durable ones are gone, and trimmed_id the last of them. An attempt that wrote
-- nothing still ends. type and began are of the attempt, and how it ended: ended_at category message, and who rewound
-- it. Of one that has not begun they say how the one before it ended. due is until when the execution is delayed, epoch
-- that of its last claim. end_at end_category end_message end_by end_source are how the execution ended. kept is the
-- first attempt that is stored; the stream of an earlier one is closed, and its reason is removed. now is when this was
-- so. owner is under whose keys the frames of a fork's attempt are, up to last_id and no further; '' = its own.
-- Flags:   no-writes
-- Go:      Engine.ReadAttemptStream
-- Args:    protocol id:id attempt:n(1..4294967295)
-- Replies: OK exists:flag frames:n bytes:n sequence:n last_id:text trimmed:n trimmed_id:text closed:flag
--          closed_at:instant reason:text attempts:n code:code version:n live:n runs:n recorded:n recorded_id:text
--          type:text began:instant ended_at:instant category:text message:text due:instant epoch:n end_at:instant
--          end_category:text end_message:text end_by:text end_source:text kept:n now:instant by:text
--          owner:uuid?
-- Errors:  @root invalid_input execution_not_found result_purged corrupt

-- The reason why an attempt without frames ended: from its folded record, or from the code when it was the last.
local ff_stream = {
  codes = { T1 = 'attempt_success', T2 = 'attempt_failure', T3 = 'attempt_cancelled', T4 = 'expired' },
  states = { interrupted_reclaimed = 'lease_expired', ended_success = 'attempt_success',
    ended_cancelled = 'attempt_cancelled', ended_failure = 'attempt_failure', continued = 'continued',
    rewound = 'rewound', forked = 'forked' },
}

function ff_stream.reason(past, code)
  if not past.state then return ff_stream.codes[code] or '' end
  if past.category == 'attempt_timeout' or past.category == 'execution_deadline' then return 'expired' end
  if past.category == 'lease_revoked' or past.category == 'suspension_timeout' then return past.category end
  return ff_stream.states[past.state] or ''
end

-- past is what is kept of an attempt that did not end in success, empty of another; and the reason of a cancellation.
function ff_stream.past(ctx, id, attempt)
  local v = redis.call('HMGET', keys.attempts(ctx.r, id), attempt, attempt .. 'r', 'cancel', attempt .. 'w')
  local past = { message = v[2] or '', cancel = v[3] or '', by = v[4] or '' }
  if v[1] then
    past.type, past.ended, past.state, past.category, past.began = string.match(v[1],
      '^([^\31]*)\31[^\31]*\31([^\31]*)\31([^\31]*)\31([^\31]*)\31.*\31([^\31]*)$')
  end
  return past
end

-- attempt adds how an attempt began and ended, or if it has not begun how the one before it ended.
function ff_stream.attempt(out, c, past, attempt, started)
  local last = attempt == started
  local began = past.began or last and core.began(c)
  if attempt > started then began = nil end
  local n = #out
  out[n + 1] = attempt <= started and (past.type or last and c.attempt_type) or ''
  out[n + 2] = began or '0'
  out[n + 3] = past.ended or last and core.terminal(c) and c.ended_at or '0'
  out[n + 4], out[n + 5] = past.category or '', past.message
end

-- whole adds what the execution waits for, or how it ended.
function ff_stream.whole(out, c, past)
  local n, ended = #out, core.terminal(c)
  out[n + 1], out[n + 2] = not ended and c.delay_until or '0', c.epoch or '0'
  out[n + 3] = ended and c.ended_at or '0'
  local failed = c.state == 'T2' or string.sub(c.state, 1, 2) == 'T4'
  local cancelled = ended and not failed and c.state ~= 'T1'
  out[n + 4] = failed and c.failure_category or ''
  out[n + 5] = failed and past.message or cancelled and past.cancel or ''
  out[n + 6], out[n + 7] = cancelled and c.cancelled_by or '', cancelled and c.cancel_source or ''
end

-- meta is what the metadata of an attempt say, and whose they are; b is what it stands on, nil: it is its own.
function ff_stream.meta(ctx, id, number, b)
  local m = redis.call('HMGET', keys.meta(ctx.r, b and b.owner or id, number), 'c', 'b', 'q', 'i', 'z', 'y', 'v', 'l',
    'n', 'r', 't')
  if b then
    local gone = string.match(m[11] or '', '^%d+')
    if gone and tonumber(gone) > tonumber(b.durables) then m[11] = b.durables .. ' ' .. b.id end
    m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9] = b.durables, b.bytes, b.sequence, b.id, nil, nil, b.deltas,
      b.live, b.runs
    m[10] = b.sequence .. ' ' .. b.id
  end
  return m
end

local function ff_read_attempt_stream(ctx, q)
  local id, attempt, number = q.id, q.attempt, reply.int(q.attempt)
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local started = core.started(c)
  local b = base.of(ctx, c, id, attempt)
  local m = ff_stream.meta(ctx, id, number, b)
  local last, gone = '0-0', '0'
  if m[11] then gone, last = string.match(m[11], '^(%d+) (%d+%-%d+)$') end
  if m[1] and redis.call('EXISTS', keys.stream(ctx.r, b and b.owner or id, number)) == 0 then gone = m[1] end
  local closed, reason = m[5] and true or false, m[6] or ''
  local past = ff_stream.past(ctx, id, attempt <= started and number or reply.int(started))
  if not m[1] or b then
    if attempt > started then
      closed = core.terminal(c)
    else
      closed = attempt < started or not settle.open(c)
      if closed then reason = ff_stream.reason(past, c.state) end
      if not closed and c.state == 'A3' then closed, reason = true, 'lease_revoked' end
    end
  end
  local kept = record.kept(c)
  if attempt < kept then closed, reason = true, 'removed' end
  local recorded, place = '0', '0-0'
  if m[10] and attempt > tonumber(c.dropped_attempts or '0') then
    recorded, place = string.match(m[10], '^(%d+) (%d+%-%d+)')
  end
  local out = { m[1] and '1' or '0', m[1] or '0', m[2] or '0', m[3] or '0', m[4] or '0-0', gone, last,
    closed and '1' or '0', m[5] or b and past.ended or '0', reason, reply.int(started), c.state, m[7] or '0',
    m[8] or '0', m[9] or (m[1] and '1' or '0'), recorded or '0', place or '0-0' }
  ff_stream.attempt(out, c, past, attempt, started)
  ff_stream.whole(out, c, past)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = reply.int(kept), ctx.t, past.by, b and b.owner or ''
  return reply.ok(unpack(out))
end
