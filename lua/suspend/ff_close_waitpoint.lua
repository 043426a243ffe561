-- ff_close_waitpoint: the holder takes back a pending waitpoint. What was buffered stays readable; the step that
-- recorded the waitpoint goes, so that its name may be used anew.
-- Flags:   allow-oom
-- Go:      Engine.CloseWaitpoint
-- Args:    protocol id session claim epoch attempt waitpoint
-- Replies: OK closed; ALREADY_SATISFIED closed
-- Errors:  invalid_input waitpoint_not_found waitpoint_not_pending execution_not_found execution_not_active lease_revoked lease_expired stale_lease fence_required partial_fence partition_missing partition_frozen protocol_mismatch
local ff_close = {}

-- forget removes the step of the waitpoint, if it is its.
function ff_close.forget(ctx, c, id, wid)
  if not c.step_bytes then return end
  local key, step, value = keys.steps(ctx.r, id), waitpoint.step(ctx, id, wid)
  if not step then return end
  steps.drop(ctx, id, { step })
  if redis.call('EXISTS', key) == 0 then
    record.clear(ctx, id, 'step_bytes')
  else
    record.set(ctx, id, 'step_bytes', reply.int(tonumber(c.step_bytes) - #step - #value))
  end
end

local function ff_close_waitpoint(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local wid = args.id(argv[7])
  if not wid then return reply.err('invalid_input', 'waitpoint id') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local w = waitpoint.read(ctx, f.id, wid)
  if not w then return reply.err('waitpoint_not_found') end
  if not waitpoint.open(w) then return reply.already('closed') end
  if w.state ~= 'p' then return reply.err('waitpoint_not_pending') end
  waitpoint.close(ctx, f.id, wid, w, 'c', 'proactive_close')
  waitpoint.count(ctx, c, f.id, -1)
  ff_close.forget(ctx, c, f.id, wid)
  return reply.ok('closed')
end
