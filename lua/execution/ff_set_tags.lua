-- ff_set_tags: sets and removes tags of an execution in any state, all of them or none. At most 64 are left.
-- Flags:   none
-- Go:      Engine.SetTags
-- Args:    protocol id sets {key value} removals {key}
-- Replies: OK count; ALREADY_SATISFIED count
-- Errors:  invalid_input invalid_tag_key execution_not_found partition_missing partition_frozen protocol_mismatch
local ff_tags = {}

-- parse reads pairs and keys, or returns nil and an error.
function ff_tags.parse(argv)
  local sets = args.int(argv[3], 0, 64)
  if not sets then return nil, reply.err('invalid_input', 'sets: at most 64') end
  local at = 4 + 2 * sets
  local removals = args.int(argv[at], 0, 64)
  if not removals or #argv ~= at + removals then return nil, reply.err('invalid_input', 'removals: at most 64') end
  for i = 4, at - 1, 2 do
    if not args.tag(argv[i]) then return nil, reply.err('invalid_tag_key', string.sub(argv[i], 1, 64)) end
    if #argv[i + 1] > 256 then return nil, reply.err('invalid_input', 'tags: value of at most 256 bytes') end
  end
  return { from = 4, upto = at - 1, removals = at + 1 }
end

local function ff_set_tags(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'execution id') end
  local q, bad = ff_tags.parse(argv)
  if not q then return bad end
  local h = redis.call('HMGET', keys.core(ctx.r, id), 's', 'tg', 'pu')
  if not h[1] or h[3] then return reply.err('execution_not_found') end
  local key, before, tags, count, changed = keys.tags(ctx.r, id), {}, {}, 0, false
  local stored = h[2] and redis.call('HGETALL', key) or {}
  for i = 1, #stored, 2 do before[stored[i]], tags[stored[i]] = stored[i + 1], stored[i + 1] end
  for i = q.from, q.upto, 2 do tags[argv[i]] = argv[i + 1] end
  for i = q.removals, #argv do tags[argv[i]] = nil end
  for tag, value in pairs(tags) do
    count = count + 1
    changed = changed or before[tag] ~= value
  end
  for tag in pairs(before) do changed = changed or not tags[tag] end
  if count > 64 then return reply.err('invalid_input', 'tags: at most 64') end
  if not changed then return reply.already(reply.int(count)) end
  if q.upto > q.from then redis.call('HSET', key, unpack(argv, q.from, q.upto)) end
  if q.removals <= #argv then redis.call('HDEL', key, unpack(argv, q.removals, #argv)) end
  if count > 0 and not h[2] then redis.call('HSET', keys.core(ctx.r, id), 'tg', '1') end
  if count == 0 and h[2] then redis.call('HDEL', keys.core(ctx.r, id), 'tg') end
  return reply.ok(reply.int(count))
end
