-- tagging: sets and removes tags of an execution or a flow, all of them or none. At most 64 are left.
local tagging = {}

-- parse reads count {key value} count {key} from position 3 to the end of the arguments, or returns nil and an error reply.
function tagging.parse(argv)
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

-- change applies what parse read to the hash at key; had tells whether there are tags. It returns the reply and, if it changed anything,
-- whether there are some now.
function tagging.change(argv, q, key, had)
  local before, tags, count, changed = {}, {}, 0, false
  local stored = had and redis.call('HGETALL', key) or {}
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
  return reply.ok(reply.int(count)), count > 0
end
