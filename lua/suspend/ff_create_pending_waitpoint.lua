-- ff_create_pending_waitpoint: the holder opens a waitpoint before it suspends, so that its token can be handed out;
-- signals that come early are buffered. With a name the waitpoint is recorded as a step, and the next pass of the
-- handler gets the same one. At most 64 are open. With a subject, which stands for the one of that text, it is for an
-- event (lib/expect.lua), and ff_expect_event follows.
-- Flags:   none
-- Go:      Engine.CreatePendingWaitpoint
-- Args:    protocol fence name:line(128) waitpoint:uuid key:line(1..256) kid:kid digest:hex(64) nonce:hex(32)
--          lifetime:ms(1000..604800000) subject:uuid? text:line(128)
-- Replies: OK waitpoint:uuid key:text kid:kid nonce:hex(32) expires:instant?; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input waitpoint_already_exists waitpoint_limit_exceeded step_limit_exceeded
--          hmac_secret_not_initialized kid_not_current
local ff_pend = {}

function ff_pend.answer(make, wid, w) return make(wid, w.key, w.kid, w.nonce, w.expires) end

-- recorded answers a name that a waitpoint was recorded under before.
function ff_pend.recorded(ctx, id, step)
  local wid = steps.waitpoint(ctx, id, step)
  return wid and ff_pend.answer(reply.already, wid, waitpoint.read(ctx, id, wid))
end

local function ff_create_pending_waitpoint(ctx, q)
  local f, name, wid = q.fence, q.name, q.waitpoint
  local w = { state = 'p', key = q.key, kid = q.kid, digest = q.digest, nonce = q.nonce, created = ctx.t,
    expires = reply.int(ctx.now + q.lifetime), signals = '0', matched = '0', bytes = '0' }
  if q.subject ~= '' then w.event = q.subject .. ' ' .. q.text end
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then return answer end
  local step = waitpoint.prefix .. name
  local value = wid .. ' ' .. w.kid .. ' ' .. w.nonce .. ' ' .. w.expires .. ' ' .. w.key .. waitpoint.wanting(w)
  if name ~= '' then
    answer = c.step_bytes and ff_pend.recorded(ctx, f.id, step)
    if answer then return answer end
  end
  local known = waitpoint.read(ctx, f.id, wid)
  if known then
    if known.digest == w.digest and known.key == w.key and waitpoint.open(known) then
      return ff_pend.answer(reply.already, wid, known)
    end
    return reply.err('waitpoint_already_exists', wid)
  end
  if not waitpoint.room(c) then return reply.err('waitpoint_limit_exceeded', 'open waitpoints: at most 64') end
  answer = token.mintable(ctx, w.kid, tonumber(w.expires))
  if answer then return answer end
  local total = tonumber(c.step_bytes or '0') + #step + #value
  if name ~= '' then
    -- its waitpoint is remembered no more
    local old = c.step_bytes and redis.call('HGET', keys.steps(ctx.r, f.id), step)
    if old then total = total - #step - #old end
    if total > 8388608 then return reply.err('step_limit_exceeded', 'bytes: at most 8388608') end
    if c.step_bytes and not old and steps.full(ctx, f.id) then
      return reply.err('step_limit_exceeded', 'steps: at most 1000')
    end
    if old then steps.drop(ctx, f.id, { step }) end
    w.step = f.attempt .. ' ' .. steps.next(ctx, c, f.id) .. (name ~= w.key and ' ' .. name or '')
    record.set(ctx, f.id, 'step_bytes', reply.int(total))
  end

  waitpoint.pend(ctx, c, f.id, wid, w)
  waitpoint.prune(ctx, f.id, {})
  return ff_pend.answer(reply.ok, wid, w)
end
