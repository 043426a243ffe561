-- ff_put_budget: makes a budget, or with an expected revision changes one. A budget that exists as it is described is
-- ALREADY_SATISFIED, another one of the same name a conflict. A change may free those who wait: they are answered, as
-- "<partition> <route>", and no longer wait here; the same call again answers the same ones.
-- Flags:   none
-- Go:      Engine.PutBudget
-- Args:    protocol name:label expected:n(1..)? !invalid_budget_spec scope:bytes(128) mode:strict|warn
--          on_hard:reject|fail|block on_soft:allow|warn interval:ms(0..315360000000) strict:flag refund:bytes(64)
--          dimensions:rows(0..64) {dimension:dimension hard:n soft:n}
-- Replies: OK revision:n waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_budget_spec budget_conflict budget_not_found
local ff_budget = {}

-- judge returns the limits, or nil and what is wrong.
function ff_budget.judge(q)
  if q.interval > 0 and q.interval < 1000 then return nil, 'interval: 0, or 1000..315360000000 ms' end
  for outcome in string.gmatch(q.refund, '[^,]+') do
    if outcome ~= 'failed' and outcome ~= 'cancelled' and outcome ~= 'expired' then
      return nil, 'refund: failed, cancelled, expired'
    end
  end
  local rows, limits, seen = q.dimensions, {}, {}
  for i = 1, #rows do
    local dim, hard, soft = rows[i].dimension, rows[i].hard, rows[i].soft
    if seen[dim] then return nil, 'dimensions: ' .. dim .. ' twice' end
    if hard > 0 and soft > hard then return nil, 'dimensions: ' .. dim .. ': soft is above hard' end
    seen[dim] = true
    limits[#limits + 1], limits[#limits + 2] = 'h:' .. dim, reply.int(hard)
    limits[#limits + 1], limits[#limits + 2] = 's:' .. dim, reply.int(soft)
  end
  return limits
end

-- again is the reply when nothing is to be changed. It may be the change itself, made again because its reply was lost.
function ff_budget.again(ctx, b)
  return budget.said(ctx, b.name, 'put ' .. b.d.up) or budget.room(ctx, b, reply.already(b.d.up))
end

local function ff_put_budget(ctx, q)
  local name, expected = q.name, q.expected and reply.int(q.expected) or ''
  local interval, strict = reply.int(q.interval), q.strict and '1' or '0'
  local limits, wrong = ff_budget.judge(q)
  if not limits then return reply.err('invalid_budget_spec', wrong) end
  local text = table.concat({ q.scope, q.mode, q.on_hard, q.on_soft, interval, strict, q.refund,
    table.concat(limits, ',') }, '\31')
  local b = budget.read(ctx, name)
  if not b and expected ~= '' then return reply.err('budget_not_found', name) end
  if b and b.d.df == text then return ff_budget.again(ctx, b) end
  if b and expected ~= b.d.up then return reply.err('budget_conflict', name, b.d.up) end

  local key, revision, waiters = keys.budget(ctx.r, name), reply.int(b and tonumber(b.d.up) + 1 or 1), {}
  local by = trail.by(ctx)
  local fields = { 'df', text, 'sc', q.scope, 'md', q.mode, 'hd', q.on_hard, 'sf', q.on_soft, 'iv', interval, 'st',
    strict, 'rf', q.refund, 'up', revision, 'by', by }
  local old = nil
  if b then
    budget.save(ctx, b)
    old = {}
    local stays = {}
    for i = 1, #limits, 4 do stays['w' .. string.sub(limits[i], 2)] = true end
    for field in pairs(b.d) do
      local area = string.sub(field, 1, 2)
      if area == 'h:' or area == 's:' or area == 'w:' and not stays[field] then old[#old + 1] = field end
    end
    if interval == '0' then old[#old + 1] = 'nx' end
  else
    local start = { 'ct', ctx.t, 'ps', ctx.t, 'rc', '0', 'bc', '0', 'bs', '0' }
    for i = 1, #start do fields[#fields + 1] = start[i] end
    redis.call('ZADD', keys.budgets(ctx.r), '0', name)
  end
  if interval ~= '0' and (not b or b.d.iv ~= interval) then
    fields[#fields + 1], fields[#fields + 2] = 'nx', reply.int(ctx.now + q.interval)
  end
  if old then budget.some('HDEL', key, old) end
  for i = 1, #limits do fields[#fields + 1] = limits[i] end
  redis.call('HSET', key, unpack(fields))
  budget.note(ctx, keys.budget_book(ctx.r, name), b and 'changed' or 'created', by, (string.gsub(text, '\31', ' ')))
  if b then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  local out = reply.add(reply.ok(revision), waiters)
  return waiters[1] and budget.say(ctx, name, 'put ' .. revision, out) or out
end
