-- history: what happened to an execution out of the ordinary. Created, claimed and ended times are
-- in the core, ended attempts in their folded records, the last suspension in its own; the rest is a list of at most
-- 1,000 entries, oldest first: event, ms, attempt, epoch, session, then what the event says, joined by the unit
-- separator. Where somebody asked for it from a place that is known, that follows the session after a space.
local history = {}

local most = 1000

-- entry is one event; detail and more are '' when there is nothing to say.
function history.entry(event, ms, attempt, epoch, session_id, detail, more)
  return table.concat({ event, ms, attempt, epoch, session_id, detail, more }, '\31')
end

-- push appends entries.
function history.push(ctx, id, entries)
  if #entries == 0 then return end
  local key = keys.history(ctx.r, id)
  if redis.call('RPUSH', key, unpack(entries)) > most then redis.call('LTRIM', key, -most, -1) end
end

-- add appends what happens now.
function history.add(ctx, c, id, event, detail, more)
  local holder = c.session or ''
  if ctx.note and ctx.note.from ~= '' then holder = holder .. ' ' .. ctx.note.from end
  history.push(ctx, id,
    { history.entry(event, ctx.t, core.attempt(c), c.epoch or '', holder, detail or '', more or '') })
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
