-- ff_flow_members: members of a flow in the order in which they came, so that a member comes after those it depends
-- on: up to limit with a number from next on. With edges 1 each brings the edges into it, upstream and
-- "mark,attempt,input" (lib/group.lua). A page may be shorter than its limit; next is -1 behind the last one. A
-- member without a core has an empty code. started is when its last attempt began.
-- Flags:   no-writes
-- Go:      Engine.FlowMembers
-- Args:    protocol flow:id next:n(0..10000000) limit:n(1..100) edges:flag
-- Replies: OK next:int members:rows {id:uuid number:n node:text code:code? route:text attempt:n? category:text
--          started:instant? ended:instant? group:text wait:text edges:rows {upstream:uuid edge:text}} routes:rows
--          {route:n(1..) value:text}
-- Errors:  @root invalid_input flow_not_found
local function ff_flow_members(ctx, q)
  local id, limit = q.flow, q.limit
  if not graph.head(ctx, id) then return reply.err('flow_not_found') end
  local list = redis.call('ZRANGEBYSCORE', keys.members(ctx.r, id), reply.int(q.next), '+inf', 'WITHSCORES',
    'LIMIT', '0', reply.int(limit + 1))
  local out, routes, cost, count, after = { 1, 'OK', '-1', '' }, {}, 0, 0, '-1'
  local ids = {}
  for i = 1, #list, 2 do ids[#ids + 1] = list[i] end
  links.load(ctx, ids, true)
  for i = 1, #list, 2 do
    local number = reply.int(args.score(list[i + 1]))
    if count == limit or cost > 1000 then
      after = number
      break
    end
    local c, g = core.read(ctx, list[i]), links.group(ctx, list[i])
    out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4], out[#out + 5] = list[i], number, c.node or '',
      c.state or '', c.route or ''
    out[#out + 1] = core.attempt(c)
    out[#out + 1], out[#out + 2], out[#out + 3] = c.failure_category or '', core.began(c) or '', c.ended_at or ''
    out[#out + 1], out[#out + 2] = g and group.text(g) or '', c.children_wait or ''
    if c.route and not routes[c.route] then
      routes[c.route] = true
      routes[#routes + 1] = c.route
    end
    local edges = q.edges and g and links.edges(ctx, list[i]) or {}
    reply.add(out, edges, 2)
    cost, count = cost + #edges / 2, count + 1
  end
  out[3], out[4] = after, reply.int(count)
  return listing.routes(ctx, out, routes)
end
