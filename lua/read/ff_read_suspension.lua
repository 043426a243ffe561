-- ff_read_suspension: the flow of an execution, '' if it is in none; its current suspension, or its last one, what
-- that told the handler if it was resumed; if a handler made it, its line: itself and those above it by the nodes that
-- they are, up to the one that no handler made; and every waitpoint that is still known, with the second in which a
-- token was last refused for each (0: none lately).
-- Flags:   no-writes
-- Go:      Engine.ReadSuspension
-- Args:    protocol id:id
-- Replies: OK code:code flow:uuid? outcome:text record:rows {field:text value:text} line:rows {id:id
--          node:text} waitpoints:rows {waitpoint:id record:text} {* refused:instant}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local ff_suspension = {}

-- line looks at no more than 32 of them. A child has told first of all who waits for it (lib/member.lua).
function ff_suspension.line(ctx, id, c)
  local out = {}
  while c.flow and #out < 64 do
    local up = links.dependants(ctx, id, 0, 1)[1]
    if not up or string.byte(up, 1) ~= 119 then break end -- w
    out[#out + 1], out[#out + 2] = id, c.node or ''
    id = string.sub(up, 2)
    c = core.read(ctx, id)
  end
  if #out > 0 then out[#out + 1], out[#out + 2] = id, c.node or '' end
  return out
end

local function ff_read_suspension(ctx, q)
  local id = q.id
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  local u = suspension.read(ctx, id)
  local out = { 1, 'OK', c.state, c.flow or '', c.resume_bytes and suspension.outcome(ctx, id, u) or '' }
  reply.fields(out, u)
  reply.add(out, ff_suspension.line(ctx, id, c), 2)
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
