-- ff_check_holds: tells a quota whether holds it admitted are still held: 1 the execution runs under that epoch or is
-- granted, 0 it does not, 2 it does not and never ran: its grant was returned, or is over and taken back by this
-- call, of which its other quotas hear through the outbox.
-- Flags:   allow-oom
-- Go:      Engine.CheckHolds
-- Args:    protocol holds:rows(1..100) {id:text epoch:text}
-- Replies: OK answers:rows {answer:0|1|2}
-- Errors:  @root invalid_input
local function ff_check_holds(ctx, q)
  local holds, out = q.holds, { 1, 'OK', reply.int(#q.holds) }
  for i = 1, #holds do
    local id, epoch = holds[i].id, holds[i].epoch
    local c, answer = core.read(ctx, id), '0'
    if c.state and (c.state == 'A1' or c.state == 'A3') and c.epoch == epoch then
      answer = '1'
    elseif c.state and core.granted(c) and c.grant_epoch == epoch then
      answer = '1'
      if tonumber(c.grant_deadline or '0') <= ctx.now then
        settle.ungrant(ctx, c, id) -- the other quotas of its route are told, too
        answer = '2'
      end
    elseif c.state and tonumber(c.epoch or '0') < (args.int(epoch, 0, 9007199254740991) or 0) then
      answer = '2' -- epochs grow: it was never a lease
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
