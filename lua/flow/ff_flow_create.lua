-- ff_flow_create: makes the header of a flow, to which members are staged. Nothing of it is claimable until it is released.
-- digest tells definitions apart: the same id with another one is a conflict. A flow that is not released within a day is given up.
-- Flags:   none
-- Go:      Engine.CreateFlow
-- Args:    protocol flow namespace kind creator digest tags {key value}
-- Replies: OK state revision members; ALREADY_SATISFIED state revision members
-- Errors:  invalid_input invalid_tag_key flow_conflict partition_missing partition_frozen protocol_mismatch
local function ff_flow_create(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id, tags = args.uuid(argv[2]), args.int(argv[7], 0, 64)
  if not id then return reply.err('invalid_input', 'flow id') end
  if not tags or #argv ~= 7 + 2 * tags then return reply.err('invalid_input', 'tags: at most 64') end
  if not args.name(argv[3], 64) then return reply.err('invalid_input', 'namespace') end
  if not args.name(argv[4], 64) then return reply.err('invalid_input', 'kind') end
  if #argv[5] > 64 then return reply.err('invalid_input', 'creator: at most 64 bytes') end
  if #argv[6] > 64 then return reply.err('invalid_input', 'digest: at most 64 bytes') end
  for i = 8, #argv, 2 do
    if not args.tag(argv[i]) then return reply.err('invalid_tag_key', string.sub(argv[i], 1, 64)) end
    if #argv[i + 1] > 256 then return reply.err('invalid_input', 'tags: value of at most 256 bytes') end
  end
  local h = graph.head(ctx, id)
  if h then
    if h.ns ~= argv[3] or h.kd ~= argv[4] or (h.pd or '') ~= argv[6] then return reply.err('flow_conflict', id) end
    return reply.already(h.st, h.rv, h.nn or '0')
  end
  local code, digest = purge.stone(ctx, keys.flow_stone(ctx.r, id))
  if code then
    if digest ~= purge.digest(argv[6]) then return reply.err('flow_conflict', id) end
    return reply.already(code, '0', '0')
  end
  if core.read(ctx, id).s then return reply.err('invalid_input', 'flow id: an execution has it') end

  local key, due = keys.flow(ctx.r, id), ctx.now + 86400000
  redis.call('HSET', key, 'st', 'F0', 'ns', argv[3], 'kd', argv[4], 'ct', ctx.t, 'mt', ctx.t, 'rv', '0')
  if argv[5] ~= '' then redis.call('HSET', key, 'cr', argv[5]) end
  if argv[6] ~= '' then redis.call('HSET', key, 'pd', argv[6]) end
  if tags > 0 then
    redis.call('HSET', key, 'tg', '1')
    redis.call('HSET', keys.flow_tags(ctx.r, id), unpack(argv, 8))
  end
  redis.call('ZADD', keys.flows(ctx.r), ctx.t, id)
  redis.call('ZADD', keys.flow_due(ctx.r), reply.int(due), id)
  root.need(ctx, due)
  return reply.ok('F0', '0', '0')
end
