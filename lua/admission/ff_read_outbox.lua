-- ff_read_outbox: the oldest entries of a partition's outbox, or those after one ('' from the first), about 100
-- notices (lib/gate.lua says what is in them) or 512 KiB, and how many entries there are in all.
-- Flags:   no-writes
-- Go:      Engine.ReadOutbox
-- Args:    protocol after:text
-- Replies: OK entries:n outbox:rows {entry:text notices:rows {kind:text text:text}}
-- Errors:  @root invalid_input
local function ff_read_outbox(ctx, argv)
  local after = argv[2]
  if not after or after ~= '' and (#after > 41 or not string.find(after, '^%d+%-%d+$')) then
    return reply.err('invalid_input', 'after: the id of an entry')
  end
  local list = redis.call('XRANGE', keys.outbox(ctx.r), after ~= '' and '(' .. after or '-', '+', 'COUNT', '100')
  local out, n, notices, bytes = { 1, 'OK', reply.int(redis.call('XLEN', keys.outbox(ctx.r))), '0' }, 0, 0, 0
  for i = 1, #list do
    local fields = list[i][2]
    if notices > 0 and (notices + #fields / 2 > 200 or bytes > 524288) then break end
    for f = 2, #fields, 2 do bytes = bytes + #fields[f] end
    n, notices = n + 1, notices + #fields / 2
    out[#out + 1] = list[i][1]
    reply.add(out, fields, 2)
  end
  out[4] = reply.int(n)
  return out
end
