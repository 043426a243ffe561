-- ff_wait_for_others: the holder is about to wait for executions that it did not make. They are put on the list of the
-- wait of this name, with how they ended if they have (mark and attempt; '.' for open ones), and the open ones are
-- told by the outbox who waits (lib/wait_others.lua). More of the same wait may follow, and children of it
-- (ff_make_children), then a suspension with the part K in its condition. mode, after and rest are as for
-- ff_make_children. Those that are on the list already stay as they are. An open one with the attempt 1 is
-- cancelled when nobody waits for it any more.
-- Flags:   none
-- Go:      Engine.WaitForOthers
-- Args:    protocol fence name:line(1..128) mode:all|first|success|fast after:run|cancel rest:cancel|leave
--          others:rows(1..100) {execution:ref node:line(1..64) mark:.|s|f|c|e|k|n attempt:n(1..4294967295)?}
-- Replies: OK listed:n; ALREADY_SATISFIED listed:n
-- Errors:  @root @fence invalid_input self_referencing_edge fan_in_too_large step_limit_exceeded
local ff_others = {}

-- own tells of what it would wait for itself, or nil.
function ff_others.own(ctx, items, id)
  for i = 1, #items do
    local partition, other = wait_others.whole(items[i].execution)
    if other == id and partition == string.match(ctx.r, '(%d+)}$') then
      return reply.err('self_referencing_edge', items[i].node)
    end
  end
  return nil
end

-- new are those that the list of this wait does not have yet, each once.
function ff_others.new(ctx, id, q)
  local out, seen = {}, {}
  local key = keys.children(ctx.r, id)
  local same = redis.call('HGET', key, 'name') == q.name
  for i = 1, #q.others do
    local full = q.others[i].execution
    if not seen[full] and not (same and redis.call('HEXISTS', key, full) == 1) then
      seen[full], out[#out + 1] = true, q.others[i]
    end
  end
  return out
end

local function ff_wait_for_others(ctx, q)
  local f = q.fence
  local bad = ff_others.own(ctx, q.others, f.id)
  if bad then return bad end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    if fence.released(c, f, 'u') then return reply.already('0') end -- and the suspension followed
    return answer
  end
  -- and it is over
  if redis.call('HEXISTS', keys.steps(ctx.r, f.id), wait_children.step(q.name)) == 1 then return reply.already('0') end
  local new = ff_others.new(ctx, f.id, q)
  local count = wait_children.listed(ctx, f.id, q.name) + #new
  if count > 1000 then return reply.err('fan_in_too_large', '1000') end
  answer = wait_children.room(ctx, c, f.id, q.name, count)
  if answer then return answer end

  wait_children.fresh(ctx, c, f.id, q.name)
  local key, fields = keys.children(ctx.r, f.id), {}
  redis.call('HSETNX', key, 'others', wait_others.token(c))
  local token = redis.call('HGET', key, 'others')
  for i = 1, #new do
    local x = new[i]
    local attempt = x.attempt and reply.int(x.attempt) or ''
    fields[#fields + 1], fields[#fields + 2] = x.execution, x.mark .. ',' .. attempt .. ',' .. x.node
    if x.mark == '.' then wait_others.expect(ctx, x.execution, f.id, token) end
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  wait_children.make(ctx, f.id, q)
  flow.apply(ctx)
  return reply.ok(reply.int(count))
end
