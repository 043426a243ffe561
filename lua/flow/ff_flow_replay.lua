-- ff_flow_replay: replays up to 64 members of a flow, each judged alone as by ff_replay_execution; by which a flow
-- that has ended is open again. An answer is +code, =code (this request has replayed it) or -<code> <detail>. There
-- are fewer answers than members if those have many edges; the others were not looked at.
-- Flags:   none
-- Go:      Engine.ReplayFlow
-- Args:    protocol flow:id request:id steps:text force:flag members:rows(1..64) {id:id}
-- Replies: OK answers:rows {answer:text}
-- Errors:  @root invalid_input flow_not_found
local function ff_flow_replay(ctx, q)
  local id, ids, bad = q.flow, q.members, replay.judge(q)
  if bad then return bad end
  if not graph.head(ctx, id) then return reply.err('flow_not_found') end
  local out, cost = { 1, 'OK', reply.int(#ids) }, 0
  for i = 1, #ids do
    local c = core.read(ctx, ids[i])
    cost = cost + 1 + math.floor(tonumber(c.upstreams or '0') / 80)
    if cost > 64 and i > 1 then
      out[3] = reply.int(i - 1)
      break
    end
    local answer = c.state and c.flow ~= id and reply.err('execution_not_in_flow', ids[i])
      or replay.refuse(ctx, c, ids[i], q)
    if not answer then
      out[#out + 1] = '+' .. replay.run(ctx, c, ids[i], q)
    elseif answer[1] == 1 then
      out[#out + 1] = '=' .. answer[3]
    else
      out[#out + 1] = '-' .. table.concat(answer, ' ', 2)
    end
  end
  flow.apply(ctx)
  return out
end
