-- ff_flow_describe: the header of a flow, field by field as lib/graph.lua names them, and its tags.
-- Flags:   no-writes
-- Go:      Engine.DescribeFlow
-- Args:    protocol flow:id
-- Replies: OK now:instant fields:rows {name:text value:text} tags:rows {key:tag value:text}
-- Errors:  @root invalid_input flow_not_found result_purged
local function ff_flow_describe(ctx, q)
  local id = q.flow
  local v = redis.call('HGETALL', keys.flow(ctx.r, id))
  if #v == 0 then
    local code = purge.stone(ctx, keys.flow_stone(ctx.r, id))
    if code then return reply.err('result_purged', code) end
    return reply.err('flow_not_found')
  end
  local out = { 1, 'OK', ctx.t, reply.int(#v / 2) }
  for i = 1, #v do out[#out + 1] = v[i] end
  local tags = redis.call('HGETALL', keys.flow_tags(ctx.r, id))
  return reply.add(out, tags, 2)
end
