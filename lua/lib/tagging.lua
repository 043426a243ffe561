-- tagging: sets and removes tags of an execution or a flow, all of them or none. At most 64 are left.
local tagging = {}

-- parse reads count {key value} count {key} from position 3 to the end of the arguments, or returns nil and an error
-- reply.
function tagging.parse(argv)
  local sets, at = args.tags(argv, 3)
  if not sets then return nil, reply.err('invalid_input', 'sets: at most 64') end
  local removals, behind = args.list(argv, at, 0, 64)
  if not removals or argv[behind] then return nil, reply.err('invalid_input', 'removals: at most 64') end
  local code, detail = args.wrong_tags(sets)
  if code then return nil, reply.err(code, detail) end
  return { sets = sets, removals = removals }
end

-- change applies what parse read to the hash at key; had tells whether there are tags. It returns the reply and, if
-- it changed anything, whether there are some now.
function tagging.change(q, key, had)
  local before, tags, count, changed = {}, {}, 0, false
  local stored = had and redis.call('HGETALL', key) or {}
  for i = 1, #stored, 2 do before[stored[i]], tags[stored[i]] = stored[i + 1], stored[i + 1] end
  for i = 1, #q.sets, 2 do tags[q.sets[i]] = q.sets[i + 1] end
  for i = 1, #q.removals do tags[q.removals[i]] = nil end
  for tag, value in pairs(tags) do
    count = count + 1
    changed = changed or before[tag] ~= value
  end
  for tag in pairs(before) do changed = changed or not tags[tag] end
  if count > 64 then return reply.err('invalid_input', 'tags: at most 64') end
  if not changed then return reply.already(reply.int(count)) end
  if #q.sets > 0 then redis.call('HSET', key, unpack(q.sets)) end
  if #q.removals > 0 then redis.call('HDEL', key, unpack(q.removals)) end
  return reply.ok(reply.int(count)), count > 0
end
