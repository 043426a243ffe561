-- ff_set_tags: sets and removes tags of an execution in any state, all of them or none. At most 64 are left.
-- Flags:   none
-- Go:      Engine.SetTags
-- Args:    protocol id:id sets:rows(0..64) {key:tag value:bytes(256)} removals:rows(0..64) {key:text}
-- Replies: OK count:n(0..64); ALREADY_SATISFIED count:n(0..64)
-- Errors:  @root invalid_input invalid_tag_key execution_not_found
local function ff_set_tags(ctx, argv)
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'execution id') end
  local q, bad = tagging.parse(argv)
  if not q then return bad end
  local c = core.read(ctx, id)
  if not c.state or c.purged_until then return reply.err('execution_not_found') end
  local answer, has = tagging.change(q, keys.tags(ctx.r, id), c.has_tags)
  if has and not c.has_tags then record.set(ctx, id, 'has_tags', '1') end
  if has == false and c.has_tags then record.clear(ctx, id, 'has_tags') end
  if ctx.note and answer[2] == 'OK' then history.add(ctx, c, id, 'tagged', ctx.note.by, ctx.note.why) end
  return answer
end
