-- talk: the turns of a run that talks, as an agent does: it says things, in steps, until its turn is over, and a
-- message begins the next one. Fields of the record:
--   turn   number of the last step before the turn, and " over" behind it once it is over
--   stop   "<request>,<who>,<why>" joined by the unit separator: a stop that the run has not heeded yet, with + before
--          it once it has ended a pause or a wait: it does that once, so that a handler that is no agent is not kept
--          from waiting for ever
--   busy   "<mode> <mailbox>": what becomes of a message while it talks
-- Without turn it is in its first one, which began before any step. The end of the execution, and another input, clear
-- all three.
local talk = {}

local US = '\31'

-- turn is the number of the last step before the present turn, and whether that is over.
function talk.turn(c)
  local order, over = string.match(c.turn or '0', '^(%d+)(.*)$')
  return tonumber(order or '0'), over == ' over'
end

-- idle tells whether a run has nothing to say: its turn is over, or it waits for a message and nothing else.
function talk.idle(ctx, c, id)
  local _, over = talk.turn(c)
  return over or core.suspended(c) and condition.of_mailbox(suspension.read(ctx, id).condition) ~= nil
end

-- pending is the stop that waits: its request, '' for none, who asked and why.
function talk.pending(c)
  local request, by, why = string.match(c.stop or '', '^%+?([^\31]*)\31([^\31]*)\31(.*)$')
  return request or '', by or '', why or ''
end

-- ask makes a stop wait.
function talk.ask(ctx, id, request, by, why) record.set(ctx, id, 'stop', table.concat({ request, by, why }, US)) end

-- hurries tells whether a stop waits that is to end a pause or a wait, and notes that it has.
function talk.hurries(ctx, id)
  local stop = record.read(ctx, id).stop
  if not stop or string.byte(stop, 1) == 43 then return false end -- +
  record.set(ctx, id, 'stop', '+' .. stop)
  return true
end

-- resume lets a suspended run go on that is to heed a stop.
function talk.resume(ctx, id)
  local c = record.read(ctx, id)
  local _, by, why = talk.pending(c)
  suspension.resume(ctx, c, id, suspension.read(ctx, id), { reason = 'resumed_by_operator', cause = 'operator',
    trigger = 'stop', by = by, why = why, delay = 0 })
end

-- parked looks at a run that has just suspended: one that waits for a message, and for nothing else, is idle, so that
-- a stop has come too late; any other goes on.
function talk.parked(ctx, id, condition_)
  if not record.read(ctx, id).stop then return end
  if condition.of_mailbox(condition_) then
    record.clear(ctx, id, 'stop')
  elseif talk.hurries(ctx, id) then
    talk.resume(ctx, id)
  end
end

-- close ends the turn.
function talk.close(ctx, c, id)
  local order = talk.turn(c)
  record.set(ctx, id, 'turn', reply.int(order) .. ' over')
end

-- open begins the next turn, behind the last step, if one is over.
function talk.open(ctx, c, id)
  local _, over = talk.turn(c)
  if over then record.set(ctx, id, 'turn', record.read(ctx, id).step_order or '0') end
end

-- mind notes what becomes of messages to a mailbox while the run talks; '' changes nothing.
function talk.mind(ctx, c, id, mode, box)
  local text = mode .. ' ' .. box
  if mode ~= '' and c.busy ~= text then record.set(ctx, id, 'busy', text) end
end

-- shut tells whether a mailbox takes no message now.
function talk.shut(ctx, c, id, box) return c.busy == 'refuse ' .. box and not talk.idle(ctx, c, id) end

-- told tells the holder of a message, if it wants to hear of it while it talks.
function talk.told(ctx, c, id, box, number)
  if c.state == 'A1' and c.busy == 'interrupt ' .. box then
    session.lost(ctx, c.session, id, c.epoch, 'message:' .. number)
  end
end

-- back has a run go on from a step again, by its number: that is in a turn that is not over, and nobody has stopped it.
function talk.back(ctx, c, id, order)
  if c.stop then record.clear(ctx, id, 'stop') end
  local before = talk.turn(c)
  record.set(ctx, id, 'turn', reply.int(math.min(core.terminal(c) and order or before, order - 1)))
end

-- ended forgets all of it.
function talk.ended(ctx, c, id)
  if c.turn or c.stop or c.busy then record.clear(ctx, id, 'turn', 'stop', 'busy') end
end
