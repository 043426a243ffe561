-- pack: records that are one text, their parts joined by a separator that no part contains.
local pack = {}

-- split returns the parts of a text; with most, the last part is whatever remains.
function pack.split(text, sep, most)
  local parts, from = {}, 1
  while not most or #parts < most - 1 do
    local at = string.find(text, sep, from, true)
    if not at then break end
    parts[#parts + 1] = string.sub(text, from, at - 1)
    from = at + 1
  end
  parts[#parts + 1] = string.sub(text, from)
  return parts
end
