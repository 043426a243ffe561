-- ff_put_trigger: creates or changes a trigger, by which each event with a subject that has all of its terms starts
-- something (lib/subject.lua). subject stands for namespace and text, the subject's own name. Who reads the definition
-- knows what it says; the same one again changes nothing.
-- Flags:   none
-- Go:      Engine.PutTrigger
-- Args:    protocol subject:uuid namespace:name(64) text:name(128) name:name(64) definition:bytes(1..16384)
--          terms:rows(0..8) {term:hex(32)}
-- Replies: OK; ALREADY_SATISFIED
-- Errors:  @root invalid_input
local function ff_put_trigger(ctx, q)
  local terms, facts = keys.trigger_terms(ctx.r, q.subject), keys.trigger_facts(ctx.r, q.subject)
  local definition, whose = subject.fields(q.name)
  local filter, old = table.concat(q.terms, ','), redis.call('HGET', terms, q.name)
  if old == filter and redis.call('HGET', facts, definition) == q.definition then return reply.already() end
  if not old and redis.call('HLEN', terms) >= subject.most_triggers then
    return reply.err('invalid_input', 'name: at most 100 triggers of a subject')
  end
  if not old and redis.call('ZCARD', keys.triggers(ctx.r)) >= 10000 then
    return reply.err('invalid_input', 'name: at most 10000 triggers in a partition')
  end

  local row = old and subject.row(ctx, q.subject, q.name)
    or table.concat({ q.namespace, q.text, q.name, q.subject }, '\31')
  redis.call('HSET', terms, q.name, filter)
  redis.call('HSET', facts, definition, q.definition, whose, ctx.t .. '\31' .. row .. '\31' .. trail.by(ctx))
  redis.call('ZADD', keys.triggers(ctx.r), '0', row)
  return reply.ok()
end
