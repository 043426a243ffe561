-- ff_flow_list: the flows of a partition by when they were created, a page at a time.
-- Flags:   no-writes
-- Go:      Engine.ListFlows
-- Args:    protocol newest:flag score:score? member:bytes(128) limit:n(1..100)
-- Replies: OK now:instant size:n more:flag flows:rows {member:text created:instant state:code? seal:text
--          namespace:text kind:text released:instant? ended:instant? members:n? failing:n? waiting_children:n?
--          waiting:n? delayed:n? active:n? suspended:n? completed:n? failed:n? cancelled:n? expired:n? skipped:n?}
-- Errors:  @root invalid_input
local function ff_flow_list(ctx, q)
  local cursor = listing.cursor(q.score, q.member)
  if cursor == false then return reply.err('invalid_input', 'score: with a member, or neither') end
  local page, more, size = listing.page(keys.flows(ctx.r), cursor, q.newest, q.limit)
  local out = { 1, 'OK', ctx.t, reply.int(size), more and '1' or '0', reply.int(#page) }
  for i = 1, #page do
    out[#out + 1], out[#out + 2] = page[i].member, page[i].score
    local v = redis.call('HMGET', keys.flow(ctx.r, page[i].member), 'st', 'sl', 'ns', 'kd', 'rl', 'en', 'nn', 'lv',
      'mb', 'mw', 'md', 'ma', 'mu', 'ms', 'mf', 'mc', 'me', 'mk')
    for f = 1, 18 do out[#out + 1] = v[f] or '' end
  end
  return out
end
