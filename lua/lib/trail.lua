-- trail: who changed what, as a stream of the newest ten thousand notes or so. A caller puts a note behind the
-- protocol number: the request, by whom, from where, and what of it only readers know, joined by the unit separator.
-- A call that changes something leaves it here. A request that takes several calls leaves one.
local trail = {}

local most = '10000'

-- read takes a note apart; nil when it is none.
function trail.read(text)
  if #text > 4096 then return nil end
  local parts = pack.split(text, '\31')
  if #parts ~= 9 or parts[1] == '' then return nil end
  return { text = text, request = parts[1], by = parts[2], from = parts[3], why = parts[8] }
end

-- split parts the protocol number of a call from its note; without a number the note is none that can be read.
function trail.split(text)
  if not text or #text < 8 then return text end -- a number, or nothing
  local number, rest = string.match(text, '^(%d+)\31(.*)$')
  local note = number and trail.read(rest)
  return note and number, note
end

function trail.add(ctx)
  local note = ctx.note
  if redis.call('HGET', ctx.r, 'noted') == note.request then return end
  redis.call('HSET', ctx.r, 'noted', note.request)
  redis.call('XADD', keys.trail(ctx.r), 'MAXLEN', '~', most, '*', 'n', ctx.t .. ' ' .. note.text)
end
