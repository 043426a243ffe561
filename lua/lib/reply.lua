-- reply: the envelope of every answer. Status is the only integer, every slot is a string, and no
-- slot is ever nil, because a nil would cut the array short on the wire.
local reply = {}

function reply.ok(...) return { 1, 'OK', ... } end

-- already: the wanted state holds, nothing was written.
function reply.already(...) return { 1, 'ALREADY_SATISFIED', ... } end

function reply.err(code, ...) return { 0, code, ... } end

local digits = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }

-- int formats a whole number below 2^53 without an exponent ('%d' costs a quarter of '%.0f', and most counts are
-- small).
function reply.int(n) return digits[n] or string.format('%d', n) end

-- add appends to an answer how many rows a list has, of so many slots each (1 unless said), and the list. It returns
-- the answer.
function reply.add(out, list, width)
  out[#out + 1] = reply.int(#list / (width or 1))
  for i = 1, #list do out[#out + 1] = list[i] end
  return out
end

-- fields appends how many fields a table has, and their names and values, in no order.
function reply.fields(out, h)
  local list = {}
  for field, value in pairs(h) do list[#list + 1], list[#list + 2] = field, value end
  return reply.add(out, list, 2)
end
