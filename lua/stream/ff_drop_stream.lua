-- ff_drop_stream: deletes a stream that is written from outside. What its forks have of it stays for them (kept), and
-- its name is taken until the last of them is deleted or has expired. One that is not there is as it shall be.
-- Flags:   allow-oom
-- Go:      Engine.DropStream
-- Args:    protocol id:uuid
-- Replies: OK kept:flag; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input
local function ff_drop_stream(ctx, q)
  local c = written.read(ctx, q.id)
  local state = written.state(ctx, c)
  if state ~= 'live' then return reply.already(state == 'gone' and '1' or '0') end
  local kept = written.forked(ctx, q.id) and '1' or '0'
  written.drop(ctx, c)
  return reply.ok(kept)
end
