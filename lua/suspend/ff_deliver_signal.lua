-- ff_deliver_signal: brings a signal to a waitpoint, pending or active, from a holder of its token, of which only
-- the SHA-256 is presented. A sender without the token gets the same answer whether the waitpoint exists or not. A
-- delivery that was made before is answered as it was then. A token that is refused is counted, and nothing else
-- changes. The trail has no note of a signal that counts for nothing: who has a token may send many.
-- Flags:   none
-- Go:      Engine.DeliverSignal
-- Args:    protocol id:id waitpoint:id digest:hex(64) signal
-- Replies: OK signal:uuid effect; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large invalid_token token_expired hmac_secret_not_initialized
--          target_not_signalable waitpoint_closed signal_limit_exceeded corrupt
local function ff_deliver_signal(ctx, argv)
  local id, wid, digest = args.id(argv[2]), args.id(argv[3]), argv[4]
  if not id then return reply.err('invalid_input', 'execution id') end
  if not wid then return reply.err('invalid_input', 'waitpoint id') end
  if not token.hex(digest, 64) then return reply.err('invalid_token') end
  local g, bad = delivery.parse(argv, 5)
  if not g then return bad end
  wait_record.load(ctx, id)
  local w = waitpoint.read(ctx, id, wid)
  bad = token.verify(ctx, w, digest)
  if bad then
    if bad[2] ~= 'hmac_secret_not_initialized' then token.refused(ctx, id, wid) end
    return bad
  end
  local answer = delivery.deliver(ctx, id, wid, w, g)
  if answer[2] == 'OK' and not signals.stood(answer[4]) then ctx.note = nil end -- it counts for nothing
  flow.apply(ctx)
  return answer
end
