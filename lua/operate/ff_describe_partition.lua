-- ff_describe_partition: how a partition is: its root, how many routes are ready, and of every timer set how many
-- entries it has and when the first of them is due (0 when it is empty); the same of the sets of flows: blocked,
-- flows, flowdue, backlog; and what was counted of flows since the store was made (graph.tally): skipped, flows
-- completed, failed, cancelled, siblings cancelled, ended already, gone, spared; and of tokens: refused; of the sets
-- of gates: routes that gates closed, executions that operators paused, the outbox, whose head is when its oldest
-- entry was filed. Routes with gates that are ready count among those that are. It answers also while the partition
-- is frozen. ends has how many executions were purged since the store was made, and how often one completed, failed,
-- was cancelled, expired and was skipped; one that is replayed ends again.
-- Flags:   no-writes
-- Go:      Engine.DescribePartition
-- Args:    protocol
-- Replies: OK now:instant protocol:n frozen:flag reason:text wake:instant owner:text overdue:flag booted:instant
--          table:n feed:text ready:n routes:n lanes:n fed:n sets:rows {count:n head:instant} flows:rows {count:n
--          head:instant} tallies:rows {n:n} gates:rows {count:n head:instant} ends:rows {n:n}
-- Errors:  invalid_input partition_missing protocol_mismatch
local ff_describe = {}

-- ends tells what became of executions. What ended is kept, or was purged, or was replayed; those that completed are
-- the rest of it, so that no completion has to count.
function ff_describe.ends(r, out)
  local v, rest = redis.call('HMGET', r, 'purged', 'tally:again', 'tally:T2', 'tally:T3', 'tally:T4', 'tally:T5'), nil
  rest = redis.call('ZCARD', keys.done(r)) + tonumber(v[1] or '0') + tonumber(v[2] or '0')
  for i = 3, 6 do rest = rest - tonumber(v[i] or '0') end
  local list = { '6', v[1] or '0', reply.int(math.max(0, rest)), v[3] or '0', v[4] or '0', v[5] or '0', v[6] or '0' }
  for i = 1, #list do out[#out + 1] = list[i] end
end

local function ff_describe_partition(k, argv)
  local r = k[1]
  local h = redis.call('HMGET', r, 'protocol', 'frozen', 'wake', 'owner', 'booted', 'table', 'feed', 'ticked')
  if not h[1] then return reply.err('partition_missing', r) end
  local refused = root.mismatch(h[1], argv[1])
  if refused then return refused end
  local now = clock.now(r)
  local overdue = root.overdue({ r = r, now = now, wake = h[3] and tonumber(h[3]), owner = h[4], ticked = h[8] })
  local out = { 1, 'OK', reply.int(now), h[1], h[2] and '1' or '0', h[2] or '', h[3] or '0', h[4] or '', overdue,
    h[5] or '0', h[6] or '0', h[7] or '', reply.int(ready.count(r)),
    reply.int(redis.call('HLEN', keys.routes(r))),
    reply.int(redis.call('HLEN', keys.lanes(r))), reply.int(redis.call('XLEN', keys.feed(r))), '8' }
  local sets = { keys.delayed(r), keys.alarms(r), keys.sessions(r), keys.pending(r), keys.parked(r), keys.done(r),
    keys.workers(r), keys.schedules(r) }
  local function show(list)
    for i = 1, #list do
      local head = redis.call('ZRANGE', list[i], '0', '0', 'WITHSCORES')
      out[#out + 1] = reply.int(redis.call('ZCARD', list[i]))
      out[#out + 1] = head[2] and reply.int(args.score(head[2])) or '0'
    end
  end
  show(sets)
  out[#out + 1] = '4' -- processes of before there were flows read no further than the sets above
  show({ keys.blocked(r), keys.flows(r), keys.flow_due(r), keys.backlog(r) })
  local tallies = redis.call('HMGET', r, 'tally:T5', 'tally:F2', 'tally:F3', 'tally:F4', 'tally:xc', 'tally:xt',
    'tally:xn', 'tally:xs')
  out[#out + 1] = '9'
  for i = 1, 8 do out[#out + 1] = tallies[i] or '0' end
  out[#out + 1], out[#out + 2] = redis.call('HGET', keys.refusals(r), 'n') or '0', '3'
  show({ keys.closed(r), keys.paused(r) })
  local oldest = redis.call('XRANGE', keys.outbox(r), '-', '+', 'COUNT', '1')[1]
  out[#out + 1] = reply.int(redis.call('XLEN', keys.outbox(r)))
  out[#out + 1] = oldest and string.match(oldest[1], '^%d+') or '0'
  ff_describe.ends(r, out)
  return out
end
