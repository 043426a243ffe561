-- ff_trim_outbox: forgets entries of the outbox that were delivered.
-- Flags:   allow-oom
-- Go:      Engine.TrimOutbox
-- Args:    protocol entries:rows(1..100) {entry:bytes(3..40)}
-- Replies: OK removed:n left:n
-- Errors:  @root invalid_input
local function ff_trim_outbox(ctx, q)
  local entries = q.entries
  for i = 1, #entries do
    if not string.find(entries[i], '^%d+%-%d+$') then
      return reply.err('invalid_input', 'entries: entry: the id of an entry')
    end
  end
  local n = redis.call('XDEL', keys.outbox(ctx.r), unpack(entries))
  return reply.ok(reply.int(n), reply.int(redis.call('XLEN', keys.outbox(ctx.r))))
end
