-- ff_remove_trigger: forgets a trigger. What was published before starts as it said.
-- Flags:   allow-oom
-- Go:      Engine.RemoveTrigger
-- Args:    protocol subject:uuid name:name(64)
-- Replies: OK; ALREADY_SATISFIED
-- Errors:  @root invalid_input
local function ff_remove_trigger(ctx, q)
  local terms = keys.trigger_terms(ctx.r, q.subject)
  if redis.call('HEXISTS', terms, q.name) == 0 then return reply.already() end
  redis.call('ZREM', keys.triggers(ctx.r), subject.row(ctx, q.subject, q.name))
  redis.call('HDEL', terms, q.name)
  redis.call('HDEL', keys.trigger_facts(ctx.r, q.subject), subject.fields(q.name))
  return reply.ok()
end
