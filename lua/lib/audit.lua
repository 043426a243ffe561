-- audit: what the indexes of a partition must say follows from its records. An audit compares, and with repair 1
-- repairs in the same call, so that it may run at any time. A finding is five slots: kind, index, member, detail, and 1
-- (repaired), 0 (it could be) or - (it cannot). Kinds: missing, score, phantom, retention, flag, orphan, count, record.
local audit = {}

audit.codes = { R1f = true, R1t = true, R1p = true, R1i = true, R1r = true, R2af = true, R2ai = true, R2b = true,
  R2r = true, R2c = true, R3f = true, R3p = true, A1 = true, A3 = true,
  R4f = true, R4t = true, R4p = true, R4i = true, R4r = true, G1f = true, G1t = true, G1p = true, G1i = true,
  G1r = true, S1 = true, S2 = true, S3 = true, S4 = true, S5 = true, S6 = true, S7 = true, S8 = true, T1 = true,
  T2 = true,
  T3 = true, T3n = true, T4 = true, T4n = true, T5 = true, T5n = true }

-- begin reads the argument that every audit has and prepares ctx; it returns what is wrong. Whether there are gates
-- is read from the rows of routes, whatever the root says.
function audit.begin(ctx, repair)
  ctx.repair, ctx.found = repair, {}
  ctx.gates = ctx.gates or '1'
end

local function add(ctx, kind, index, member, detail, healed)
  local f = ctx.found
  f[#f + 1], f[#f + 2], f[#f + 3], f[#f + 4], f[#f + 5] = kind, index, member, detail, healed
end

-- note reports drift; true means that the caller repairs it. The next tick looks at everything then.
function audit.note(ctx, kind, index, member, detail)
  add(ctx, kind, index, member, detail, ctx.repair and '1' or '0')
  if ctx.repair then root.filed(ctx, ctx.now) end
  return ctx.repair
end

-- broken reports what no record tells how to repair.
function audit.broken(ctx, index, member, detail) add(ctx, 'record', index, member, detail, '-') end

-- aside renames a key that cannot be read, so that it stops nobody and somebody may look at it; name is what it was
-- called. What was set aside under that name before goes.
function audit.aside(ctx, key, name, index, member, detail)
  if audit.note(ctx, 'damaged', index, member, detail) then redis.call('RENAME', key, keys.aside(ctx.r, name)) end
end

-- hands tells why nothing of a route is handed out, nil when it is.
function audit.hands(ctx, id)
  if not lane.open(ctx, id) then return 'its lane hands nothing out' end
  if not gate.open(ctx, id) then return 'a gate closed it' end
  return nil
end

-- typed tells whether a key can be used: it is of the type that it should have, or not there, maybe because it was
-- set aside just now.
function audit.typed(ctx, key, name, want)
  ctx.cache.typed = ctx.cache.typed or {}
  if ctx.cache.typed[key] ~= nil then return ctx.cache.typed[key] end
  local is = redis.call('TYPE', key)
  is = is.ok or is
  ctx.cache.typed[key] = is == 'none' or is == want or ctx.repair
  if is == 'none' or is == want then return true end
  audit.aside(ctx, key, name, name, '', 'it is a ' .. is .. ' and no ' .. want)
  return ctx.repair
end

-- finish appends the findings to a reply.
function audit.finish(ctx, out)
  return reply.add(out, ctx.found, 5)
end

-- whole reads a stored number, nil when it is none.
function audit.whole(text) return text and args.int(text, 0, 9007199254740991) end

-- score reads a stored score; one that is no number is where nothing belongs.
function audit.score(text) return args.score(text) or -1 end

-- alarm is when the one alarm of an execution is due, nil when it has none. A revoked one is requeued at once.
function audit.alarm(ctx, c)
  if core.terminal(c) then return nil end
  local due = audit.whole(c.deadline)
  if c.state == 'A3' then return math.min(ctx.now, due or ctx.now) end
  local timer = audit.whole(c.state == 'A1' and c.attempt_deadline or core.suspended(c) and c.suspension_deadline or
    core.granted(c) and c.grant_deadline or nil)
  if timer and (not due or timer < due) then due = timer end
  return due
end
