-- ff_audit_keys: looks at up to 100 keys that belong to executions or flows, named by area, execution (or flow) and
-- attempt or waitpoint. One whose execution (or flow, or waitpoint) is gone is an orphan, with repair 1 it is
-- removed; one whose execution does not know that it has it is noted in the core. The area y has keys of callers
-- (lua/lib/keyed.lua), named by the key instead of an execution. Frames that forks have, and the references to them
-- (area fk), outlive their execution (lua/lib/base.lua). The areas ds, dl, dp and df are those of written streams
-- (lua/lib/written.lua), of one that is only kept for forks as long as it has one.
-- Flags:   allow-oom
-- Go:      Engine.AuditKeys
-- Args:    protocol repair:flag keys:rows(1..100) {area:text id:id of:bytes(36)}
-- Replies: OK findings
-- Errors:  @root invalid_input
local ff_keys = {}

-- single areas have one key an execution; several have one for each attempt or waitpoint.
ff_keys.single = { i = keys.input, t = keys.tags, k = keys.steps, kl = keys.step_log, a = keys.attempts,
  e = keys.history, u = keys.waits, us = keys.satisfied, um = keys.matched, mb = keys.messages, mk = keys.marks,
  aw = keys.awaiting, m = keys.links, fi = keys.incoming, fo = keys.outgoing, fc = keys.children,
  fx = keys.members, fu = keys.roots, ft = keys.flow_tags, y = keys.keyed, fk = keys.references,
  ds = keys.written, dl = keys.written_log, dp = keys.producers, df = keys.forks }
ff_keys.several = { o = keys.result, f = keys.stream, fm = keys.meta, fd = keys.deltas, fl = keys.live,
  fs = keys.summary, fe = keys.runs, lg = keys.log, g = keys.signals, gd = keys.delivered }

-- flows are the areas that belong to a flow.
ff_keys.flows = { fx = true, fu = true, ft = true }

-- flags are the fields by which a core knows of a key.
ff_keys.flags = { t = 'has_tags', u = 'had_waits', aw = 'awaited' }

-- judge returns what is wrong with the arguments of one key.
function ff_keys.judge(area, of)
  if ff_keys.single[area] then return of ~= '' and 'keys: of: an area of one key an execution' or nil end
  if not ff_keys.several[area] then return 'keys: area: no such one' end
  if of == '' then return 'keys: of: an attempt or a waitpoint' end
  return nil
end

-- keyed: the record of a key names an execution that is there and names the key.
function ff_keys.keyed(ctx, name)
  local key = keys.keyed(ctx.r, name)
  local text = keyed.owner(key)
  local id = text and string.match(text, '^%S+') or ''
  if not text and redis.call('EXISTS', key) == 0 or redis.call('EXISTS', keys.aside(ctx.r, 'x:' .. id)) == 1 then
    return
  end
  local h = graph.head(ctx, id)
  if h and h.uk == name then return end
  local own, named = keyed.split(ctx, core.read(ctx, id), id)
  if own == key and keyed.names(text, named) then return end
  if audit.note(ctx, 'orphan', 'y', name, 'its execution is gone') then redis.call('UNLINK', key) end
end

-- logs are the areas of frames.
ff_keys.logs = { f = true, fm = true, fd = true, fl = true, fs = true, fe = true }

-- referred tells whether a fork has frames of an attempt.
function ff_keys.referred(ctx, id, of) return redis.call('HEXISTS', keys.references(ctx.r, id), of) == 1 end

-- fork tells whether a fork is there, or was set aside, and may be put back.
function ff_keys.fork(ctx, id)
  local c = core.read(ctx, id)
  return c.base or c.damaged or redis.call('EXISTS', keys.aside(ctx.r, 'x:' .. id)) == 1
end

