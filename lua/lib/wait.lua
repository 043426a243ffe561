-- wait: a member that waits for children it made, in one core field: "mode children succeeded others state rest".
-- mode is all, first or success (the first that succeeds); state is m (its children are being made), p or d, decided; rest is cancel or leave, what becomes of
-- the children if the parent ends first. The children are a hash beside it: child -> "mark,attempt,node", and under
-- the name 'name' what the handler calls the wait. It stays until the next one. When a wait is decided, its outcomes become the step
-- '\31c:' .. name, which the next claim brings: so every later pass is told the same, and none has to ask.
local wait = {}

function wait.parse(text)
  local mode, n, s, o, state, rest = string.match(text or '', '^(%l+) (%d+) (%d+) (%d+) (%l) (%l+)$')
  if not mode then return nil end
  return { mode = mode, children = tonumber(n), succeeded = tonumber(s), others = tonumber(o), state = state, rest = rest }
end

function wait.text(w)
  return w.mode .. ' ' .. reply.int(w.children) .. ' ' .. reply.int(w.succeeded) .. ' ' .. reply.int(w.others) ..
      ' ' .. w.state .. ' ' .. w.rest
end

-- count adds an outcome and tells whether that decided the wait.
function wait.count(w, mark)
  if mark == 's' then w.succeeded = w.succeeded + 1 else w.others = w.others + 1 end
  return wait.decide(w)
end

function wait.decide(w)
  if w.state ~= 'p' then return false end
  local ended = w.succeeded + w.others
  if ended >= w.children or (w.mode == 'first' and ended > 0) or (w.mode == 'success' and w.succeeded > 0) then w.state = 'd' end
  return w.state == 'd'
end

-- outcomes is what the handler is told: child, mark, attempt and node of each, an open one with the mark '.'.
function wait.outcomes(ctx, id)
  local v, out = redis.call('HGETALL', keys.children(ctx.r, id)), {}
  for i = 1, #v, 2 do
    if #v[i] == 36 then out[#out + 1] = v[i] .. ',' .. v[i + 1] end
  end
  table.sort(out)
  return table.concat(out, '\31')
end

function wait.step(name) return '\31c:' .. name end

-- remember keeps the outcomes as the step of this wait. Its room was judged when the wait began.
function wait.remember(ctx, c, id, name, value)
  local key, step = keys.steps(ctx.r, id), wait.step(name)
  if redis.call('HEXISTS', key, step) == 1 then return end
  record.set(ctx, id, 'step_bytes', reply.int(tonumber(c.step_bytes or '0') + #step + #value))
  steps.put(ctx, c, id, step, value, core.attempt(c), ctx.t, '0')
end
