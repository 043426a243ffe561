-- ff_check_holds: tells a quota whether holds it admitted are still held: 1 the execution runs under that epoch or is granted, 0 it does not, 2 it does not
-- and never ran: its grant was returned, or is over and taken back by this call, of which its other quotas hear through the outbox.
-- Flags:   allow-oom
-- Go:      Engine.CheckHolds
-- Args:    protocol count {id epoch}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_check_holds(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 100)
  if not count or not argv[2 + 2 * count] or argv[3 + 2 * count] then return reply.err('invalid_input', 'count: 1..100 holds') end
  local out = { 1, 'OK', argv[2] }
  for i = 3, 2 + 2 * count, 2 do
    local c, answer = core.read(ctx, argv[i]), '0'
    if c.s and (c.s == 'A1' or c.s == 'A3') and c.e == argv[i + 1] then
      answer = '1'
    elseif c.s and core.granted(c) and c.ge == argv[i + 1] then
      answer = '1'
      if tonumber(c.gx or '0') <= ctx.now then
        settle.ungrant(ctx, c, argv[i]) -- the other quotas of its route are told, too
        answer = '2'
      end
    elseif c.s and tonumber(c.e or '0') < (args.int(argv[i + 1], 0, 9007199254740991) or 0) then
      answer = '2' -- epochs grow: it was never a lease
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
