-- ff_check_holds: tells a gate whether holds it admitted are still held: the execution runs under that epoch or is
-- granted; gone, it does not; never, it does not and never ran: its grant was returned, or is over and taken back by
-- this call, of which its other gates hear through the outbox. Epoch 0 is a share, held while the execution lasts.
-- Flags:   allow-oom
-- Go:      Engine.CheckHolds
-- Args:    protocol holds:rows(1..100) {id:text epoch:text}
-- Replies: OK answers:rows {answer:held|gone|never}
-- Errors:  @root invalid_input
local function ff_check_holds(ctx, q)
  local holds, out = q.holds, { 1, 'OK', reply.int(#q.holds) }
  for i = 1, #holds do
    local id, epoch = holds[i].id, holds[i].epoch
    local c, answer = core.read(ctx, id), 'gone'
    if epoch == '0' then
      answer = c.state and not core.terminal(c) and 'held' or 'gone'
    elseif c.state and (c.state == 'A1' or c.state == 'A3') and c.epoch == epoch then
      answer = 'held'
    elseif c.state and core.granted(c) and c.grant_epoch == epoch then
      answer = 'held'
      if tonumber(c.grant_deadline or '0') <= ctx.now then
        settle.ungrant(ctx, c, id) -- the other gates of its route are told, too
        answer = 'never'
      end
    elseif c.state and tonumber(c.epoch or '0') < (args.int(epoch, 0, 9007199254740991) or 0) then
      answer = 'never' -- epochs grow: it was never a lease
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
