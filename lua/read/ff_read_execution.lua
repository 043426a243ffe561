-- ff_read_execution: one consistent snapshot of an execution; result and input are read by plain GET. closed is why a
-- gate keeps one that waits from being handed out; wait and since are of the suspension that it is in.
-- Flags:   no-writes
-- Go:      Engine.ReadExecution
-- Args:    protocol id:id
-- Replies: OK now:instant row:text alive:flag expiry:instant steps:n closed:text wait:text since:instant core
--          attempts tags:rows {key:tag value:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_execution(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  if c.purged_until then return reply.err('result_purged', c.state) end -- half of it is gone already
  local alive, expiry, recorded = '0', '0', 0
  if c.state == 'A1' then
    local s = session.read(ctx, c.session)
    alive, expiry = s.alive and '1' or '0', reply.int(s.exp or 0)
  end
  if c.step_bytes then recorded = steps.count(ctx, id) end
  local u = core.suspended(c) and suspension.read(ctx, id) or {}
  local out = { 1, 'OK', reply.int(ctx.now), redis.call('HGET', keys.routes(ctx.r), c.route) or '', alive, expiry,
    reply.int(recorded), core.waiting(c) and c.route and gate.closed(ctx, c.route) or '', u.name or '',
    u.created_at or '0' }
  reply.add(out, record.list(c), 2)
  reply.add(out, redis.call('HGETALL', keys.attempts(ctx.r, id)), 2)
  return reply.add(out, c.has_tags and redis.call('HGETALL', keys.tags(ctx.r, id)) or {}, 2)
end
