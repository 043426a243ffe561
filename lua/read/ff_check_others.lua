-- ff_check_others: whether an execution (waiter, "<partition>.<execution>") may wait for others, and how those of
-- them ended that have ended already: mark and attempt of each, the mark '.' for one that has not. One that does not
-- exist or was purged is an error, and so is one that waits for the waiter itself, one of the waiter's flow that cannot
-- run before the waiter has ended, as far as 1,000 edges tell, or one that 1,000 others wait for already. It changes
-- nothing.
-- Flags:   no-writes
-- Go:      Engine.CheckOthers
-- Args:    protocol waiter:ref executions:rows(1..100) {execution:id}
-- Replies: OK executions:rows {mark:text attempt:n?}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt cycle_detected fan_in_too_large
local ff_check = {}

-- waits tells whether an execution waits for the waiter, which may be its child.
function ff_check.waits(ctx, c, id, waiter)
  if not c.children_wait or not string.find(c.children_wait, ' p %l+$') then return false end
  local v = redis.call('HMGET', keys.children(ctx.r, id), waiter, string.sub(waiter, -36))
  local own = string.match(ctx.r, '(%d+)}$') == string.match(waiter, '^%d+')
  return group.record(v[1]) == '.' or own and (group.record(v[2]) == '.' or group.record(v[2]) == '~')
end

-- needs tells whether a pending group needs the ends of upstreams, n of those that it was not told of.
function ff_check.needs(g, n)
  if g.policy == 'all' or group.watches(g) then return true end
  return g.upstreams - g.failed - g.skipped - n < (g.policy == 'any' and 1 or g.quorum)
end

-- behind are the members of a flow that cannot run before one of them has ended, and that one.
function ff_check.behind(ctx, first)
  local out, list, counts, edges, at = { [first] = true }, { first }, {}, 0, 1
  while list[at] and edges < 1000 do
    local up, page = list[at], links.dependants(ctx, list[at], 0, 1000 - edges)
    edges, at = edges + #page, at + 1
    for i = 1, #page do page[i] = string.byte(page[i], 1) ~= 119 and string.sub(page[i], 2) or up end -- w
    links.load(ctx, page)
    for i = 1, #page do
      local id = page[i]
      local g = not out[id] and links.group(ctx, id)
      local mark = g and g.state == 'p' and links.edge(ctx, id, up)
      if mark == '.' or mark == '~' then
        counts[id] = (counts[id] or 0) + 1
        if ff_check.needs(g, counts[id]) then out[id], list[#list + 1] = true, id end
      end
    end
  end
  return out
end

-- blocked tells whether an execution of the waiter's flow cannot run before the waiter has ended.
function ff_check.blocked(ctx, c, id, waiter)
  local partition, own = wait_others.whole(waiter)
  if not core.blocked(c) or partition ~= string.match(ctx.r, '(%d+)}$') then return false end
  if core.read(ctx, own).flow ~= c.flow then return false end
  if not ctx.cache.behind then ctx.cache.behind = ff_check.behind(ctx, own) end
  return ctx.cache.behind[id] ~= nil
end

local function ff_check_others(ctx, q)
  local ids, out = q.executions, { 1, 'OK', reply.int(#q.executions) }
  for i = 1, #ids do
    local id = ids[i]
    local c = core.read(ctx, id)
    if not c.state then
      local missing = purge.missing(ctx, id)
      return reply.err(missing[2], id)
    end
    local mark = graph.outcome(c) -- one that has ended waits no more, whatever its list says
    if not mark and ff_check.waits(ctx, c, id, q.waiter) then
      return reply.err('cycle_detected', id, 'it waits for the waiter')
    end
    if not mark and ff_check.blocked(ctx, c, id, q.waiter) then
      return reply.err('cycle_detected', id, 'it depends on the waiter')
    end
    if not mark and c.awaited and redis.call('HLEN', keys.awaiting(ctx.r, id)) >= 1000 and
        redis.call('HEXISTS', keys.awaiting(ctx.r, id), q.waiter) == 0 then
      return reply.err('fan_in_too_large', id, '1000 executions wait for it')
    end
    out[#out + 1], out[#out + 2] = mark or '.', mark and core.attempt(c) or ''
  end
  return out
end
