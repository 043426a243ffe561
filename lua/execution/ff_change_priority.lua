-- ff_change_priority: changes the priority of an execution that has not ended. One that waits moves within its queue,
-- keeping its age, and workers are told when it should come next; any other takes the new place when it next waits.
-- Flags:   allow-oom
-- Go:      Engine.ChangePriority
-- Args:    protocol id:id priority:int
-- Replies: OK old:int new:int; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found execution_not_active
local function ff_change_priority(ctx, q)
  local id, wanted = q.id, math.max(0, math.min(q.priority, 9000))
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if core.terminal(c) then return fence.not_active(c) end
  local old, new = c.priority or '0', reply.int(wanted)
  if old == new then return reply.already(old, new) end
  if wanted == 0 then
    record.clear(ctx, id, 'priority')
    c.priority = nil
  else
    record.set(ctx, id, 'priority', new)
    c.priority = new
  end
  history.add(ctx, c, id, 'priority', old .. ' ' .. new, trail.by(ctx))
  if core.waiting(c) then
    local score = lane.score(ctx, c)
    redis.call('ZADD', keys.queue(ctx.r, c.route), 'XX', score, id)
    local level = wanted > tonumber(old) and ready.lists(ctx, c.route) and urgent.level(ctx, c.route, { score, id })
    if level then urgent.tell(ctx, c.route, level) end
  end
  return reply.ok(old, new)
end
