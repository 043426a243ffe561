-- ff_receive_messages: hands up to max messages of a mailbox to the holder, the first that came first, at most 128
-- KiB but for the first one, and records that as a durable step, so that every later run is handed the same. name is
-- that of the receipt. If none waits, nothing is recorded and the answer is empty, unless why says what to record:
-- that a wait for one is over, and how, or that the handler only looked. The frames that its run has appended so far
-- count as recorded, too. Messages begin the next turn of a run that talks, if its turn was over. busy is what becomes,
-- from now on, of messages to this mailbox while it talks (lib/talk.lua).
-- Flags:   none
-- Go:      Engine.ReceiveMessages
-- Args:    protocol fence name:line(1..125) mailbox:ascii(1..96) max:n(1..100) why:bytes(32)
--          busy:interrupt|refuse?
-- Replies: OK value:text; ALREADY_SATISFIED value:text
-- Errors:  @root @fence invalid_input step_limit_exceeded
local function ff_receive_messages(ctx, q)
  local f, name, box, max, why = q.fence, q.name, q.mailbox, q.max, q.why
  if string.find(why, '[^%l_]') then return reply.err('invalid_input', 'why: at most 32 lower-case letters and _') end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  talk.mind(ctx, c, f.id, q.busy, box)
  local key, step = keys.steps(ctx.r, f.id), mailbox.step(name)
  local stored = c.step_bytes and redis.call('HGET', key, step)
  if stored then return reply.already(stored) end
  local list = mailbox.heads(ctx, c, f.id, box, max)
  if #list == 0 and why == '' then return reply.ok('') end
  local value = mailbox.value(#list == 0 and why or '', list)
  local total = tonumber(c.step_bytes or '0') + #value + #step
  if total > 8388608 then return reply.err('step_limit_exceeded', 'bytes: at most 8388608') end
  if c.step_bytes and steps.full(ctx, f.id) then
    return reply.err('step_limit_exceeded', 'steps: at most 1000')
  end
  if #list > 0 then mailbox.take(ctx, c, f.id, list) end
  record.set(ctx, f.id, 'step_bytes', reply.int(total))
  steps.put(ctx, c, f.id, step, value, f.attempt, ctx.t, '0', nil, stream.recorded(ctx, c, f))
  if #list > 0 then talk.open(ctx, c, f.id) end
  return reply.ok(value)
end
