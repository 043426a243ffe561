-- ff_set_tags: sets and removes tags of an execution or a flow in any state, all of them or none. At most 64 are left.
-- Flags:   none
-- Go:      Engine.SetTags
-- Args:    protocol id:id of:execution|flow sets:rows(0..64) {key:tag value:bytes(256)} removals:rows(0..64) {key:text}
-- Replies: OK count:n(0..64); ALREADY_SATISFIED count:n(0..64)
-- Errors:  @root invalid_input invalid_tag_key execution_not_found flow_not_found
local ff_tags = {}

-- parse reads the arguments, or returns nil and an error reply.
function ff_tags.parse(argv)
  local q = { id = args.id(argv[2]), flow = argv[3] == 'flow' }
  if not q.id then return nil, reply.err('invalid_input', 'id: 36 bytes') end
  if not q.flow and argv[3] ~= 'execution' then return nil, reply.err('invalid_input', 'of: execution or flow') end
  local at, behind
  q.sets, at = args.tags(argv, 4)
  if not q.sets then return nil, reply.err('invalid_input', 'sets: at most 64') end
  q.removals, behind = args.list(argv, at, 0, 64)
  if not q.removals or argv[behind] then return nil, reply.err('invalid_input', 'removals: at most 64') end
  local code, detail = args.wrong_tags(q.sets)
  if code then return nil, reply.err(code, detail) end
  return q
end

-- after returns the tags that there will be, how many, those there were, and whether any differs.
function ff_tags.after(q, key, had)
  local before, tags, count, changed = had and meter.hash(key) or {}, {}, 0, false
  for tag, value in pairs(before) do tags[tag] = value end
  for i = 1, #q.sets, 2 do tags[q.sets[i]] = q.sets[i + 1] end
  for i = 1, #q.removals do tags[q.removals[i]] = nil end
  for tag, value in pairs(tags) do
    count = count + 1
    changed = changed or before[tag] ~= value
  end
  for tag in pairs(before) do changed = changed or not tags[tag] end
  return tags, count, before, changed
end

local function ff_set_tags(ctx, argv)
  local q, bad = ff_tags.parse(argv)
  if not q then return bad end
  local id, c, key, had = q.id, nil, nil, nil
  if q.flow then
    local h = redis.call('HMGET', keys.flow(ctx.r, id), 'st', 'tg')
    if not h[1] then return reply.err('flow_not_found') end
    key, had = keys.flow_tags(ctx.r, id), h[2] and true
  else
    c = core.read(ctx, id)
    if not c.state or c.purged_until then return reply.err('execution_not_found') end
    key, had = keys.tags(ctx.r, id), c.has_tags and true
  end
  local tags, count, before, changed = ff_tags.after(q, key, had)
  if count > 64 then return reply.err('invalid_input', 'tags: at most 64') end
  if not changed then return reply.already(reply.int(count)) end

  if #q.sets > 0 then redis.call('HSET', key, unpack(q.sets)) end
  if #q.removals > 0 then redis.call('HDEL', key, unpack(q.removals)) end
  local has = count > 0
  if has and not had then
    if c then record.set(ctx, id, 'has_tags', '1') else redis.call('HSET', keys.flow(ctx.r, id), 'tg', '1') end
  elseif had and not has then
    if c then record.clear(ctx, id, 'has_tags') else redis.call('HDEL', keys.flow(ctx.r, id), 'tg') end
  end
  if c then
    catalogue.retag(ctx, c, id, before, tags)
    indexes.apply(ctx)
  end
  if c and ctx.note then history.add(ctx, c, id, 'tagged', ctx.note.by, ctx.note.why) end
  return reply.ok(reply.int(count))
end
