-- ff_read_steps: what is known of the durable steps of an execution, in no order: those that are recorded, the
-- answers of waits, waitpoints and outcomes of children among them, and those whose function returned the error that
-- an attempt failed with, unless a replay has dropped the steps since. With a name it is that recorded step alone,
-- and its value; a waitpoint that is recorded has the prefix of one.
-- Flags:   no-writes
-- Go:      Engine.readSteps
-- Args:    protocol id:id name:bytes(131)
-- Replies: OK recorded:rows {name:text attempt:n at:instant took:ms bytes:n} failed:rows {name:text attempt:n
--          at:instant took:ms reason:text} [value:text]
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local ff_list = {}

-- add tells of one step. text is what the log says; a step without it is told of as the first attempt's.
function ff_list.add(out, name, text, bytes)
  local attempt, at, took = string.match(text or '', '^(%d+) (%d+) (%d+)')
  local row = { name, attempt or '1', at or '0', took or '0', reply.int(bytes) }
  for i = 1, #row do out[#out + 1] = row[i] end
end

-- last is the answer of the last suspension, as long as it is no step yet and no receipt stands for it: name, value
-- and what the log will tell of it.
function ff_list.last(ctx, c, id)
  local u = c.resume_bytes and suspension.read(ctx, id) or {}
  if not u.name or redis.call('HEXISTS', keys.steps(ctx.r, id), suspension.memo .. u.name) == 1 then return nil end
  if condition.of_mailbox(u.condition) and redis.call('HEXISTS', keys.steps(ctx.r, id), mailbox.step(u.name)) == 1 then
    return nil
  end
  local attempt, at, took = suspension.span(ctx, u)
  return suspension.memo .. u.name, suspension.outcome(ctx, id, u), attempt .. ' ' .. at .. ' ' .. took
end

-- recorded adds the recorded steps.
function ff_list.recorded(ctx, c, id, out)
  local names, told, sizes = {}, nil, nil
  if c.step_bytes then names, told, sizes = steps.list(ctx, id) end
  local place = #out + 1
  local last, value, text = ff_list.last(ctx, c, id)
  out[place] = reply.int(#names + (last and 1 or 0))
  for i = 1, #names do ff_list.add(out, names[i], told[names[i]], sizes[names[i]]) end
  if last then ff_list.add(out, last, text, #value) end
end

-- failed adds the steps with which attempts failed.
function ff_list.failed(ctx, c, id, out)
  local v, stored, place, n = redis.call('HGETALL', keys.attempts(ctx.r, id)), {}, #out + 1, 0
  for i = 1, #v, 2 do stored[v[i]] = v[i + 1] end
  out[place] = '0'
  local _, first = chain.of(c)
  first = math.max(first, tonumber(c.dropped_attempts or '0') + 1)
  for field, text in pairs(stored) do
    local attempt = string.match(field, '^(%d+)s$')
    if attempt and tonumber(attempt) >= first then
      local took, name = string.match(text, '^(%d+) (.+)$')
      local ended = pack.split(stored[attempt] or '', '\31')[3]
      local row = { name or '', attempt, ended or '0', took or '0', stored[attempt .. 'r'] or '' }
      for i = 1, #row do out[#out + 1] = row[i] end
      n = n + 1
    end
  end
  out[place] = reply.int(n)
end

local function ff_read_steps(ctx, q)
  local id, name = q.id, q.name
  local own = string.sub(name, 1, 3) == waitpoint.prefix and string.sub(name, 4) or name
  if name ~= '' and not steps.name(own) then
    return reply.err('invalid_input', 'name: at most 128 bytes, another first byte')
  end
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  if c.purged_until then return reply.err('result_purged', c.state) end
  local out = { 1, 'OK' }
  if name == '' then
    ff_list.recorded(ctx, c, id, out)
    ff_list.failed(ctx, c, id, out)
    return out
  end
  local value, log = steps.read(ctx, id, name)
  if not value then return { 1, 'OK', '0', '0' } end
  out[3] = '1'
  ff_list.add(out, name, log, #value)
  out[#out + 1], out[#out + 2] = '0', value
  return out
end
