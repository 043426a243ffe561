-- ff_read_signals: what was delivered to a waitpoint, oldest first, at most 100 a call: up to 1,000 signals are kept.
-- The payload is there while the signal waits to be evaluated; those of signals that a condition took are with its
-- suspension.
-- Flags:   no-writes
-- Go:      Engine.ReadSignals
-- Args:    protocol id:id waitpoint:id offset:n(0..1000000)
-- Replies: OK total:n signals:rows {signal:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt waitpoint_not_found
local function ff_read_signals(ctx, q)
  local id, wid = q.id, q.waitpoint
  if not core.read(ctx, id).state then return purge.missing(ctx, id) end
  if not wait_record.of(ctx, id).points[wid] then return reply.err('waitpoint_not_found') end
  local list, kept = signals.log(ctx, id, wid, q.offset, 100)
  local out = { 1, 'OK', reply.int(kept), reply.int(#list) }
  for i = 1, #list do out[#out + 1] = list[i] end
  return out
end
