-- ff_list_holders: the sessions of a partition that may hold something, in the order in which their expiry is filed, with what
-- each holds. A session is found until the tick has seen it dead and taken everything from it.
-- Flags:   no-writes
-- Go:      Engine.listHolders
-- Args:    protocol score member
-- Replies: OK now more count {session score alive expiry held}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_list_holders(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local cursor = listing.cursor(argv, 2)
  if cursor == false then return reply.err('invalid_input', 'cursor: score and member, or neither') end
  local page, more = listing.page(keys.sessions(ctx.r), cursor, false, 256)
  local out = { 1, 'OK', ctx.t, more and '1' or '0', reply.int(#page) }
  for i = 1, #page do
    local s = session.read(ctx, page[i].member)
    out[#out + 1] = page[i].member
    out[#out + 1] = page[i].score
    out[#out + 1] = s.alive and '1' or '0'
    out[#out + 1] = reply.int(s.exp or 0)
    out[#out + 1] = reply.int(redis.call('ZCARD', keys.held(ctx.r, page[i].member)))
  end
  return out
end
