-- ff_flow_stage: adds up to 100 members to a flow that may still grow, each with all edges that lead into it; all or
-- none. One member may have 1,000 edges; each further one takes the room of eight, and of one for each of its tags.
-- An item is one of ff_create_execution, and what makes it a member. upstreams is all, any, quorum (k), ended or
-- failed (group.lua), satisfied is run or cancel. Members that are there already are left alone. revision is what the
-- flow must have, or ''. An error ends with the node that it is about.
-- Flags:   none
-- Go:      Engine.StageFlow
-- Args:    protocol flow:id revision:n? members
-- Replies: OK revision:n members:n edges:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large too_many_routes
--          lane_closed idempotency_conflict flow_not_found flow_already_terminal flow_sealed stale_graph_revision
--          self_referencing_edge dependency_already_exists execution_not_in_flow already_member_of_different_flow
--          namespace_mismatch fan_in_too_large flow_too_large
local function ff_flow_stage(ctx, argv)
  local q, bad = decode.ff_flow_stage(argv)
  if not q then return bad end
  local id, revision, items = q.flow, q.revision and reply.int(q.revision), nil
  items, bad = member.parse(argv, 4)
  if not items then return bad end
  local h = graph.head(ctx, id)
  if not h then return reply.err('flow_not_found') end
  local new
  new, bad = member.judge(ctx, h, items)
  if not new then return bad end
  if new == 0 then return reply.already(h.rv, h.nn or '0', h.ne or '0') end
  if h.st ~= 'F0' and h.st ~= 'F1' then return reply.err('flow_already_terminal', h.st) end
  if h.sl == '1' then return reply.err('flow_sealed', id) end
  if revision and revision ~= h.rv then return reply.err('stale_graph_revision', h.rv) end

  member.write(ctx, h, items)
  if h.st == 'F0' then graph.expire(ctx, h) end
  flow.apply(ctx)
  create.close(ctx)
  return reply.ok(graph.text(h, 'rv'), graph.text(h, 'nn'), graph.text(h, 'ne'))
end
