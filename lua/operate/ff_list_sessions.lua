-- ff_list_sessions: the sessions of a partition that are open, or dead and still hold something, up to limit a call,
-- in the order in which the tick looks at them. next is the cursor for the call after this one, '' at the end.
-- Flags:   no-writes
-- Go:      Engine.PartitionSessions
-- Args:    protocol after:text limit:n(1..100)
-- Replies: OK now:instant next:text sessions:rows {session:text expiry:instant dead:flag why:text held:n}
-- Errors:  @root invalid_input
local function ff_list_sessions(ctx, q)
  local page, more = registry.page(keys.sessions(ctx.r), q.after, q.limit)
  if not page then return reply.err('invalid_input', 'after: no cursor') end
  local next = more and page[#page].score .. ' ' .. page[#page].member or ''
  local out = { 1, 'OK', ctx.t, next, reply.int(#page) }
  for i = 1, #page do
    local id = page[i].member
    local v = redis.call('HMGET', keys.session(ctx.r, id), 'exp', 'dead', 'why')
    out[#out + 1], out[#out + 2] = id, v[1] or '0'
    out[#out + 1], out[#out + 2] = v[2] or '0', v[3] or ''
    out[#out + 1] = reply.int(redis.call('ZCARD', keys.held(ctx.r, id)))
  end
  return out
end
