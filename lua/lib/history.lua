-- history: what happened to an execution out of the ordinary (performance.md §3.5). Created, claimed and ended times are
-- in the core, ended attempts in their folded records; the rest is a list of at most 1,000 entries, oldest first:
-- event, ms, attempt, epoch, session, then what the event says, joined by the unit separator.
local history = {}

-- add appends one event; detail and more are '' or nil when there is nothing to say.
function history.add(ctx, c, id, event, detail, more)
  local key = keys.history(ctx.r, id)
  local entry = { event, ctx.t, core.attempt(c), c.e or '', c.ss or '', detail or '', more or '' }
  if redis.call('RPUSH', key, table.concat(entry, '\31')) > 1000 then redis.call('LTRIM', key, -1000, -1) end
end

-- last returns the newest entry of a kind among the last 64, as its seven parts; nil when there is none.
function history.last(ctx, id, event)
  local entries = redis.call('LRANGE', keys.history(ctx.r, id), '-64', '-1')
  for i = #entries, 1, -1 do
    local parts = pack.split(entries[i], '\31', 7)
    if parts[1] == event and #parts == 7 then return parts end
  end
  return nil
end
