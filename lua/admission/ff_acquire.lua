-- ff_acquire: a call to a service asks the gate of the service before it is made, and says how it ended after it
-- (lib/service.lua). A call is known by the execution, the epoch of its lease and its number under that. acquire lets
-- it through, or tells its place in line, how many wait, and in how many ms to ask again: with stay from the slot,
-- where it has waited for so many ms, else after it was away. An execution has one place in the line of a service.
-- settle says what was used, instead of the estimate; release, that it was not made; refused, that the service refused
-- it (status 429) and is closed for everybody for the pause, 0 = by its own rule. Each is done once. over: the lease is
-- over and nobody said. What a service does not measure is not looked at; of requests it is 1 if they are not said.
-- Executions that are answered in wakes are away, and their turn is near.
-- Flags:   none
-- Go:      Engine.Acquire
-- Args:    protocol name:service how:acquire|settle|release|refused|over execution:ref epoch:n(1..) number:n(1..)
--          namespace:name(64) priority:int since:n waited:ms(0..3600000) pause:ms(0..3600000)
--          amounts:rows(0..8) {dimension:dimension !invalid_delta estimate:n used:n}
-- Replies: OK admitted:flag stay:flag retry:ms place:n waiting:n wakes:rows {execution:ref}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta gate_not_found
local function ff_acquire(ctx, q)
  if q.priority < -1000000 or q.priority > 1000000 then
    return reply.err('invalid_input', 'priority: -1000000..1000000')
  end
  local s, bad = service.read(ctx, q.name, q.namespace)
  if not s then return bad end
  q.hold = q.execution .. ':' .. reply.int(q.epoch) .. '.' .. reply.int(q.number)
  q.estimate, q.used = {}, {}
  for i = 1, #q.amounts do
    local x = q.amounts[i]
    q.estimate[x.dimension], q.used[x.dimension] = x.estimate, x.used
  end
  if q.how == 'acquire' then
    local dim, most = service.large(s, q.estimate)
    if dim then
      return reply.err('invalid_input', 'estimate: ' .. dim .. ': a minute has ' .. reply.int(most))
    end
    local out = service.acquire(ctx, s, q, q.estimate)
    local rest = { out.admitted and '1' or '0', out.stay and '1' or '0', reply.int(out.admitted and 0 or out.retry),
      reply.int(out.admitted and 0 or out.place), s.p.wn or '0' }
    return reply.add(out.already and reply.already(unpack(rest)) or reply.ok(unpack(rest)), out.wakes)
  end
  local done, wakes = service.finish(ctx, s, q)
  local rest = { '0', '0', '0', '0', s.p.wn or '0' }
  return reply.add(done and reply.ok(unpack(rest)) or reply.already(unpack(rest)), wakes)
end
