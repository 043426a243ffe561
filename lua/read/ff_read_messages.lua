-- ff_read_messages: the messages that wait for an execution's handler, the first that came first, up to 100 a call
-- behind a number, and at most 128 KiB but for the first one. It also tells how many messages came, how many wait,
-- and their bytes.
-- Flags:   no-writes
-- Go:      Engine.ReadMessages
-- Args:    protocol id:id behind:n max:n(1..100)
-- Replies: OK last:n waiting:n bytes:n messages:rows {message:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_messages(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local last, n, bytes = mailbox.of(c)
  local out = reply.ok(reply.int(last), reply.int(n), reply.int(bytes))
  return reply.add(out, mailbox.heads(ctx, c, id, '', q.max, q.behind))
end
