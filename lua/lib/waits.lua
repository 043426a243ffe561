-- waits: the one string that holds what an execution waits for, and the only file that knows its layout: its current or last suspension
-- (suspension says which fields that has) and its waitpoints by id (waitpoint says what is in one). Its Go twin is internal/record; a
-- test holds the two together. Read once a call, and written once, when the call ends:
--   {<field> US <value> US} {RS <waitpoint id> US <waitpoint>}
-- A value with a separator in it is escaped. A waitpoint never has one that is not its own.
local waits = {}

local marks = { ['\27'] = '\27e', ['\30'] = '\27r', ['\31'] = '\27u' }
local meanings = { e = '\27', r = '\30', u = '\31' }

function waits.decode(text)
  local u, points = {}, {}
  local first = string.find(text, '\30', 1, true)
  local head = first and string.sub(text, 1, first - 1) or text
  for field, value in string.gmatch(head, '([^\31]+)\31([^\31]*)\31') do u[field] = value end
  if string.find(head, '\27', 1, true) then
    for field, value in pairs(u) do u[field] = string.gsub(value, '\27(.)', meanings) end
  end
  if first then
    for id, point in string.gmatch(text, '\30([^\30\31]+)\31([^\30]*)') do points[id] = point end
  end
  return { u = u, points = points }
end

function waits.encode(w)
  local out, n = {}, 0
  for field, value in pairs(w.u) do
    if string.find(value, '[\27\30\31]') then value = string.gsub(value, '[\27\30\31]', marks) end
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = field, '\31', value, '\31'
    n = n + 4
  end
  for id, point in pairs(w.points) do
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = '\30', id, '\31', point
    n = n + 4
  end
  return table.concat(out)
end

-- of returns what an execution waits for. Who changes it says so with touch.
function waits.of(ctx, id)
  local all = ctx.waits
  if not all then
    all = {}
    ctx.waits = all
  end
  local w = all[id]
  if not w then
    local text = redis.call('MGET', keys.waits(ctx.r, id))[1] -- a key of another type reads as none
    w = text and waits.decode(text) or { u = {}, points = {} }
    all[id] = w
  end
  return w
end

-- touch plans to write what changed.
function waits.touch(ctx, id)
  if not ctx.waited then ctx.waited = {} end
  ctx.waited[id] = true
end

-- set changes fields of the suspension.
function waits.set(ctx, id, fields)
  local u = waits.of(ctx, id).u
  for i = 1, #fields, 2 do u[fields[i]] = fields[i + 1] end
  waits.touch(ctx, id)
end

-- ids lists the waitpoints.
function waits.ids(ctx, id)
  local out = {}
  for wid in pairs(waits.of(ctx, id).points) do out[#out + 1] = wid end
  return out
end

-- forget removes everything.
function waits.forget(ctx, id)
  redis.call('UNLINK', keys.waits(ctx.r, id))
  waits.of(ctx, id)
  ctx.waits[id] = { u = {}, points = {} }
  if ctx.waited then ctx.waited[id] = nil end
end

-- flush hands what changed to the write at the end of the call.
function waits.flush(ctx)
  for id in pairs(ctx.waited) do record.write(ctx, keys.waits(ctx.r, id), waits.encode(ctx.waits[id])) end
  ctx.waited = nil
end
