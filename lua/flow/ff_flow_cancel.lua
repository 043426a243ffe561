-- ff_flow_cancel: cancels a flow. cancel_all takes every member with it that has not ended, cancel_pending those that
-- are not active, flow_only none. What does not fit into the call is in the backlog: more is 1; none of it can be
-- claimed meanwhile. unended is how many members have not ended. A flow that was cancelled before answers what was
-- said then.
-- Flags:   allow-oom
-- Go:      Engine.CancelFlow
-- Args:    protocol flow:id !invalid_cancellation_policy policy:cancel_all|cancel_pending|flow_only
-- Replies: OK policy:cancel_all|cancel_pending|flow_only reason:bytes(1024) unended:n more:flag; ALREADY_SATISFIED
--          the same
-- Errors:  @root invalid_input invalid_cancellation_policy flow_not_found flow_already_terminal
local function ff_flow_cancel(ctx, q)
  local id, mode = q.flow, q.policy
  local h = graph.head(ctx, id)
  if not h then return reply.err('flow_not_found') end
  local make = reply.ok
  if h.st == 'F4' then
    make = reply.already
  elseif h.st ~= 'F0' and h.st ~= 'F1' then
    return reply.err('flow_already_terminal', h.st)
  else
    flow.stop(ctx, h, mode, trail.by(ctx), trail.why(ctx, 1024))
  end
  local cp, cw = h.cp, h.cw or ''
  flow.apply(ctx)
  return make(cp, cw, reply.int(graph.unended(h)), graph.count(h, 'bl') > 0 and '1' or '0')
end
