-- wait_others: waits for executions that the waiter did not make, in any partition. The waiter has such an execution
-- among its children (lib/wait_children.lua) under its full id "<partition>.<execution>", and in the same list under
-- 'others' a token, by which what it is told is known from what belongs to an earlier wait. The awaited execution keeps
-- who waits: a hash, the waiter's full id -> that token, and the field awaited of its record. So nobody else pays. Both
-- sides put notices into the outbox of their partition (lib/gate.lua), which the maintenance loop delivers at least
-- once:
--   a <awaited, full> <waiter> <token>                    it waits: ff_note_waiters notes that, or answers how it ended
--   n <awaited, full> <waiter> <token>                    it waits no longer
--   k <awaited, full> <waiter> <token>                    likewise, and cancels the awaited one with its flow
--   w <waiter, full> <awaited> <token> <mark>,<attempt>   it has ended: ff_tell_waiters
-- One that is cancelled when nobody waits for it any more has an attempt on the waiter's list: ".,1,<node>".
-- A notice that comes twice or late changes nothing: an entry is told once, and only under the token of its wait.
local wait_others = {}

-- whole splits a full id, nil if it is none.
function wait_others.whole(text)
  local partition, id = string.match(text or '', '^(%d+)%.(.*)$')
  if not partition or not args.int(partition, 0, 65535) or not args.uuid(id) then return nil end
  return partition, id
end

-- token names a wait: the epoch of its holder and the last step before it.
function wait_others.token(c) return (c.epoch or '0') .. '.' .. (c.step_order or '0') end

-- valid tells whether a text is a token.
function wait_others.valid(text) return text and #text <= 40 and string.find(text, '^%d+%.%d+$') ~= nil end

-- notice reads one of the outbox: the full id, the other id, the token, and of "w" mark and attempt. nil if it is none.
function wait_others.notice(kind, text)
  local full, id, token, rest = string.match(text or '', '^(%S+) (%S+) (%S+) ?(.*)$')
  if not wait_others.whole(full) or not args.uuid(id) or not wait_others.valid(token) then return nil end
  if kind ~= 'w' then return rest == '' and full or nil end
  return string.find(rest, '^[sfceknx],%d*$') and full or nil
end

-- expect notes that the awaited execution is to be told who waits.
function wait_others.expect(ctx, full, id, token) gate.note(ctx, 'a', full .. ' ' .. id .. ' ' .. token) end

-- over tells those that have not ended that a wait is over; v is its list.
function wait_others.over(ctx, id, v)
  local token = nil
  for i = 1, #v, 2 do
    if v[i] == 'others' then token = v[i + 1] end
  end
  for i = 1, token and #v or 0, 2 do
    -- .
    if #v[i] > 36 and string.byte(v[i + 1], 1) == 46 then
      gate.note(ctx, string.byte(v[i + 1], 3) == 44 and 'n' or 'k', v[i] .. ' ' .. id .. ' ' .. token)
    end
  end
end

-- leave does that when an execution ends, or waits for something else, before its wait was over.
function wait_others.leave(ctx, c, id)
  -- enough may have ended, and a signal be missing
  local open = core.suspended(c) or string.find(c.children_wait or '', ' [mp] %l+$')
  if not c.children_wait or not open then return end
  local key = keys.children(ctx.r, id)
  if redis.call('HEXISTS', key, 'others') == 1 then wait_others.over(ctx, id, redis.call('HGETALL', key)) end
end

-- ended tells those who wait how an execution ended, and withdraws its own wait. c are its fields before.
function wait_others.ended(ctx, c, id, code)
  wait_others.leave(ctx, c, id)
  if not c.awaited then return end
  local key = keys.awaiting(ctx.r, id)
  local v, how = redis.call('HGETALL', key), graph.outcomes[code] .. ',' .. core.attempt(c)
  for i = 1, #v, 2 do gate.note(ctx, 'w', v[i] .. ' ' .. id .. ' ' .. v[i + 1] .. ' ' .. how) end
  redis.call('UNLINK', key)
  record.clear(ctx, id, 'awaited')
end
