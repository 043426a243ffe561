-- ff_read_messages: the messages that wait for an execution's handler, the first that came first, up to 100 a call
-- behind a number, and at most 128 KiB but for the first one. It also tells how many messages came, how many wait,
-- and their bytes.
-- Flags:   no-writes
-- Go:      Engine.ReadMessages
-- Args:    protocol id:id behind:n max:n(1..100)
-- Replies: OK last:n waiting:n bytes:n messages:rows {message:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_messages(ctx, argv)
  local id, behind, max = args.id(argv[2]), args.int(argv[3], 0, 9007199254740991), args.int(argv[4], 1, 100)
  if not id then return reply.err('invalid_input', 'execution id') end
  if not behind then return reply.err('invalid_input', 'behind') end
  if not max then return reply.err('invalid_input', 'max: 1..100') end
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local last, n, bytes = mailbox.of(c)
  local out = reply.ok(reply.int(last), reply.int(n), reply.int(bytes))
  reply.add(out, mailbox.heads(ctx, c, id, '', max, behind))
  return out
end
