-- ff_read_question: what the holder of a token may know: the question of the suspension that its waitpoint belongs
-- to, '' if that has none, or if nothing waits for the waitpoint yet; the state and the key of the waitpoint; the
-- signal that stands as its answer, '' if there is none yet; and until when an answer counts. The token is judged
-- first, presented by its SHA-256; one that opens nothing gets the same answer whatever there is, and leaves no trace.
-- Flags:   no-writes
-- Go:      Engine.ReadQuestion
-- Args:    protocol id:id waitpoint:id !invalid_token digest:hex(64)
-- Replies: OK question:text state:p|a|c|e|x answer:text key:text expires:instant?
-- Errors:  @root invalid_input invalid_token token_expired hmac_secret_not_initialized
local function ff_read_question(ctx, q)
  local id, wid = q.id, q.waitpoint
  local u, w = suspension.read(ctx, id), waitpoint.read(ctx, id, wid)
  local bad = token.verify(ctx, w, q.digest)
  if bad then return bad end
  return reply.ok(w.suspension == u.id and u.question or '', w.state, suspension.answer(ctx, id, wid, w), w.key,
    w.expires)
end
