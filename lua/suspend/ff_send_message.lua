-- ff_send_message: a message to a mailbox of an execution that has not ended. It waits there until the handler
-- receives it; one that waits for a message of this mailbox goes on. key is '' or makes a repeat harmless, as the
-- message's id does: the last 1,000 are remembered. The answer says which message of the execution it is, from 1, and
-- how many wait. A run that talks is told at once, if it asked for that, or its mailbox is shut until it has ended.
-- Flags:   none
-- Go:      Engine.SendMessage
-- Args:    protocol id:id mailbox:ascii(1..96) message:uuid key:line(256) by:line(256) encoding:json|utf8|bytes
--          !payload_too_large payload:bytes(65536)
-- Replies: OK number:n waiting:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large execution_not_found result_purged corrupt target_not_signalable
--          mailbox_full mailbox_shut
local function ff_send_message(ctx, q)
  local id = q.id
  local m = { box = q.mailbox, id = q.message, key = q.key, by = q.by, encoding = q.encoding, payload = q.payload }
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local before = mailbox.repeated(ctx, c, id, m)
  if before then return reply.already(reply.int(args.score(before)), mailbox.many(c)) end
  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end
  if talk.shut(ctx, c, id, m.box) then return reply.err('mailbox_shut', m.box) end
  local number, waiting = mailbox.put(ctx, c, id, m)
  if not number then return waiting end
  if core.suspended(c) then
    suspension.came(ctx, c, id, 'M', m.box, { reason = 'resumed', cause = 'message', trigger = 'message',
      who = suspension.sender('message', m.by) })
    flow.apply(ctx)
  end
  talk.told(ctx, c, id, m.box, number)
  return reply.ok(number, waiting)
end
