-- ff_list_triggers: the triggers of a partition, of one namespace ('' of all), by namespace, subject and name: at most
-- limit, and about 512 KiB. after is the cursor of the last row that was read before. matched is how many events a
-- trigger matched, and last the last of them; refused is the code with which a start was refused last.
-- Flags:   no-writes
-- Go:      Engine.Triggers
-- Args:    protocol namespace:bytes(64) after:bytes(300) limit:n(1..100)
-- Replies: OK more:flag triggers:rows {cursor:text namespace:text text:text name:text definition:text updated:instant
--          by:text matched:n last_at:instant last:text refused:text refused_at:instant refused_event:text}
-- Errors:  @root invalid_input
local ff_triggers = {}

local US = '\31'

-- add appends one trigger and returns its size.
function ff_triggers.add(ctx, cursor, out)
  local namespace, text, name, id = string.match(cursor, '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
  local v = redis.call('HMGET', keys.trigger_facts(ctx.r, id), subject.fields(name))
  local updated, by = string.match(v[2] or '', '^(%d+)\31[^\31]*\31[^\31]*\31[^\31]*\31[^\31]*\31(.*)$')
  local matched, at, last = string.match(v[3] or '', '^(%d+)\31(%d+)\31(.*)$')
  local refused, since, event = string.match(v[4] or '', '^([^\31]*)\31(%d+)\31(.*)$')
  local slots = { cursor, namespace, text, name, v[1] or '', updated or '0', by or '', matched or '0', at or '0',
    last or '', refused or '', since or '0', event or '' }
  for i = 1, #slots do out[#out + 1] = slots[i] end
  return #slots[5] + 512
end

local function ff_list_triggers(ctx, q)
  local from, upto = '-', '+'
  if q.namespace ~= '' then from, upto = '[' .. q.namespace .. US, '(' .. q.namespace .. ' ' end
  if q.after ~= '' then from = '(' .. q.after end
  local all = redis.call('ZRANGEBYLEX', keys.triggers(ctx.r), from, upto, 'LIMIT', '0', reply.int(q.limit + 1))
  local out, count, bytes = { 1, 'OK', '0', '0' }, 0, 0
  while count < #all and count < q.limit and bytes < 524288 do
    count = count + 1
    bytes = bytes + ff_triggers.add(ctx, all[count], out)
  end
  out[3], out[4] = count < #all and '1' or '0', reply.int(count)
  return out
end
