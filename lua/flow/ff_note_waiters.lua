-- ff_note_waiters: executions note who waits for their ends (lib/wait_others.lua): op + somebody waits, - no longer, x
-- no longer, and the execution is cancelled, with its flow unless the waiter is in that, too. waiter is
-- "<partition>.<execution>", token names its wait. The answer to + is '.', and the waiter will be told; known 1: that
-- was so already. Or it is how the execution has ended: mark and attempt, so that the waiter can be told at once; x
-- when it is gone, and nothing tells how it ended. Repeating the call changes nothing. With op ? it answers likewise
-- and changes nothing.
-- Flags:   allow-oom
-- Go:      Engine.NoteWaiters
-- Args:    protocol items:rows(1..100) {op:+|-|?|x execution:id waiter:ref token:bytes(3..40)}
-- Replies: OK items:rows {mark:text attempt:n? known:flag}
-- Errors:  @root invalid_input
local ff_note = {}

-- add notes with + that somebody waits, and returns '.', or how the execution ended and its last attempt.
function ff_note.add(ctx, x)
  local id = x.execution
  local c = core.read(ctx, id)
  if not c.state then
    local code = purge.read(ctx, id)
    return code and graph.outcomes[code] or 'x', ''
  end
  local mark = graph.outcome(c)
  if mark then return mark, core.attempt(c) end
  if x.op == '+' then
    redis.call('HSET', keys.awaiting(ctx.r, id), x.waiter, x.token)
    if not c.awaited then record.set(ctx, id, 'awaited', '1') end
  end
  return '.', ''
end

-- remove forgets that somebody waited under a token.
function ff_note.remove(ctx, x)
  local id, key = x.execution, keys.awaiting(ctx.r, x.execution)
  if redis.call('HGET', key, x.waiter) ~= x.token then return end
  redis.call('HDEL', key, x.waiter)
  if redis.call('EXISTS', key) == 0 and core.read(ctx, id).awaited then record.clear(ctx, id, 'awaited') end
end

-- cancel cancels an execution that somebody waited for under a token.
function ff_note.cancel(ctx, x)
  local id, partition, waiter = x.execution, wait_others.whole(x.waiter)
  local c = core.read(ctx, id)
  if redis.call('HGET', keys.awaiting(ctx.r, id), x.waiter) ~= x.token then return end
  ff_note.remove(ctx, x)
  if not c.state or core.terminal(c) then return end
  local h = c.flow and graph.head(ctx, c.flow)
  local own = partition == string.match(ctx.r, '(%d+)}$') and core.read(ctx, waiter).flow == c.flow
  if h and not own and (h.st == 'F0' or h.st == 'F1') then
    flow.stop(ctx, h, 'cancel_all', '', ff_note.why)
  else
    flow.cancel(ctx, record.read(ctx, id), id, ff_note.why)
  end
end

ff_note.why = 'nobody waits for it any more'

local function ff_note_waiters(ctx, q)
  local items = q.items
  for i = 1, #items do
    if not wait_others.valid(items[i].token) then return reply.err('invalid_input', 'items: token: of a wait') end
  end

  local out = { 1, 'OK', reply.int(#items) }
  for i = 1, #items do
    local x, mark, attempt, known = items[i], '', '', '0'
    if x.op == '-' then
      ff_note.remove(ctx, x)
    elseif x.op == 'x' then
      ff_note.cancel(ctx, x)
    else
      known = redis.call('HGET', keys.awaiting(ctx.r, x.execution), x.waiter) == x.token and '1' or '0'
      mark, attempt = ff_note.add(ctx, x)
    end
    out[#out + 1], out[#out + 2], out[#out + 3] = mark, attempt, known
  end
  flow.apply(ctx)
  return out
end
