-- ff_session_renew: extends a session, forgets the lost notices up to the generation the holder has processed,
-- and returns the next (at most 100). A session that is not alive stays dead.
-- Flags:   allow-oom
-- Go:      Engine.RenewSession
-- Args:    protocol session:bytes(1..64) ttl:ms(1000..3600000) processed:n
-- Replies: OK overdue:flag generation:n more:flag notices:rows {notice:text}
-- Errors:  @root invalid_input lease_expired
local function ff_session_renew(ctx, q)
  local id, ttl, processed = q.session, q.ttl, q.processed
  local s = session.read(ctx, id)
  if not s.alive then return reply.err('lease_expired') end
  if processed > s.lg then processed = s.lb end -- a failover lost notices that the holder knows: tell all there are
  local key = keys.session(ctx.r, id)
  session.shorten(ctx, id, s, ctx.now + ttl)
  if s.lg == s.lb then
    redis.call('HSET', key, 'exp', reply.int(ctx.now + ttl), 'ttl', reply.int(ttl))
    return reply.ok(root.overdue(ctx), reply.int(s.lg), '0', '0')
  end
  local lost = keys.lost(ctx.r, id)
  if processed > s.lb then
    redis.call('HSET', key, 'exp', reply.int(ctx.now + ttl), 'ttl', reply.int(ttl), 'lb', reply.int(processed))
    redis.call('LTRIM', lost, processed - s.lb, -1)
    s.lb = processed
  else
    redis.call('HSET', key, 'exp', reply.int(ctx.now + ttl), 'ttl', reply.int(ttl))
  end
  local notices = redis.call('LRANGE', lost, 0, 99)
  local generation = s.lb + #notices
  return reply.ok(root.overdue(ctx), reply.int(generation), generation < s.lg and '1' or '0', reply.int(#notices),
    unpack(notices))
end
