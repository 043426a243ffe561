-- ff_purge_execution: removes an ended execution with everything that belongs to it. A tombstone keeps its id
-- taken for keep ms (24 h to ten years); its key is free. With very many attempts it takes several calls: more is 1
-- until nothing is left. A member stays until its flow has ended, and the founder of a flow as long as it has other
-- members.
-- Flags:   allow-oom
-- Go:      Engine.PurgeExecution
-- Args:    protocol id:id keep:ms(86400000..315360000000)
-- Replies: OK more:flag; ALREADY_SATISFIED code:code
-- Errors:  @root invalid_input execution_not_found execution_not_terminal flow_open
local function ff_purge_execution(ctx, q)
  local id, keep = q.id, q.keep
  local c = core.read(ctx, id)
  if not c.state then
    local code = purge.read(ctx, id)
    if code then return reply.already(code) end
    return reply.err('execution_not_found')
  end
  if not core.terminal(c) then return reply.err('execution_not_terminal', c.state) end
  if purge.pinned(ctx, c, id) then return reply.err('flow_open', c.flow) end
  local all = purge.run(ctx, c, id, keep)
  flow.apply(ctx)
  return reply.ok(all and '0' or '1')
end
