-- args: strict readers for caller-supplied text. A reader returns nil for anything that is not plainly
-- right; callers turn that into invalid_input with the name of the argument.
local args = {}

-- int reads a whole decimal number within [least, most], with neither sign nor leading zeros.
function args.int(text, least, most)
  if not text or #text > 16 or not string.find(text, '^%d+$') then return nil end
  if #text > 1 and string.byte(text, 1) == 48 then return nil end
  local n = tonumber(text)
  if n < least or n > most then return nil end
  return n
end

-- signed reads a whole decimal number that may be negative.
function args.signed(text)
  if not text then return nil end
  local n = args.int((string.gsub(text, '^%-', '')), 0, 9007199254740991)
  return n and string.byte(text, 1) == 45 and -n or n
end

-- scan accepts the cursor of a scan.
function args.scan(text) return args.int(text, 0, 9007199254740991) and text or nil end

-- label accepts the name of a gate that has a definition: letters, digits, _ . and -, a letter or digit first.
function args.label(text) return text and #text <= 64 and string.find(text, '^%w[%w_.-]*$') and text or nil end

-- service accepts the name of a gate of a service, as "openai/gpt-5": that of a gate, or such names joined by slashes.
function args.service(text) return text and #text <= 64 and string.find(text, '^%w[%w_./-]*$') and text or nil end

-- dimension accepts the name of what a gate counts amounts of.
function args.dimension(text)
  return text and #text <= 64 and string.find(text, '^%l[%l%d_.]*$') and text or nil
end

-- ref accepts an execution as "<partition>.<uuid>", in the one way to write it.
function args.ref(text)
  local partition, id = string.match(text or '', '^(%d+)%.(.*)$')
  return args.int(partition, 0, 65535) and args.uuid(id) and text or nil
end

-- kid accepts the name of a token key.
function args.kid(text) return text and #text >= 1 and #text <= 32 and not string.find(text, '[^%w._-]') end

-- list reads a count within [least, most] from position i, and so many texts behind it. It returns them and the
-- position behind, or nil.
function args.list(argv, i, least, most)
  local count = args.int(argv[i], least, most)
  if not count or count > 0 and not argv[i + count] then return nil end
  return { unpack(argv, i + 1, i + count) }, i + count + 1
end

-- limit reads the name of a limit of a key, "@<at once>.<starts>.<window, ms>@<key>", 0 for what it does not limit: a
-- gate that needs no definition, as its name says everything.
function args.limit(name)
  local cap, rate, window, key = string.match(name or '', '^@(%d+)%.(%d+)%.(%d+)@([%w_.:/@+=%%-]+)$')
  if not key or #key > 128 then return nil end
  local l = { cap = args.int(cap, 0, 1000000), rate = args.int(rate, 0, 1000000),
    window = args.int(window, 0, 2592000000) }
  if not l.cap or not l.rate or not l.window or (l.rate > 0) ~= (l.window > 0) then return nil end
  return l
end

-- gate accepts the name of a gate, of a service, or of a limit of a key.
function args.gate(text) return (args.service(text) or args.limit(text)) and text or nil end

local uuid = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'

-- uuid accepts the canonical lower-case form. It guards creation; elsewhere id is enough.
function args.uuid(text)
  return text and #text == 36 and string.find(text, uuid) and string.lower(text) == text and text or nil
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
      not string.find(text, '[{}]') and text ~= '.' and text ~= '..' then
    return text
  end
  return nil
end

-- score reads a sorted set's score. The embedded server's Lua does not know numbers without a point before the
-- exponent.
function args.score(text) return tonumber(text) or tonumber((string.gsub(text, 'e', '.0e'))) end

-- tag accepts a key of dotted lower-case parts, at most 64 bytes in all.
function args.tag(text)
  return text and #text <= 64 and string.find(text, '^%l[%l%d_]*%.[%l%d_.]*[%l%d_]$') and
    not string.find(text, '..', 1, true)
end

-- tags reads a count of at most 64 from position i, and so many keys and values behind it. It returns them as one
-- list and the position behind, or nil.
function args.tags(argv, i)
  local count = args.int(argv[i], 0, 64)
  if not count or count > 0 and not argv[i + 2 * count] then return nil end
  return { unpack(argv, i + 1, i + 2 * count) }, i + 2 * count + 1
end

-- named makes a table of a list of names, each before its value.
function args.named(list)
  local t = {}
  for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
  return t
end

-- wrong_tags returns the code and the detail of what is wrong with such a list, or nil.
function args.wrong_tags(tags)
  for i = 1, #tags, 2 do
    if not args.tag(tags[i]) then return 'invalid_tag_key', string.sub(tags[i], 1, 64) end
    if #tags[i + 1] > 256 then return 'invalid_input', 'tags: value of at most 256 bytes' end
  end
  return nil
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
