-- ff_approve_waitpoint: brings a signal to an open waitpoint on the word of an operator, who needs no token but must
-- say who they are. The waitpoint is named by its id or by its key.
-- Flags:   none
-- Go:      Engine.ApproveWaitpoint
-- Args:    protocol id:id waitpoint:line(1..256) signal
-- Replies: OK signal:uuid effect; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large execution_not_found result_purged waitpoint_not_found
--          target_not_signalable waitpoint_closed signal_limit_exceeded corrupt
local ff_approve = {}

-- find returns the waitpoint of this id or key. Of several with the key it is the one that this signal was brought to
-- before, so that a repeat does not answer the next; then an open one; else the one closed last.
function ff_approve.find(ctx, id, which, g)
  local w = waitpoint.read(ctx, id, which)
  if w then return which, w end
  local wid = nil
  for other, o in pairs(waitpoint.all(ctx, id)) do
    if o.key == which and delivery.known(ctx, id, other, g) then return other, o end
    if o.key == which and (not w or waitpoint.open(o)
      or (not waitpoint.open(w) and tonumber(o.closed) > tonumber(w.closed))) then
      wid, w = other, o
    end
  end
  return wid, w
end

local function ff_approve_waitpoint(ctx, argv)
  local id, which = args.id(argv[2]), argv[3]
  if not id then return reply.err('invalid_input', 'execution id') end
  if not waitpoint.key(which) then return reply.err('invalid_input', 'waitpoint: its id or its key') end
  local g, bad = delivery.parse(argv, 4)
  if not g then return bad end
  if g.source_type ~= 'operator' or g.source == '' then
    return reply.err('invalid_input', 'source: an operator who is named')
  end
  if not core.read(ctx, id).state then return purge.missing(ctx, id) end
  local wid, w = ff_approve.find(ctx, id, which, g)
  if not w then return reply.err('waitpoint_not_found', which) end
  local answer = delivery.deliver(ctx, id, wid, w, g)
  flow.apply(ctx)
  return answer
end
