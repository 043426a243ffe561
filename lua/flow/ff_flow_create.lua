-- ff_flow_create: makes the header of a flow, to which members are staged. Nothing of it is claimable until it is released.
-- digest tells definitions apart: the same id with another one is a conflict. A flow that is not released within a day is given up.
-- Flags:   none
-- Go:      Engine.CreateFlow
-- Args:    protocol flow namespace kind creator digest tags {key value}
-- Replies: OK state revision members; ALREADY_SATISFIED state revision members
-- Errors:  invalid_input invalid_tag_key flow_conflict partition_missing partition_frozen protocol_mismatch
local function ff_flow_create(ctx, argv)
  local q = args.named(argv, 2, { 'flow', 'namespace', 'kind', 'creator', 'digest' })
  local id, tags, behind = args.uuid(q.flow), args.tags(argv, 7)
  if not id then return reply.err('invalid_input', 'flow id') end
  if not tags or argv[behind] then return reply.err('invalid_input', 'tags: at most 64') end
  if not args.name(q.namespace, 64) then return reply.err('invalid_input', 'namespace') end
  if not args.name(q.kind, 64) then return reply.err('invalid_input', 'kind') end
  if #q.creator > 64 then return reply.err('invalid_input', 'creator: at most 64 bytes') end
  if #q.digest > 64 then return reply.err('invalid_input', 'digest: at most 64 bytes') end
  local code, detail = args.wrong_tags(tags)
  if code then return reply.err(code, detail) end
  local h = graph.head(ctx, id)
  if h then
    if h.ns ~= q.namespace or h.kd ~= q.kind or (h.pd or '') ~= q.digest then return reply.err('flow_conflict', id) end
    return reply.already(h.st, h.rv, h.nn or '0')
  end
  local ended, digest = purge.stone(ctx, keys.flow_stone(ctx.r, id))
  if ended then
    if digest ~= purge.digest(q.digest) then return reply.err('flow_conflict', id) end
    return reply.already(ended, '0', '0')
  end
  if core.read(ctx, id).state then return reply.err('invalid_input', 'flow id: an execution has it') end

  local key, due = keys.flow(ctx.r, id), ctx.now + 86400000
  redis.call('HSET', key, 'st', 'F0', 'ns', q.namespace, 'kd', q.kind, 'ct', ctx.t, 'mt', ctx.t, 'rv', '0')
  if q.creator ~= '' then redis.call('HSET', key, 'cr', q.creator) end
  if q.digest ~= '' then redis.call('HSET', key, 'pd', q.digest) end
  if #tags > 0 then
    redis.call('HSET', key, 'tg', '1')
    redis.call('HSET', keys.flow_tags(ctx.r, id), unpack(tags))
  end
  redis.call('ZADD', keys.flows(ctx.r), ctx.t, id)
  redis.call('ZADD', keys.flow_due(ctx.r), reply.int(due), id)
  root.need(ctx, due)
  return reply.ok('F0', '0', '0')
end
