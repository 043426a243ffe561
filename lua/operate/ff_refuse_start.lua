-- ff_refuse_start: a trigger notes that what it starts was refused for an event, with the code of the refusal.
-- Flags:   allow-oom
-- Go:      Engine.RefuseStart
-- Args:    protocol subject:uuid name:name(64) code:ascii(1..64) event:line(1..256)
-- Replies: OK; ALREADY_SATISFIED
-- Errors:  @root invalid_input
local function ff_refuse_start(ctx, q)
  local _, _, _, refused = subject.fields(q.name)
  if redis.call('HEXISTS', keys.trigger_terms(ctx.r, q.subject), q.name) == 0 then return reply.already() end
  redis.call('HSET', keys.trigger_facts(ctx.r, q.subject), refused, q.code .. '\31' .. ctx.t .. '\31' .. q.event)
  return reply.ok()
end
