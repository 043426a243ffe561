-- ff_wait_children: the holder waits for children, members of its own flow that it makes in the same call (items as for
-- ff_flow_stage); an execution without a flow founds one, whose id is its own. With park 0 the children are only
-- made: more of the same wait follow, or a suspension with the part K in its condition. With park 1 the lease is
-- given up until enough have ended: mode all, first, success (the first that succeeds, or all) or fast (all have
-- succeeded, or one did not). after says what becomes of those that are open then: run or cancel; rest what becomes
-- of them if this execution ends first: cancel or leave. If enough have ended already the lease is kept, the outcomes
-- are recorded as a step, and the answer brings them: child,mark,attempt,node of each.
-- Flags:   none
-- Go:      Engine.WaitChildren
-- Args:    protocol fence name:line(1..128) mode:all|first|success|fast after:run|cancel rest:cancel|leave park:flag
--          members
-- Replies: OK what:made|parked|satisfied outcomes:text; ALREADY_SATISFIED what:made|parked outcomes:text
-- Errors:  @root @fence invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large
--          too_many_routes lane_closed idempotency_conflict flow_not_found flow_already_terminal flow_sealed
--          flow_cancelled self_referencing_edge dependency_already_exists execution_not_in_flow
--          already_member_of_different_flow namespace_mismatch fan_in_too_large flow_too_large step_limit_exceeded
local ff_wait = {}

-- found is the header of the flow of an execution; one that has none becomes the first member of a new one.
function ff_wait.found(ctx, c, id)
  if c.flow then return graph.head(ctx, c.flow), false end
  local row = pack.split(redis.call('HGET', keys.routes(ctx.r), c.route) or '', '\31')
  return graph.new(ctx, id, { st = 'F1', sl = 'g', ns = row[1], kd = row[3] or '', rl = ctx.t, nn = '1', ma = '1' }),
    true
end

-- open makes the header that found planned.
function ff_wait.open(ctx, h, id)
  graph.begin(ctx, h)
  record.set(ctx, id, 'flow', id, 'node', 'root')
  redis.call('ZADD', keys.members(ctx.r, id), '0', id)
end

-- list makes sure that children that are there already are on the list of this wait, with how they ended.
function ff_wait.list(ctx, items, id)
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

-- park gives up the lease. What is left of the attempt timeout is remembered.
function ff_wait.park(ctx, c, f, w)
  record.set(ctx, f.id, 'state', 'R3i', 'children_wait', wait.text(w), 'last_release',
    fence.release('k', f.epoch, f.attempt, 'parked'))
  settle.leftover(ctx, c, f.id)
  history.add(ctx, c, f.id, 'released', 'waiting_children', c.claimed_at)
  home.leave(ctx, c, f.id)
  indexes.block(ctx, f.id, c.created_at)
  core.announce(ctx, c, f.id, 'R3i')
end

-- refuse tells why a flow takes no children; new is whether there are any that it does not have.
function ff_wait.refuse(ctx, h, id)
  if h.st == 'F4' then return reply.err('flow_cancelled', id) end
  if h.st ~= 'F1' then return reply.err('flow_already_terminal', h.st) end
  if h.sl == '1' then return reply.err('flow_sealed', id) end
  return nil
end

local function ff_wait_children(ctx, argv)
  local q, bad = decode.ff_wait_children(argv)
  if not q then return bad end
  local f = q.fence
  q.items = {}
  if argv[12] then q.items, bad = member.parse(argv, 12) end
  if not q.items then return bad end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    local slot = fence.released(c, f, 'k')
    if slot then return reply.already(slot, '') end
    -- and the suspension followed
    if not q.park and fence.released(c, f, 'u') then return reply.already('made', '') end
    return answer
  end
  local known = q.park and redis.call('HGET', keys.steps(ctx.r, f.id), wait.step(q.name))
  if known then return reply.ok('satisfied', known) end
  local h, founded = ff_wait.found(ctx, c, f.id)
  if not h then return reply.err('flow_not_found') end
  local new = 0
  if #q.items > 0 then
    new, bad = member.judge(ctx, h, q.items, f.id)
    if not new then return bad end
    answer = new > 0 and ff_wait.refuse(ctx, h, h.id)
    if answer then return answer end
  end
  local had = wait.listed(ctx, f.id, q.name)
  if had + new > 1000 then return reply.err('fan_in_too_large', '1000') end
  answer = wait.room(ctx, c, f.id, q.name, had + new)
  if answer then return answer end

  if #q.items > 0 or not founded then -- without a child there is nothing to keep, and no flow to keep it with
    if founded then ff_wait.open(ctx, h, f.id) end
    wait.fresh(ctx, c, f.id, q.name)
  end
  ff_wait.list(ctx, q.items, f.id)
  if new > 0 then member.write(ctx, h, q.items, f.id) end
  if not q.park then
    if #q.items > 0 then -- for the case that this execution ends before it waits
      local w = wait.tally(ctx, f.id, { mode = q.mode, after = q.after, rest = q.rest })
      w.state = 'm'
      record.set(ctx, f.id, 'children_wait', wait.text(w))
    end
    flow.apply(ctx)
    create.close(ctx)
    return reply.ok('made', '')
  end
  local w = wait.tally(ctx, f.id, { mode = q.mode, after = q.after, rest = q.rest })
  if w.state == 'd' then
    local outcomes = wait.over(ctx, f.id, w, q.name)
    if w.after == 'run' or w.children == 0 then record.clear(ctx, f.id, 'children_wait') end
    stream.again(ctx, c, f, 'k')
    flow.apply(ctx)
    create.close(ctx)
    return reply.ok('satisfied', outcomes)
  end
  c = core.read(ctx, f.id)
  ff_wait.park(ctx, c, f, w)
  flow.apply(ctx)
  create.close(ctx)
  return reply.ok('parked', '')
end
