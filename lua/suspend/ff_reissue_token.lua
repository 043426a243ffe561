-- ff_reissue_token: gives an open waitpoint a new token, because the old one was lost or its key is about to end, in
-- somebody's name. The old token is dead at once. One that takes an event keeps it: the event comes with it.
-- Flags:   allow-oom
-- Go:      Engine.ReissueToken
-- Args:    protocol id:id waitpoint:uuid kid:kid digest:hex(64) nonce:hex(32)
-- Replies: OK waitpoint:uuid key:text; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input execution_not_found waitpoint_not_found waitpoint_not_open
--          hmac_secret_not_initialized kid_not_current
local function ff_reissue_token(ctx, q)
  local id, wid, kid, digest, nonce = q.id, q.waitpoint, q.kid, q.digest, q.nonce
  local by, refused = trail.named(ctx)
  if not by then return refused end
  local c = core.read(ctx, id)
  if not c.state then return reply.err('execution_not_found') end
  local w = waitpoint.read(ctx, id, wid)
  if not w then return reply.err('waitpoint_not_found') end
  if w.event then return reply.err('invalid_input', 'waitpoint: it takes an event, and has no token for others') end
  if w.digest == digest then return reply.already(wid, w.key) end
  if not waitpoint.open(w) or core.terminal(c) then return reply.err('waitpoint_not_open', w.reason) end
  local answer = token.mintable(ctx, kid, w.expires ~= '' and tonumber(w.expires) or nil)
  if answer then return answer end
  redis.call('ZREM', keys.open(ctx.r, w.kid), id .. ':' .. wid)
  local _, step = waitpoint.step(wid, w)
  w.kid, w.digest, w.nonce = kid, digest, nonce
  waitpoint.save(ctx, id, wid, w)
  waitpoint.index(ctx, id, wid, w)
  waitpoint.resize(ctx, c, id, wid, w, step)
  history.add(ctx, c, id, 'token_reissued', by, w.key)
  return reply.ok(wid, w.key)
end
