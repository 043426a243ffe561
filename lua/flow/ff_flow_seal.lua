-- ff_flow_seal: releases a flow, so that members without open dependencies may run, and says how it may grow from now
-- on: seal (not at all), grow (its members may add members; it ends when none is left) or open (as before). The
-- caller tells how many members and edges it has staged; a flow that lacks some is not released. more: the release
-- goes on in the backlog.
-- Flags:   none
-- Go:      Engine.SealFlow
-- Args:    protocol flow:id mode:seal|grow|open members:n(0..10000) edges:n(0..60000)
-- Replies: OK state:code more:flag; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input flow_not_found flow_already_terminal flow_sealed flow_incomplete
local function ff_flow_seal(ctx, q)
  local id, seal = q.flow, flow.modes[q.mode]
  local h = graph.head(ctx, id)
  if not h then return reply.err('flow_not_found') end
  if h.st ~= 'F0' and (h.sl or '') == seal then return reply.already(h.st, graph.count(h, 'bl') > 0 and '1' or '0') end
  if h.st ~= 'F0' and h.st ~= 'F1' then return reply.err('flow_already_terminal', h.st) end
  if h.sl == '1' then return reply.err('flow_sealed', id) end
  if graph.count(h, 'nn') < q.members or graph.count(h, 'ne') < q.edges then
    return reply.err('flow_incomplete', (h.nn or '0') .. ' members', (h.ne or '0') .. ' edges')
  end

  flow.release(ctx, h, q.mode)
  flow.apply(ctx)
  return reply.ok(h.st, graph.count(h, 'bl') > 0 and '1' or '0')
end
