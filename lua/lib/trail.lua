-- trail: who changed what, as a stream of the newest ten thousand notes or so. A caller puts a note behind the
-- protocol number: the request, by whom, from where, and what of it only readers know, joined by the unit separator.
-- A call that changes something leaves it here. A request that takes several calls leaves one. A note without an action
-- is not kept here: it only says by whom and why, for what else keeps that, as the history of an execution does.
local trail = {}

local most = '10000'

-- read takes a note apart; nil when it is none.
function trail.read(text)
  if #text > 4096 then return nil end
  local parts = pack.split(text, '\31')
  if #parts ~= 9 or parts[1] == '' or #parts[2] > 256 or #parts[8] > 1024 then return nil end
  return { text = text, request = parts[1], by = parts[2], from = parts[3], kept = parts[4] ~= '', why = parts[8] }
end

-- cut is a text of at most so many bytes, without half a character at its end.
local function cut(text, longest)
  if #text <= longest then return text end
  while longest > 0 and math.floor(string.byte(text, longest + 1) / 64) == 2 do longest = longest - 1 end
  return string.sub(text, 1, longest)
end

-- by is who asks, in at most 64 bytes; '' if nobody said.
function trail.by(ctx) return ctx.note and cut(ctx.note.by, 64) or '' end

-- why is why, in at most so many bytes; '' if nobody said.
function trail.why(ctx, longest) return ctx.note and cut(ctx.note.why, longest) or '' end

-- named is who asks, for what is done in somebody's name; nil and a refusal if nobody said.
function trail.named(ctx)
  local by = trail.by(ctx)
  if by ~= '' and not string.find(by, '%c') then return by end
  return nil, reply.err('invalid_input', 'by: 1..64 bytes without control characters')
end

-- words are why and who asks, as one text of at most so many bytes; '' if nobody said.
function trail.words(ctx, longest)
  local by, why = trail.by(ctx), ctx.note and ctx.note.why or ''
  if by == '' then return cut(why, longest) end
  return cut(why == '' and 'by ' .. by or why .. ' (by ' .. by .. ')', longest)
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
  if not note.kept or redis.call('HGET', ctx.r, 'noted') == note.request then return end
  redis.call('HSET', ctx.r, 'noted', note.request)
  redis.call('XADD', keys.trail(ctx.r), 'MAXLEN', '~', most, '*', 'n', ctx.t .. ' ' .. note.text)
end
