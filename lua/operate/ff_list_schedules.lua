-- ff_list_schedules: schedules of a partition: those that are due ("due", oldest first, but for the name first ones),
-- all in the order of names after one ("all"), or one ("one"). At most limit, and about 512 KiB; more tells whether
-- some are left. payload is the input of one that is read "whole"; of others it stays, and input is its length.
-- last_flow is the last flow: it is last_id if that is a flow.
-- Flags:   no-writes
-- Go:      Engine.Schedules
-- Args:    protocol which:due|all|one|whole name:bytes(64) limit:n(1..100)
-- Replies: OK now:instant more:flag schedules:rows {name:name(64) revision:n incarnation:n next:instant
--          last_due:instant last_id:text fired:n missed:n from:instant to:instant run:n why:text paused:flag
--          paused_at:instant paused_by:text resumed_at:instant resumed_by:text created:instant updated:instant by:text
--          input:n definition:text last_flow:text payload:text reasons:rows {why:text count:n}}
-- Errors:  @root invalid_input
local ff_schedules = {}

-- names lists what may be shown, one more than the limit.
function ff_schedules.names(ctx, which, name, limit)
  if which == 'one' or which == 'whole' then return { name } end
  local most = reply.int(limit + 1)
  if which == 'due' then
    return redis.call('ZRANGEBYSCORE', keys.schedules(ctx.r), '-inf', ctx.t, 'LIMIT', name, most)
  end
  return redis.call('ZRANGEBYLEX', keys.schedule_names(ctx.r), name == '' and '-' or '(' .. name, '+', 'LIMIT', '0',
    most)
end

-- add appends one record, with its input if it is whole, and returns its size; nil when there is none.
function ff_schedules.add(ctx, name, out, whole)
  local key, wanted = keys.schedule(ctx.r, name), {}
  local all, c, reasons = redis.call('HKEYS', key), {}, {}
  for i = 1, #all do
    if whole or all[i] ~= 'in' then wanted[#wanted + 1] = all[i] end
    if string.sub(all[i], 1, 2) == 'm:' then reasons[#reasons + 1] = all[i] end
  end
  if #wanted == 0 then return nil end
  local values = redis.call('HMGET', key, unpack(wanted))
  for i = 1, #wanted do c[wanted[i]] = values[i] end
  table.sort(reasons)
  local slots = { name, c.rv or '0', c.ic or '0', c.nx or '0', c.lf or '0', c.lx or '', c.fc or '0', c.mc or '0',
    c.mf or '0', c.mt or '0', c.mn or '0', c.mr or '', c.pz or '0', c.pa or '0', c.pb or '', c.ra or '0', c.rb or '',
    c.ct or '0', c.up or '0',
    c.by or '', c.il or '0', c.df or '', c.lw or '', c['in'] or '', reply.int(#reasons) }
  for i = 1, #slots do out[#out + 1] = slots[i] end
  for i = 1, #reasons do out[#out + 1], out[#out + 2] = string.sub(reasons[i], 3), c[reasons[i]] end
  return #(c.df or '') + 512
end

local function ff_list_schedules(ctx, q)
  local which, name, limit = q.which, q.name, q.limit
  local one = which == 'one' or which == 'whole'
  if which == 'due' and not args.int(name, 0, 10000) then
    return reply.err('invalid_input', 'name: how many are left out')
  end
  if (name ~= '' or one) and not args.name(name, 64) then
    return reply.err('invalid_input', 'name: 1..64 bytes of printable ASCII without braces')
  end
  local all, out, count, bytes, more = ff_schedules.names(ctx, which, name, limit), { 1, 'OK', ctx.t, '0', '0' }, 0, 0,
    false
  for i = 1, #all do
    if i > limit or bytes > 524288 then
      more = true
      break
    end
    local size = ff_schedules.add(ctx, all[i], out, which == 'whole')
    if size then count, bytes = count + 1, bytes + size end
  end
  out[4], out[5] = more and '1' or '0', reply.int(count)
  return out
end
