-- ff_read_times: what processes measured of a kind ("*" for all, "" for those above the bound) in minutes from one on,
-- for at most a day (ff_note_times), and of which kinds of the namespace something is known. An answer has about
-- 512 KiB; next is the minute from which there is more, 0 if there is none.
-- Flags:   no-writes
-- Go:      Engine.ReadTimes
-- Args:    protocol namespace:name(64) kind:name(64)? from:n(1..) count:n(1..1440)
-- Replies: OK now:instant next:n kinds:rows {kind:text} minutes:rows {minute:n tally:text}
-- Errors:  @root invalid_input
local function ff_read_times(ctx, q)
  local kinds = redis.call('HKEYS', keys.timed_kinds(ctx.r, q.namespace))
  table.sort(kinds)
  local key, list, bytes, next = keys.minutes(ctx.r, q.namespace, q.kind), {}, 0, 0
  local last = math.min(q.from + q.count - 1, math.floor(ctx.now / 60000))
  for first = q.from, last, 60 do
    if bytes > 524288 then
      next = first
      break
    end
    local fields = {}
    for minute = first, math.min(first + 59, last) do fields[#fields + 1] = reply.int(minute % 1440) end
    local values = redis.call('HMGET', key, unpack(fields))
    for i = 1, #fields do
      local minute, tally = string.match(values[i] or '', '^(%d+);(.*)$')
      if minute == reply.int(first + i - 1) then
        list[#list + 1], list[#list + 2], bytes = minute, tally, bytes + #tally
      end
    end
  end
  local out = reply.add(reply.ok(ctx.t, reply.int(next)), kinds)
  return reply.add(out, list, 2)
end
