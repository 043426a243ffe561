-- ff_session_held: what a session holds, in order of claim, 100 a call.
-- Flags:   no-writes
-- Go:      Engine.SessionHeld
-- Args:    protocol session:bytes(1..64) offset:n
-- Replies: OK alive:flag total:n executions:rows {id:uuid claim:n}
-- Errors:  @root invalid_input
local function ff_session_held(ctx, q)
  local id, offset = q.session, q.offset
  local held = keys.held(ctx.r, id)
  local members = redis.call('ZRANGE', held, offset, offset + 99, 'WITHSCORES')
  for i = 2, #members, 2 do members[i] = reply.int(args.score(members[i])) end
  return reply.ok(session.read(ctx, id).alive and '1' or '0', reply.int(redis.call('ZCARD', held)),
    reply.int(#members / 2), unpack(members))
end
