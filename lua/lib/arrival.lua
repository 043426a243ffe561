-- arrival: what meets a part of a condition without being a signal: a message (M), and that enough children have
-- ended (K). Such a part stays met: a message waits until the handler takes it, and a wait for children is decided
-- once.
local arrival = {}

-- begin meets the parts that are there already when a suspension begins; plan is what early signals made of it. It
-- returns the plan.
function arrival.begin(ctx, c, id, nodes, plan, decided)
  local state = nil
  for i = 1, #nodes do
    local n = nodes[i]
    if n.op == 'K' and decided or n.op == 'M' and mailbox.waiting(ctx, c, id, n.box) then
      state = state or plan.state or { counts = {}, tokens = {}, changed = {} }
      state.counts[i], state.changed[i] = 1, true
    end
  end
  if not state or plan.satisfied then return plan end
  if not plan.state then plan = { bytes = 0, signals = 0 } end
  plan.state, plan.satisfied = state, condition.complete(state, nodes)
  return plan
end

-- came meets the parts of an open suspension that an arrival is for: op and, of a mailbox, its name. If that was the
-- last part, the execution goes on; e says why, as for suspension.resume.
function arrival.came(ctx, c, id, op, box, e)
  local u = suspension.read(ctx, id)
  if u.closed_at then return end
  local nodes = condition.parse(u.condition, #suspension.list(u))
  if not nodes then return end -- an audit tells
  local state, met = { counts = {} }, false
  for i = 1, #nodes do
    local field = 'n' .. reply.int(i)
    if nodes[i].op == op and nodes[i].box == box and not u[field] then u[field], met = '1', true end
    state.counts[i] = tonumber(u[field])
  end
  if not met then return end
  if condition.complete(state, nodes) then
    suspension.resume(ctx, c, id, u, e)
  else
    waits.touch(ctx, id)
  end
end

-- children meets the part that waits for enough children.
function arrival.children(ctx, c, id)
  arrival.came(ctx, c, id, 'K', nil, { reason = 'resumed', cause = 'children', trigger = 'children' })
end
