-- ff_list_workers: worker instances that registered in a partition and have not been forgotten, those that run out
-- first in front, up to limit and half a MiB a call. next is the cursor for the call after this one, '' at the end.
-- Flags:   no-writes
-- Go:      Engine.Workers
-- Args:    protocol after:text limit:n(1..100)
-- Replies: OK now:instant next:text workers:rows {instance:text expiry:instant seen:instant registered:instant
--          inflight:n stuck:n dead:flag why:text info:text}
-- Errors:  @root invalid_input
local function ff_list_workers(ctx, q)
  local page, more = registry.page(keys.workers(ctx.r), q.after, q.limit)
  if not page then return reply.err('invalid_input', 'after: no cursor') end
  local out, count, bytes, last = { 1, 'OK', ctx.t, '', '0' }, 0, 0, 0
  for i = 1, #page do
    if bytes > 524288 then break end
    local instance = page[i].member
    local v = redis.call('HMGET', keys.worker(ctx.r, instance), 'exp', 'seen', 'reg', 'in', 'stuck', 'dead', 'why',
      'info')
    if v[1] then -- the record of one that is about to be forgotten may be gone already
      out[#out + 1] = instance
      if registry.stale(ctx, v[2]) then v[1], v[2] = reply.int(math.min(tonumber(v[1]) or 0, ctx.now)), ctx.t end
      for f = 1, 8 do out[#out + 1] = v[f] or f >= 7 and '' or '0' end
      count, bytes = count + 1, bytes + #(v[8] or '')
    end
    last = i
  end
  if last > 0 and (more or last < #page) then out[4] = page[last].score .. ' ' .. page[last].member end
  out[5] = reply.int(count)
  return out
end
