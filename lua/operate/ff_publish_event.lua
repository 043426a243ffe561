-- ff_publish_event: an event with a subject (lib/subject.lua): what is to start because of it goes into the outbox, and
-- the event is known for a day, so a repeat publishes nothing and is answered alike. event stands for the subject and
-- the event's own id, digest for its data; another digest under the same id is a conflict. terms are those that its
-- data has. starts is how many triggers it matches, resumes how many waits (lib/expect.lua).
-- Flags:   none
-- Go:      Engine.PublishEvent
-- Args:    protocol subject:uuid event:uuid namespace:name(64) text:name(128) id:line(1..256) digest:hex(64)
--          !payload_too_large payload:bytes(65536) terms:rows(0..1024) {term:hex(32)}
-- Replies: OK starts:n resumes:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input payload_too_large idempotency_conflict too_many_expected
local kept = '86400000' -- ms for which an event is known

local function ff_publish_event(ctx, q)
  local key = keys.published(ctx.r, q.event)
  local digest, starts, resumes = string.match(redis.call('GET', key) or '', '^(%x+) (%d+) (%d+)$')
  if digest == q.digest then return reply.already(starts, resumes) end
  if digest then return reply.err('idempotency_conflict', q.id) end
  local has = subject.has(q.terms)
  local names, waits = subject.matching(ctx, q.subject, has), expect.matching(ctx, q.subject, q.terms, has)
  if not waits then
    return reply.err('too_many_expected', 'waits that one event may concern: at most 1000')
  end

  starts, resumes = reply.int(#names), reply.int(waits.count)
  redis.call('SET', key, q.digest .. ' ' .. starts .. ' ' .. resumes, 'PX', kept)
  if #names + waits.count > 0 then
    local what = { q.event, q.namespace, q.text, q.id, ctx.t, q.payload }
    local entry = { 'p', table.concat(what, '\31') }
    if #names > 0 then subject.start(ctx, q.subject, names, q.id, entry) end
    expect.resume(ctx, q.subject, waits, entry)
    gate.post(ctx, entry)
  end
  return reply.ok(starts, resumes)
end
