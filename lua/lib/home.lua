-- home: which one index lists an execution, by its state. A place, of a class of states, has:
--   index   what an audit calls the index
--   key     its sorted set; with by one for each value of that field
--   field   tells where the execution belongs in it; without it score does
--   timer   the set is one of lib/timers.lua
--   put     files the execution; without it the set is written at once
--   take    takes it out, likewise
--   hold    by which number gates know a slot that the execution has, and whether it ran
-- A revoked execution is in no index. One that ended stays where it is until it is purged.
local home = {}

home.places = {
  A1 = { index = 'h', key = keys.held, by = 'session', field = 'claim_number', hold = 'epoch', ran = '1',
    take = function(ctx, c, id) indexes.unhold(ctx, c.session, id) end },
  A3 = { hold = 'epoch', ran = '1', take = function() end },
  G1 = { index = 'h', key = keys.held, by = 'grant_session', field = 'grant_number', hold = 'grant_epoch', ran = '0',
    take = function(ctx, c, id) indexes.unhold(ctx, c.grant_session, id) end },
  R1 = { index = 'q', key = keys.queue, by = 'route', score = function(ctx, c) return lane.score(ctx, c) end,
    put = function(ctx, c, id, score) indexes.enqueue(ctx, c.route, score, id) end,
    take = function(ctx, c, id) indexes.dequeue(ctx, c.route, id) end },
  R2 = { index = 'delayed', key = keys.delayed, field = 'delay_until', timer = timers.delayed },
  R3 = { index = 'blocked', key = keys.blocked, field = 'created_at',
    put = function(ctx, _, id, score) indexes.block(ctx, id, score) end,
    take = function(ctx, _, id) indexes.unblock(ctx, id) end },
  -- since an operator paused it: its history tells; else where it is filed
  R4 = { index = 'paused', key = keys.paused, score = function(ctx, _, id)
    local told, at = history.last(ctx, id, 'paused'), redis.call('ZSCORE', keys.paused(ctx.r), id)
    if told and args.int(told[2], 0, 9007199254740991) then return told[2] end
    local filed = at and args.score(at) or -1
    return filed >= 0 and filed <= ctx.now and reply.int(filed) or ctx.t
  end },
  S = { index = 'parked', key = keys.parked, score = function(ctx, _, id)
    local since = wait_record.of(ctx, id).u.created_at
    return since and args.int(since, 0, 9007199254740991) and since or nil
  end },
  T = { index = 'done', key = keys.done, timer = timers.done, take = function() end,
    score = function(ctx, c) return reply.int(indexes.over(ctx, c, tonumber(c.ended_at))) end },
}

-- nowhere is the place of a state that does not exist, of a damaged record.
home.nowhere = { take = function() end }

-- of is the place of a state.
function home.of(c)
  return home.places[string.sub(c.state, 1, 2)] or home.places[string.sub(c.state, 1, 1)] or home.nowhere
end

-- key is the set that lists an execution.
function home.key(ctx, c)
  local p = home.of(c)
  return p.key(ctx.r, p.by and c[p.by])
end

-- index is what an audit calls that set.
function home.index(c)
  local p = home.of(c)
  return p.by and p.index .. ':' .. c[p.by] or p.index
end

-- score is where an execution belongs there, as text; nil when no record tells.
function home.score(ctx, c, id)
  local p = home.of(c)
  if p.field then return c[p.field] end
  return p.score(ctx, c, id)
end

-- put files an execution there.
function home.put(ctx, c, id, score)
  local p = home.of(c)
  if p.put then
    p.put(ctx, c, id, score)
  elseif p.timer then
    timers.put(ctx, p.timer, tonumber(score), id)
  else
    redis.call('ZADD', home.key(ctx, c), score, id)
  end
end

-- leave takes an execution out, before another index lists it, and tells gates that it has no slot any more. With
-- quiet, an execution that was only granted has none.
function home.leave(ctx, c, id, quiet)
  local p = home.of(c)
  if p.take then p.take(ctx, c, id) else redis.call('ZREM', p.key(ctx.r), id) end
  if p.hold and ctx.gates and not quiet then gate.leave(ctx, c.route, id, c[p.hold], p.ran) end
end

-- ready takes an execution from where its state lists it to where it waits for a claim: in its queue, or delayed until
-- an instant, ms.
function home.ready(ctx, c, id, at)
  home.leave(ctx, c, id)
  if at then timers.put(ctx, timers.delayed, at, id) else indexes.enqueue(ctx, c.route, lane.score(ctx, c), id) end
end

-- promote makes a delayed execution claimable at once.
function home.promote(ctx, c, id)
  local code = core.promoted[c.state]
  home.ready(ctx, c, id)
  record.set(ctx, id, 'state', code)
  record.clear(ctx, id, 'delay_until')
  core.announce(ctx, c, id, code)
end
