-- ff_revoke_lease: takes one execution away from its holder, at once. It is not an end: the tick requeues it as
-- lost work. With a session, only that holder's lease is taken. A repeated request does not take the next holder's.
-- Flags:   allow-oom
-- Go:      Engine.RevokeLease
-- Args:    protocol id:id session:bytes(64) request:id
-- Replies: OK "revoked" session:text epoch:n; ALREADY_SATISFIED why:already_revoked|already_expired
-- Errors:  @root invalid_input execution_not_found execution_not_active stale_lease
local function ff_revoke_lease(ctx, q)
  local id, holder, request = q.id, q.session, q.request
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  if c.state == 'A3' or c.revoke_request == request then return reply.already('already_revoked') end
  if c.state ~= 'A1' then return fence.not_active(c) end
  if not session.read(ctx, c.session).alive then return reply.already('already_expired') end
  if holder ~= '' and holder ~= c.session then return reply.err('stale_lease', 'held by another session') end

  record.set(ctx, id, 'state', 'A3', 'revoke_request', request)
  if c.attempt_deadline or c.attempt_left then record.clear(ctx, id, 'attempt_deadline', 'attempt_left') end
  history.add(ctx, c, id, 'revoked', trail.by(ctx), trail.why(ctx, 1024))
  settle.fold(ctx, c, id, 'interrupted_reclaimed', 'lease_revoked', '')
  indexes.unhold(ctx, c.session, id)
  -- a deadline stands when the clock steps back
  indexes.alarm(ctx, math.min(ctx.now, tonumber(c.deadline or ctx.t)), id)
  stream.close(ctx, c, id, 'lease_revoked')
  core.announce(ctx, c, id, 'A3')
  session.lost(ctx, c.session, id, c.epoch, 'revoked')
  flow.apply(ctx)
  return reply.ok('revoked', c.session, c.epoch)
end
