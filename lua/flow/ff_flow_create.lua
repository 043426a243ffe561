-- ff_flow_create: makes a flow, and up to 100 of its members in the same call, as ff_flow_stage adds them; all of it
-- or nothing. With a mode these are all that it begins with, and it is released at once, as by ff_flow_seal. Without
-- one more may be staged, and nothing of it is claimable before it is released; one that is not released within a day
-- is given up. digest tells definitions apart: the same id with another one is a conflict. A flow that was released
-- before is left alone. more: the release goes on in the backlog. flow may be "<flow> <key>": as long as another flow
-- that has not ended has the key, nothing is made, and the answer is about that flow, with its id at the end.
-- Flags:   none
-- Go:      Engine.CreateFlow
-- Args:    protocol flow:text namespace:name(64) kind:name(64) creator:bytes(64) digest:bytes(64)
--          mode:seal|grow|open? tags:rows(0..64) {key:tag value:bytes(256)} members
-- Replies: OK state:code revision:n members:n edges:n more:flag; ALREADY_SATISFIED state:code
--          revision:n members:n edges:n more:flag [flow:uuid]
-- Errors:  @root invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large too_many_routes
--          lane_closed idempotency_conflict flow_conflict result_purged self_referencing_edge
--          dependency_already_exists execution_not_in_flow already_member_of_different_flow namespace_mismatch
--          fan_in_too_large flow_too_large
local ff_create = {}

-- parse judges everything that needs no look at the store.
function ff_create.parse(argv)
  local q, bad = decode.ff_flow_create(argv)
  if not q then return nil, bad end
  local behind, code, detail
  q.tags, behind = args.tags(argv, 8)
  q.flow, q.key = string.match(q.flow, '^(%S+) ?(.*)$')
  if not args.uuid(q.flow) or q.key ~= '' and not args.uuid(q.key) then
    return nil, reply.err('invalid_input', 'flow: a UUID in lower case, and another one behind it or none')
  end
  if not q.tags then return nil, reply.err('invalid_input', 'tags: at most 64') end
  code, detail = args.wrong_tags(q.tags)
  if code then return nil, reply.err(code, detail) end
  q.items = {}
  if not argv[behind] then return q end
  q.items, bad = member.parse(argv, behind)
  if not q.items then return nil, bad end
  return q
end

-- known tells what there is under the id: a header; nothing of a flow that is new. An error reply comes second:
-- nobody is led to a flow that was purged.
function ff_create.known(ctx, q)
  local h = graph.head(ctx, q.flow)
  if h then
    if h.ns ~= q.namespace or h.kd ~= q.kind or (h.pd or '') ~= q.digest then
      return nil, reply.err('flow_conflict', q.flow)
    end
    return h
  end
  local ended, digest = purge.stone(ctx, keys.flow_stone(ctx.r, q.flow))
  if ended then
    if digest ~= purge.digest(q.digest) then return nil, reply.err('flow_conflict', q.flow) end
    return nil, reply.err('result_purged', ended)
  end
  if core.read(ctx, q.flow).state then return nil, reply.err('invalid_input', 'flow id: an execution has it') end
  return nil
end

-- begin makes the header that was planned, and the tags.
function ff_create.begin(ctx, h, tags)
  if #tags > 0 then
    graph.set(h, 'tg', '1')
    redis.call('HSET', keys.flow_tags(ctx.r, h.id), unpack(tags))
  end
  graph.begin(ctx, h)
end

function ff_create.answer(make, h)
  return make(h.st, graph.text(h, 'rv'), graph.text(h, 'nn'), graph.text(h, 'ne'),
    graph.count(h, 'bl') > 0 and '1' or '0')
end

local function ff_flow_create(ctx, argv)
  local q, bad = ff_create.parse(argv)
  if not q then return bad end
  local h
  h, bad = ff_create.known(ctx, q)
  if bad then return bad end
  if h and h.st ~= 'F0' then return ff_create.answer(reply.already, h) end
  local rival = not h and q.key ~= '' and graph.rival(ctx, q.key, q.flow)
  if rival then
    local answer = ff_create.answer(reply.already, rival)
    answer[#answer + 1] = rival.id
    return answer
  end
  local made, new = not h, 0
  h = h or graph.new(ctx, q.flow, { st = 'F0', ns = q.namespace, kd = q.kind, cr = q.creator ~= '' and q.creator or nil,
    pd = q.digest ~= '' and q.digest or nil, uk = q.key ~= '' and q.key or nil })
  if #q.items > 0 then
    new, bad = member.judge(ctx, h, q.items)
    if not new then return bad end
  end
  if not made and new == 0 and q.mode == '' then return ff_create.answer(reply.already, h) end

  if made then ff_create.begin(ctx, h, q.tags) end
  if q.mode ~= '' then flow.release(ctx, h, q.mode) else graph.expire(ctx, h) end
  if new > 0 then member.write(ctx, h, q.items) end
  flow.apply(ctx)
  create.close(ctx)
  return ff_create.answer(reply.ok, h)
end
