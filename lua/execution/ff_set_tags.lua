-- ff_set_tags: sets and removes tags of an execution in any state, all of them or none. At most 64 are left.
-- Flags:   none
-- Go:      Engine.SetTags
-- Args:    protocol id sets {key value} removals {key}
-- Replies: OK count; ALREADY_SATISFIED count
-- Errors:  invalid_input invalid_tag_key execution_not_found partition_missing partition_frozen protocol_mismatch
local function ff_set_tags(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'execution id') end
  local q, bad = tagging.parse(argv)
  if not q then return bad end
  local h = redis.call('HMGET', keys.core(ctx.r, id), 's', 'tg', 'pu')
  if not h[1] or h[3] then return reply.err('execution_not_found') end
  return tagging.change(argv, q, keys.tags(ctx.r, id), keys.core(ctx.r, id), h[2])
end
