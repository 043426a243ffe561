-- ff_make_children: the holder makes children, members of its own flow (items as for ff_flow_stage); an execution
-- without a flow founds one, whose id is its own. They are on the list of the wait of this name. More of the same wait
-- may follow, and others (ff_wait_for_others), then a suspension with the part K in its condition. mode is all, first,
-- success (the first that succeeds, or all) or fast (all have succeeded, or one did not). after says what becomes of
-- those that are open when the wait is over: run or cancel; rest what becomes of them if this execution ends first:
-- cancel or leave. When the wait is over already the answer brings its outcomes, and makes nothing:
-- child,mark,attempt,node of each.
-- Flags:   none
-- Go:      Engine.MakeChildren
-- Args:    protocol fence name:line(1..128) mode:all|first|success|fast after:run|cancel rest:cancel|leave members
-- Replies: OK over:flag outcomes:text; ALREADY_SATISFIED over:flag outcomes:text
-- Errors:  @root @fence invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large
--          too_many_routes lane_closed idempotency_conflict flow_not_found flow_already_terminal flow_sealed
--          flow_cancelled self_referencing_edge dependency_already_exists execution_not_in_flow
--          already_member_of_different_flow namespace_mismatch fan_in_too_large flow_too_large step_limit_exceeded
local ff_make = {}

-- found is the header of the flow of an execution; one that has none becomes the first member of a new one.
function ff_make.found(ctx, c, id)
  if c.flow then return graph.head(ctx, c.flow), false end
  local row = pack.split(redis.call('HGET', keys.routes(ctx.r), c.route) or '', '\31')
  return graph.new(ctx, id, { st = 'F1', sl = 'g', ns = row[1], kd = row[3] or '', rl = ctx.t, nn = '1', ma = '1' }),
    true
end

-- open makes the header that found planned.
function ff_make.open(ctx, h, id)
  graph.begin(ctx, h)
  record.set(ctx, id, 'flow', id, 'node', 'root')
  redis.call('ZADD', keys.members(ctx.r, id), '0', id)
end

-- list makes sure that children that are there already are on the list of this wait, with how they ended.
function ff_make.list(ctx, items, id)
  local key = keys.children(ctx.r, id)
  for n = 1, #items do
    local child = items[n].id
    if not items[n].new and redis.call('HEXISTS', key, child) == 0 then
      local c = core.read(ctx, child)
      local mark = c.state and graph.outcomes[c.state] or '.'
      local attempt = mark ~= '.' and core.attempt(c) or ''
      redis.call('HSET', key, child, mark .. ',' .. attempt .. ',' .. items[n].node)
    end
  end
end

-- refuse tells why a flow takes no children; new is whether there are any that it does not have.
function ff_make.refuse(ctx, h, id)
  if h.st == 'F4' then return reply.err('flow_cancelled', id) end
  if h.st ~= 'F1' then return reply.err('flow_already_terminal', h.st) end
  if h.sl == '1' then return reply.err('flow_sealed', id) end
  return nil
end

local function ff_make_children(ctx, argv)
  local q, bad = decode.ff_make_children(argv)
  if not q then return bad end
  local f = q.fence
  q.items = {}
  if argv[11] then q.items, bad = member.parse(argv, 11) end
  if not q.items then return bad end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    if fence.released(c, f, 'u') then return reply.already('0', '') end -- and the suspension followed
    return answer
  end
  local known = redis.call('HGET', keys.steps(ctx.r, f.id), wait_children.step(q.name))
  if known then return reply.ok('1', known) end
  if #q.items == 0 then return reply.ok('0', '') end
  local h, founded = ff_make.found(ctx, c, f.id)
  if not h then return reply.err('flow_not_found') end
  local new, refused = member.judge(ctx, h, q.items, f.id)
  if not new then return refused end
  answer = new > 0 and ff_make.refuse(ctx, h, h.id)
  if answer then return answer end
  local had = wait_children.listed(ctx, f.id, q.name)
  if had + new > 1000 then return reply.err('fan_in_too_large', '1000') end
  answer = wait_children.room(ctx, c, f.id, q.name, had + new)
  if answer then return answer end

  if founded then ff_make.open(ctx, h, f.id) end
  wait_children.fresh(ctx, c, f.id, q.name)
  ff_make.list(ctx, q.items, f.id)
  if new > 0 then member.write(ctx, h, q.items, f.id) end
  wait_children.make(ctx, f.id, q)
  flow.apply(ctx)
  create.close(ctx)
  return reply.ok('0', '')
end
