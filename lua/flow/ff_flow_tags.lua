-- ff_flow_tags: sets and removes tags of a flow in any state, all of them or none. At most 64 are left.
-- Flags:   none
-- Go:      Engine.SetFlowTags
-- Args:    protocol flow:id sets:rows(0..64) {key:tag value:bytes(256)} removals:rows(0..64) {key:text}
-- Replies: OK count:n(0..64); ALREADY_SATISFIED count:n(0..64)
-- Errors:  @root invalid_input invalid_tag_key flow_not_found
local function ff_flow_tags(ctx, argv)
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'flow id') end
  local q, bad = tagging.parse(argv)
  if not q then return bad end
  local h = redis.call('HMGET', keys.flow(ctx.r, id), 'st', 'tg')
  if not h[1] then return reply.err('flow_not_found') end
  local answer, has = tagging.change(q, keys.flow_tags(ctx.r, id), h[2])
  if has and not h[2] then redis.call('HSET', keys.flow(ctx.r, id), 'tg', '1') end
  if has == false and h[2] then redis.call('HDEL', keys.flow(ctx.r, id), 'tg') end
  return answer
end
