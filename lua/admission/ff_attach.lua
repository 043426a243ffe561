-- ff_attach: says which gates apply to everything that is created in a scope from now on; no gates
-- detaches. With how add they are added to those that are there, with remove taken from them, with set they replace
-- those. A scope is g (everything), n and a namespace, l, namespace and lane, or t, tag key and tag value, joined by
-- the unit separator.
-- Flags:   allow-oom
-- Go:      Engine.ChangeAttached
-- Args:    protocol scope:text gates:text how:set|add|remove
-- Replies: OK gates:text; ALREADY_SATISFIED gates:text
-- Errors:  @root invalid_input
local ff_attach_do = {}

function ff_attach_do.scope(text)
  if not text or #text > 400 then return false end
  local kind, rest = string.match(text, '^(%l)(.*)$')
  local parts = {}
  for part in string.gmatch(rest or '', '\31([^\31]*)') do parts[#parts + 1] = part end
  if kind == 'g' then return text == 'g' end
  if kind == 'n' then return #parts == 1 and args.name(parts[1], 64) end
  if kind == 'l' then return #parts == 2 and args.name(parts[1], 64) and args.name(parts[2], 64) end
  if kind == 't' then return #parts == 2 and args.tag(parts[1]) and #parts[2] <= 256 end
  return false
end

-- names lists the gates of a text.
function ff_attach_do.names(text)
  local list, set = {}, {}
  for g in string.gmatch(text, '[^,]+') do
    list[#list + 1] = g
    set[g] = true
  end
  return list, set
end

-- change is what is attached after a call: the gates, or those that were there with the gates or without them.
function ff_attach_do.change(old, gates, how)
  if how == 'set' then return gates end
  local list, there = ff_attach_do.names(old)
  local given, without = ff_attach_do.names(gates)
  if how == 'add' then
    for i = 1, #given do
      if not there[given[i]] then list[#list + 1] = given[i] end
    end
    without = {}
  end
  local out = {}
  for i = 1, #list do
    if not without[list[i]] then out[#out + 1] = list[i] end
  end
  table.sort(out)
  return table.concat(out, ',')
end

-- gated tells whether there may be a route with gates: one that is not its class's own.
function ff_attach_do.gated(ctx)
  return redis.call('HLEN', keys.routes(ctx.r)) > redis.call('ZCARD', keys.route_log(ctx.r))
end

local function ff_attach(ctx, q)
  local scope, gates, how = q.scope, q.gates, q.how
  if not ff_attach_do.scope(scope) then
    return reply.err('invalid_input', 'scope: g, n namespace, l namespace lane, or t tag value')
  end
  if not gate.valid(gates) then
    return reply.err('invalid_input', 'gates: at most 16 by name and 8 limits of keys')
  end
  local key = keys.attached(ctx.r)
  local old = string.match(redis.call('HGET', key, scope) or '', '^[^ ]*') or ''
  gates = ff_attach_do.change(old, gates, how)
  if old == gates then return reply.already(gates) end
  if not gate.valid(gates) then
    return reply.err('invalid_input', 'gates: with those attached more than 16 by name or 8 limits of keys')
  end
  if gates ~= '' and old == '' and redis.call('HLEN', key) >= 1024 then
    return reply.err('invalid_input', 'scope: at most 1024 have something attached')
  end

  if gates == '' then
    redis.call('HDEL', key, scope)
  else
    redis.call('HSET', key, scope, gates .. ' ' .. ctx.t .. ' ' .. trail.by(ctx))
  end
  local level, all = '1', redis.call('HKEYS', key)
  for i = 1, #all do
    if string.byte(all[i], 1) == 116 then level = '3' elseif level == '1' then level = '2' end
  end
  if #all == 0 and not ff_attach_do.gated(ctx) then
    redis.call('HDEL', ctx.r, 'gates')
    -- it told the tick to look at the outbox
    if redis.call('XLEN', keys.outbox(ctx.r)) > 0 then redis.call('HSET', ctx.r, 'told', '1') end
  else
    redis.call('HSET', ctx.r, 'gates', level)
  end
  return reply.ok(gates)
end
