-- ff_session_close: ends an empty session. Its record stays for ten minutes as a tombstone, so that a claim that
-- was still on its way cannot open it again.
-- Flags:   allow-oom
-- Go:      Engine.CloseSession
-- Args:    protocol session:bytes(1..64)
-- Replies: OK "closed"; ALREADY_SATISFIED "closed"
-- Errors:  @root invalid_input session_not_empty
local function ff_session_close(ctx, q)
  local id = q.session
  local s = session.read(ctx, id)
  if s.dead or not s.exp then return reply.already('closed') end
  local held = redis.call('ZCARD', keys.held(ctx.r, id))
  if held > 0 then return reply.err('session_not_empty', reply.int(held)) end
  local key = keys.session(ctx.r, id)
  redis.call('HSET', key, 'dead', '1')
  redis.call('EXPIRE', key, 600)
  redis.call('ZREM', keys.sessions(ctx.r), id)
  redis.call('DEL', keys.lost(ctx.r, id))
  return reply.ok('closed')
end
