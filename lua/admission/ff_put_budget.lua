-- ff_put_budget: makes a budget, or with an expected revision changes one. A budget that exists as it is described is
-- ALREADY_SATISFIED, another one of the same name a conflict. A change may free those who wait: they are answered, as
-- "<partition> <route>", and no longer wait here; the same call again answers the same ones.
-- Flags:   none
-- Go:      Engine.PutBudget
-- Args:    protocol name:label expected:n(1..)? scope:bytes(128) mode:strict|warn onhard:reject|fail|block
--          onsoft:allow|warn interval:ms(0..315360000000) strict:flag refund:text by:bytes(64)
--          dimensions:rows(0..16) {dimension:name(64) hard:n soft:n}
-- Replies: OK revision:n waiters:rows {waiter:text}; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_budget_spec budget_conflict budget_not_found
local ff_budget = {}

ff_budget.modes = { strict = true, warn = true }
ff_budget.hard = { reject = true, fail = true, block = true }
ff_budget.soft = { allow = true, warn = true }

-- judge returns the limits, or nil and what is wrong.
function ff_budget.judge(q, argv)
  if not q.scope or #q.scope > 128 then return nil, 'scope: at most 128 bytes' end
  if not ff_budget.modes[q.mode or ''] then return nil, 'mode: strict or warn' end
  if not ff_budget.hard[q.onhard or ''] then return nil, 'on hard limit: reject, fail or block' end
  if not ff_budget.soft[q.onsoft or ''] then return nil, 'on soft limit: allow or warn' end
  if not (q.interval == '0' or args.int(q.interval, 1000, 315360000000)) then
    return nil, 'reset interval: 0, or 1 s to ten years'
  end
  if q.strict ~= '0' and q.strict ~= '1' then return nil, 'strict dimensions: 0 or 1' end
  for outcome in string.gmatch(q.refund or '', '[^,]+') do
    if outcome ~= 'failed' and outcome ~= 'cancelled' and outcome ~= 'expired' then
      return nil, 'refund: failed, cancelled, expired'
    end
  end
  if not q.refund or #q.refund > 64 then return nil, 'refund: failed, cancelled, expired' end
  if not q.by or #q.by > 64 then return nil, 'by: at most 64 bytes' end
  local rows, behind = args.rows(argv, 12, 0, 64, { 'dimension', 'hard', 'soft' })
  if not rows or argv[behind] then return nil, 'dimensions: at most 64' end
  local limits, seen = {}, {}
  for i = 1, #rows do
    local dim, most = rows[i].dimension, 9007199254740991
    local hard, soft = args.int(rows[i].hard, 0, most), args.int(rows[i].soft, 0, most)
    if not budget.dimension(dim) or seen[dim] then return nil, 'dimension ' .. string.sub(dim, 1, 64) end
    if not hard or not soft then return nil, 'limits of ' .. dim .. ': whole numbers from 0 to 9007199254740991' end
    if hard > 0 and soft > hard then return nil, 'limits of ' .. dim .. ': soft is above hard' end
    seen[dim] = true
    limits[#limits + 1] = 'h:' .. dim
    limits[#limits + 1] = rows[i].hard
    limits[#limits + 1] = 's:' .. dim
    limits[#limits + 1] = rows[i].soft
  end
  return limits
end

-- answer is the reply, with those who are to be woken.
function ff_budget.answer(list, revision, waiters)
  list[#list + 1] = revision
  reply.add(list, waiters)
  return list
end

-- again is the reply when nothing is to be changed. It may be the change itself, made again because its reply was lost.
function ff_budget.again(ctx, b)
  local before, waiters = budget.said(ctx, b.name, 'put ' .. b.d.up), {}
  if before then return before end
  if not budget.exhausted(b) then budget.waiters(keys.budget_waiters(ctx.r, b.name), 256, waiters) end
  return ff_budget.answer({ 1, 'ALREADY_SATISFIED' }, b.d.up, waiters)
end

local function ff_put_budget(ctx, argv)
  local q = args.named(argv, 2, { 'name', 'expected', 'scope', 'mode', 'onhard', 'onsoft', 'interval', 'strict',
    'refund', 'by' })
  local name, expected = budget.name(q.name), q.expected
  if not name then
    return reply.err('invalid_input', 'budget: 1..64 letters, digits, _ . -, a letter or digit first')
  end
  if expected ~= '' and not args.int(expected, 1, 9007199254740991) then
    return reply.err('invalid_input', 'expected revision')
  end
  local limits, wrong = ff_budget.judge(q, argv)
  if not limits then return reply.err('invalid_budget_spec', wrong) end
  local text = table.concat({ q.scope, q.mode, q.onhard, q.onsoft, q.interval, q.strict, q.refund,
    table.concat(limits, ',') }, '\31')
  local b = budget.read(ctx, name)
  if not b and expected ~= '' then return reply.err('budget_not_found', name) end
  if b and b.d.df == text then return ff_budget.again(ctx, b) end
  if b and expected ~= b.d.up then return reply.err('budget_conflict', name, b.d.up) end

  local key, revision, waiters = keys.budget(ctx.r, name), reply.int(b and tonumber(b.d.up) + 1 or 1), {}
  local fields = { 'df', text, 'sc', q.scope, 'md', q.mode, 'hd', q.onhard, 'sf', q.onsoft, 'iv', q.interval, 'st',
    q.strict, 'rf', q.refund, 'up', revision, 'by', q.by }
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
    if q.interval == '0' then old[#old + 1] = 'nx' end
  else
    local start = { 'ct', ctx.t, 'ps', ctx.t, 'rc', '0', 'bc', '0', 'bs', '0' }
    for i = 1, #start do fields[#fields + 1] = start[i] end
    redis.call('ZADD', keys.budgets(ctx.r), '0', name)
  end
  if q.interval ~= '0' and (not b or b.d.iv ~= q.interval) then
    fields[#fields + 1] = 'nx'
    fields[#fields + 1] = reply.int(ctx.now + tonumber(q.interval))
  end
  if old then budget.some('HDEL', key, old) end
  for i = 1, #limits do fields[#fields + 1] = limits[i] end
  redis.call('HSET', key, unpack(fields))
  budget.note(ctx, name, b and 'changed' or 'created', q.by, (string.gsub(text, '\31', ' ')))
  if b then budget.waiters(keys.budget_waiters(ctx.r, name), 256, waiters) end
  local out = ff_budget.answer({ 1, 'OK' }, revision, waiters)
  return waiters[1] and budget.say(ctx, name, 'put ' .. revision, out) or out
end
