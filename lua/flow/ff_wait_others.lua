-- ff_wait_others: the holder is about to wait for executions that it did not make. They are put on the list of the
-- wait of this name, with how they ended if they have (mark and attempt; '.' for open ones), and the open ones are
-- told by the outbox who waits (lib/awaited.lua). More of the same wait may follow, and children of it
-- (ff_wait_children, park 0); then a suspension with the part K in its condition. mode, after and rest are as for
-- ff_wait_children. Those that are on the list already stay as they are. An open one with the attempt 1 is
-- cancelled when nobody waits for it any more.
-- Flags:   none
-- Go:      Engine.WaitOthers
-- Args:    protocol fence name:line(1..128) mode:all|first|success|fast after:run|cancel rest:cancel|leave
--          others:rows(1..100) {execution:ref node:line(1..64) mark:text attempt:n(1..4294967295)?}
-- Replies: OK listed:n; ALREADY_SATISFIED listed:n
-- Errors:  @root @fence invalid_input self_referencing_edge fan_in_too_large step_limit_exceeded
local ff_others = {}

-- parse judges everything that needs no look at the store.
function ff_others.parse(ctx, argv, id)
  local q = { name = argv[7], mode = argv[8], after = argv[9], rest = argv[10] }
  if not q.name or #q.name < 1 or #q.name > 128 or string.find(q.name, '%c') then
    return nil, reply.err('invalid_input', 'name: 1 to 128 bytes without control characters')
  end
  if not wait.modes[q.mode or ''] then return nil, reply.err('invalid_input', 'mode: all, first, success or fast') end
  if q.after ~= 'run' and q.after ~= 'cancel' then return nil, reply.err('invalid_input', 'after: run or cancel') end
  if q.rest ~= 'cancel' and q.rest ~= 'leave' then return nil, reply.err('invalid_input', 'rest: cancel or leave') end
  local items, behind = args.rows(argv, 11, 1, 100, { 'execution', 'node', 'mark', 'attempt' })
  if not items or argv[behind] then return nil, reply.err('invalid_input', 'count: 1..100 executions') end
  for i = 1, #items do
    local x = items[i]
    local partition, other = awaited.whole(x.execution)
    if not partition then return nil, reply.err('invalid_input', 'execution: a partition and an id') end
    if other == id and partition == string.match(ctx.r, '(%d+)}$') then
      return nil, reply.err('self_referencing_edge', x.node)
    end
    if #x.node < 1 or #x.node > 64 or string.find(x.node, '%c') then
      return nil, reply.err('invalid_input', 'node: 1 to 64 bytes without control characters')
    end
    if not string.find(x.mark, '^[.sfcekn]$') then return nil, reply.err('invalid_input', 'mark') end
    if x.attempt ~= '' and not args.int(x.attempt, 1, 4294967295) then
      return nil, reply.err('invalid_input', 'attempt')
    end
  end
  q.items = items
  return q
end

-- new are those that the list of this wait does not have yet, each once.
function ff_others.new(ctx, id, q)
  local out, seen = {}, {}
  local key = keys.children(ctx.r, id)
  local same = redis.call('HGET', key, 'name') == q.name
  for i = 1, #q.items do
    local full = q.items[i].execution
    if not seen[full] and not (same and redis.call('HEXISTS', key, full) == 1) then
      seen[full], out[#out + 1] = true, q.items[i]
    end
  end
  return out
end

local function ff_wait_others(ctx, argv)
  local f, bad = fence.parse(argv, 2)
  if not f then return bad end
  local q
  q, bad = ff_others.parse(ctx, argv, f.id)
  if not q then return bad end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    if fence.released(c, f, 'u') then return reply.already('0') end -- and the suspension followed
    return answer
  end
  -- and it is over
  if redis.call('HEXISTS', keys.steps(ctx.r, f.id), wait.step(q.name)) == 1 then return reply.already('0') end
  local new = ff_others.new(ctx, f.id, q)
  local count = wait.listed(ctx, f.id, q.name) + #new
  if count > 1000 then return reply.err('fan_in_too_large', '1000') end
  answer = wait.room(ctx, c, f.id, q.name, count)
  if answer then return answer end

  wait.fresh(ctx, c, f.id, q.name)
  local key, fields = keys.children(ctx.r, f.id), {}
  redis.call('HSETNX', key, 'others', awaited.token(c))
  local token = redis.call('HGET', key, 'others')
  for i = 1, #new do
    local x = new[i]
    fields[#fields + 1], fields[#fields + 2] = x.execution, x.mark .. ',' .. x.attempt .. ',' .. x.node
    if x.mark == '.' then awaited.expect(ctx, x.execution, f.id, token) end
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  local w = wait.tally(ctx, f.id, { mode = q.mode, after = q.after, rest = q.rest })
  w.state = 'm'
  record.set(ctx, f.id, 'children_wait', wait.text(w))
  flow.apply(ctx)
  return reply.ok(reply.int(count))
end
