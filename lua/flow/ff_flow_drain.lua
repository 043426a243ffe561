-- ff_flow_drain: goes on with what the calls about flows left behind in this partition, oldest first, touching at
-- most 64 members. The tick does the same; a caller in a hurry need not wait for it.
-- Flags:   allow-oom
-- Go:      Engine.DrainFlows
-- Args:    protocol
-- Replies: OK more:flag
-- Errors:  @root invalid_input
local function ff_flow_drain(ctx, argv)
  local more = flow.drain(ctx, 64)
  flow.apply(ctx)
  return reply.ok((more or redis.call('EXISTS', keys.backlog(ctx.r)) == 1) and '1' or '0')
end