-- references: every fork that has frames of an execution is there. Without any, nothing refers to these frames.
function ff_keys.references(ctx, id)
  local key, left, gone, lost = keys.references(ctx.r, id), 0, {}, {}
  local v = redis.call('HGETALL', key)
  for i = 1, #v, 2 do
    if #v[i] == 36 and ff_keys.fork(ctx, v[i]) then
      left = left + 1
    elseif #v[i] == 36 then
      lost[#lost + 1] = v[i]
    elseif string.find(v[i + 1], ' x', 1, true) then
      base.frames(ctx.r, id, v[i], gone)
    end
  end
  if #v == 0 or #lost == 0 and left > 0 then return end
  if not audit.note(ctx, 'orphan', 'fk', id, 'forks that had its frames are gone') then return end
  if #lost > 0 then redis.call('HDEL', key, unpack(lost)) end
  if left > 0 then return end
  gone[#gone + 1] = key
  for i = 1, #gone, 500 do redis.call('UNLINK', unpack(gone, i, math.min(i + 499, #gone))) end
end

-- filed: a written stream that expires is filed under that time, or an earlier one.
function ff_keys.filed(ctx, c)
  local due, at = audit.whole(c.du), redis.call('ZSCORE', keys.streams_due(ctx.r), c.id)
  if not due or at and audit.score(at) <= due then return end
  if audit.note(ctx, at and 'score' or 'missing', 'dsdue', c.id, (at or 'nowhere') .. ', belongs at ' .. c.du) then
    timers.put(ctx, timers.streams, due, c.id)
  end
end

-- forks: each fork of a written stream is there, and names it.
function ff_keys.forks(ctx, id)
  local list, lost = redis.call('SMEMBERS', keys.forks(ctx.r, id)), {}
  for i = 1, #list do
    if redis.call('HGET', keys.written(ctx.r, list[i]), 's') ~= id then lost[#lost + 1] = list[i] end
  end
  if #lost > 0 and audit.note(ctx, 'orphan', 'df', id, 'forks of it are gone') then
    for i = 1, #lost, 500 do
      redis.call('SREM', keys.forks(ctx.r, id), unpack(lost, i, math.min(i + 499, #lost)))
    end
  end
end

-- written looks at one key of a written stream.
function ff_keys.written(ctx, area, id)
  local key, c = ff_keys.single[area](ctx.r, id), written.read(ctx, id)
  if redis.call('EXISTS', key) == 0 then return end
  if not c and area == 'ds' then return audit.broken(ctx, 'ds', id, 'stream without a name') end
  if not c then
    if redis.call('EXISTS', keys.written(ctx.r, id)) == 0 and
        audit.note(ctx, 'orphan', area, id, 'its stream is gone') then
      redis.call('UNLINK', key)
    end
    return
  end
  if area == 'df' then ff_keys.forks(ctx, id) end
  if area ~= 'ds' then return end
  if c.g then
    if not written.forked(ctx, id) and audit.note(ctx, 'orphan', 'ds', id, 'it is kept for forks that are gone') then
      written.drop(ctx, c)
    end
    return
  end
  ff_keys.filed(ctx, c)
  local source = c.s and written.read(ctx, c.s)
  if c.s and not source then return audit.broken(ctx, 'ds', id, 'its source is gone') end
  if source and redis.call('SISMEMBER', keys.forks(ctx.r, c.s), id) == 0 and
      audit.note(ctx, 'missing', 'df', c.s, 'a fork of it: ' .. id) then
    redis.call('SADD', keys.forks(ctx.r, c.s), id)
  end
end

function ff_keys.look(ctx, area, id, of)
  if string.byte(area, 1) == 100 then return ff_keys.written(ctx, area, id) end
  if area == 'y' then return ff_keys.keyed(ctx, id) end
  if area == 'fk' then return ff_keys.references(ctx, id) end
  local key = of == '' and ff_keys.single[area](ctx.r, id) or of ~= '' and ff_keys.several[area](ctx.r, id, of)
  local waitpoint_gone = (area == 'g' or area == 'gd') and not wait_record.of(ctx, id).points[of]
  local flag = ff_keys.flags[area]
  local owner = ff_keys.flows[area] and keys.flow or keys.core
  local known = redis.call('EXISTS', owner(ctx.r, id)) == 1
  -- it belongs to what was set aside
  if not known and redis.call('EXISTS', keys.aside(ctx.r, 'x:' .. id)) == 1 then return end
  if known and not waitpoint_gone and not flag or redis.call('EXISTS', key) == 0 then return end
  if not known and ff_keys.logs[area] and ff_keys.referred(ctx, id, of) then return end
  local member = of == '' and id or id .. ':' .. of
  if not known or waitpoint_gone then
    local gone = known and 'waitpoint' or ff_keys.flows[area] and 'flow' or 'execution'
    if audit.note(ctx, 'orphan', area, member, 'its ' .. gone .. ' is gone') then redis.call('UNLINK', key) end
  elseif not core.read(ctx, id)[flag] and audit.note(ctx, 'flag', 'x', id, flag .. ' is missing') then
    record.set(ctx, id, flag, '1')
  end
end

local function ff_audit_keys(ctx, q)
  audit.begin(ctx, q.repair)
  local list = q.keys
  for i = 1, #list do
    local wrong = ff_keys.judge(list[i].area, list[i].of)
    if wrong then return reply.err('invalid_input', wrong) end
  end
  for i = 1, #list do ff_keys.look(ctx, list[i].area, list[i].id, list[i].of) end
  return audit.finish(ctx, { 1, 'OK' })
end
