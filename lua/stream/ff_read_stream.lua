-- ff_read_stream: reads a stream that is written from outside: what it is, and entries behind a position, about so many
-- bytes of them, none with 0. An entry has its end, how many units it has and, behind a space, how many of them at its
-- end the stream does not have; the first may begin before the position. A touch begins its TTL anew.
-- Flags:   allow-oom
-- Go:      Engine.ReadStream
-- Args:    protocol id:uuid after:n touch:flag most:n(0..1048576)
-- Replies: OK media:text made:instant end:n closed:flag ttl:n? expires:n? entries:rows {end:n units:text payload:text}
-- Errors:  @root invalid_input stream_not_found stream_gone corrupt
local function ff_read_stream(ctx, q)
  local c, refusal = written.find(ctx, q.id)
  if not c then return refusal end
  if q.after > c.e then return reply.err('invalid_input', 'after: behind the end') end
  local list = {}
  if q.most > 0 and q.after < c.e then list = written.entries(ctx, q.id, c, q.after, q.most) end
  if not list then return reply.err('corrupt', 'the source of the stream is missing') end
  if q.touch then written.touch(ctx, c) end
  return reply.add(reply.ok(written.about(c)), list, 3)
end
