-- ff_read_signals: what was delivered to a waitpoint, oldest first, at most 100 a call: up to 1,000 signals are kept.
-- The payload is there while the signal waits to be evaluated; those of signals that a condition took are with its
-- suspension.
-- Flags:   no-writes
-- Go:      Engine.ReadSignals
-- Args:    protocol id:id waitpoint:id offset:n(0..1000000)
-- Replies: OK total:n signals:rows {signal:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt waitpoint_not_found
local function ff_read_signals(ctx, argv)
  local id, wid, offset = args.id(argv[2]), args.id(argv[3]), args.int(argv[4], 0, 1000000)
  if not id then return reply.err('invalid_input', 'execution id') end
  if not wid then return reply.err('invalid_input', 'waitpoint id') end
  if not offset then return reply.err('invalid_input', 'offset') end
  if not core.read(ctx, id).state then return purge.missing(ctx, id) end
  if not waits.of(ctx, id).points[wid] then return reply.err('waitpoint_not_found') end
  local list, kept = inbox.log(ctx, id, wid, offset, 100)
  local out = { 1, 'OK', reply.int(kept), reply.int(#list) }
  for i = 1, #list do out[#out + 1] = list[i] end
  return out
end
