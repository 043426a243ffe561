-- ff_read_suspension: the flow of an execution, '' if it is in none; its current suspension, or its last one, what
-- that told the handler if it was resumed, and every waitpoint that is still known, with the second in which a token
-- was last refused for each (0: none lately).
-- Flags:   no-writes
-- Go:      Engine.ReadSuspension
-- Args:    protocol id:id
-- Replies: OK code:code flow:uuid? outcome:text record:rows {field:text value:text} waitpoints:rows {waitpoint:id
--          record:text} {* refused:instant}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_suspension(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local u = suspension.read(ctx, id)
  local out = { 1, 'OK', c.state, c.flow or '', c.resume_bytes and suspension.outcome(ctx, id, u) or '' }
  reply.fields(out, u)
  local all = {}
  for wid, text in pairs(wait_record.of(ctx, id).points) do
    all[#all + 1], all[#all + 2] = wid, waitpoint.whole(text, u)
  end
  reply.add(out, all, 2)
  local members = {}
  for i = 1, #all, 2 do members[#members + 1] = id .. ':' .. all[i] end
  local refused = #members > 0 and redis.call('ZMSCORE', keys.refused(ctx.r), unpack(members)) or {}
  for i = 1, #members do out[#out + 1] = refused[i] and reply.int(args.score(refused[i])) or '0' end
  return out
end
