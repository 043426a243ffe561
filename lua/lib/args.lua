-- args: strict readers for caller-supplied text (10-D5). A reader returns nil for anything that is not plainly
-- right; callers turn that into invalid_input with the name of the argument.
local args = {}

-- int reads a whole decimal number within [least, most], with neither sign nor leading zeros.
function args.int(text, least, most)
  if not text or #text > 16 or #text < 1 or string.find(text, '%D') then return nil end
  if #text > 1 and string.byte(text, 1) == 48 then return nil end
  local n = tonumber(text)
  if n < least or n > most then return nil end
  return n
end

-- uuid accepts the canonical lower-case form. It guards creation; elsewhere id is enough.
function args.uuid(text)
  if not text or #text ~= 36 or not string.find(text, '^[0-9a-f]+%-[0-9a-f]+%-[0-9a-f]+%-[0-9a-f]+%-[0-9a-f]+$') then return nil end
  local a, b, c, d = string.byte(text, 9), string.byte(text, 14), string.byte(text, 19), string.byte(text, 24)
  return a == 45 and b == 45 and c == 45 and d == 45 and text or nil
end

-- id accepts anything as long as an id. Whatever it contains, the key it forms starts with the partition root,
-- so it stays in the slot; and an id that was never created has no core.
function args.id(text)
  if text and #text == 36 then return text end
  return nil
end

-- name accepts 1..most bytes of printable ASCII without braces.
function args.name(text, most)
  if text and #text >= 1 and #text <= most and not string.find(text, '[^\32-\126]') and
      not string.find(text, '[{}]') then
    return text
  end
  return nil
end

-- score reads a sorted set's score. The embedded server's Lua does not know numbers without a point before the exponent.
function args.score(text)
  return tonumber(text) or tonumber((string.gsub(text, 'e', '.0e')))
end

-- tag accepts a key of dotted lower-case parts, at most 64 bytes in all (design §12).
function args.tag(text)
  return #text <= 64 and string.find(text, '^%l[%l%d_]*%.[%l%d_.]*[%l%d_]$') and not string.find(text, '..', 1, true)
end

-- instant reads '' (none), '+ms' (from now) or 'ms' (absolute); at most ten years ahead. The second result is
-- false when the text is malformed.
function args.instant(text, now)
  if text == '' then return nil, true end
  local relative = string.byte(text, 1) == 43
  local n = args.int(relative and string.sub(text, 2) or text, 0, 9007199254740991)
  if not n then return nil, false end
  if relative then n = now + n end
  if n > now + 315360000000 then return nil, false end
  return n, true
end
