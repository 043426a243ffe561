-- keyed: keys of callers, each of which leads to one execution: idempotency keys, and keys of what is not to be there
-- twice at a time. The partition follows from the key. There a record "<execution> <till>" says who has it: as long
-- as that execution has not ended, and after that as long as it is there (till is "-") or up to an instant (ms). So
-- an end frees a key without a write: who wants it looks what became of the execution. The execution names its key,
-- too, as "<key>:<till>". A key is the UUID that internal/ids makes of its text. A key that debounces has the till
-- "~", which its record follows with marks (lua/lib/debounce.lua): nobody has it any more once its execution was
-- claimed.
local keyed = {}

local year = 31536000000

-- parse reads the id of an item with a key, "<execution> <key> <span>": span is "-" or for how many ms the key stays
-- taken whatever becomes of the execution. "~<ms>" is a key that debounces, and how long it may put its execution off
-- in all (most), 0 for no such bound.
local function parse(ctx, item)
  local id, key, puts_off, span = string.match(item.id, '^(%S+) (%S+) (~?)([%d-]+)$')
  if not id or not args.uuid(key) then return false end -- its id is refused as it is
  puts_off = puts_off == '~'
  local ms = args.int(span, 0, puts_off and 10 * year or year)
  if not ms and (puts_off or span ~= '-') then return false end
  item.id, item.key, item.most = id, key, puts_off and ms or nil
  item.till = puts_off and '~' or not ms and '-' or ms == 0 and '0' or reply.int(ctx.now + ms)
  return true
end

-- look finds out which items have keys, and asks once who has those, and once what became of these.
function keyed.look(ctx, items)
  local list, asked, holders = nil, nil, nil
  for n = 1, #items do
    if #items[n].id > 36 and parse(ctx, items[n]) then
      if not list then list, asked, holders = {}, {}, {} end
      list[#list + 1] = items[n]
      asked[#list] = keys.keyed(ctx.r, items[n].key)
    end
  end
  if not list then return end
  local found = redis.call('MGET', unpack(asked))
  for n = 1, #list do
    list[n].named = found[n] or nil
    local id = found[n] and string.match(found[n], '^%S+')
    if id then holders[#holders + 1] = id end
  end
  if #holders > 0 then record.load(ctx, holders) end
end

-- open tells whether an execution was never claimed, so that a submit under the key that debounces it still changes it.
function keyed.open(c) return not c.links and (c.state == 'R2af' or c.state == 'R1f' or c.state == 'R4f') end

-- taken tells who has a key and the fields of that execution, nil if nobody has it.
local function taken(ctx, text)
  local id, till = string.match(text or '', '^(%S+) (%S+)$')
  local c = id and core.read(ctx, id)
  if not c or not c.state or c.purged_until then return nil end
  if string.byte(till) == 126 and not keyed.open(c) then return nil end -- ~
  if till ~= '-' and core.terminal(c) and policy.till(':' .. till) <= ctx.now then return nil end
  return id, c
end

-- known answers for an item whose key is taken, by an execution or earlier in this call by twin; nil when it is free.
function keyed.known(ctx, item, twin)
  local id, c
  if twin then
    id, c = twin.over or twin.id, { state = twin.code or twin.group.template.state, digest = twin.digest }
  else
    id, c = taken(ctx, item.named)
    if not id then return nil end
  end
  local digest, stored = item.digest, c.digest or ''
  if digest ~= '' and stored ~= '' and digest ~= stored then return '-idempotency_conflict ' .. id end
  return '=' .. c.state .. ' ' .. id
end

-- take gives an item that is written its key, or the execution that it replaces, and returns what its record says of
-- it.
function keyed.take(ctx, item)
  record.write(ctx, keys.keyed(ctx.r, item.key),
    (item.over or item.id) .. ' ' .. item.till .. (item.sent or '') .. (item.rest or ''))
  return item.key .. ':' .. item.till
end

-- debounces tells whether a key debounces of which an execution says own.
local function debounces(own) return string.byte(own, -1) == 126 end -- ~

-- split reads what the record of an execution says of its key: the name of the key's record, and what that says if it
-- is this execution's.
function keyed.split(ctx, c, id)
  local key, till = string.match(c.key or '', '^(%S+):([%d~-]+)$')
  if not key then return nil end
  return keys.keyed(ctx.r, key), id .. ' ' .. till, key
end

-- owner is what the record of a key says, nil if there is none, or something else under its name.
function keyed.owner(key) return redis.call('MGET', key)[1] or nil end

-- names tells whether what the record of a key says is that an execution has it; own is what that execution says of it.
function keyed.names(text, own)
  return text == own or debounces(own) and text ~= nil and string.sub(text, 1, #own) == own
end

-- rival is who else has the key of an execution that is to run again; nil if nobody has. A key that debounces is for
-- what was never claimed.
function keyed.rival(ctx, c, id)
  local key, own = keyed.split(ctx, c, id)
  local text = key and not debounces(own) and keyed.owner(key)
  if not text or text == own then return nil end
  return (taken(ctx, text))
end

-- retake gives an execution that runs again its key.
function keyed.retake(ctx, c, id)
  local key, own = keyed.split(ctx, c, id)
  if key and not debounces(own) then redis.call('SET', key, own) end
end

-- free takes the key of an execution that is purged away from it.
function keyed.free(ctx, c, id)
  local key, own = keyed.split(ctx, c, id)
  if key and keyed.names(keyed.owner(key), own) then redis.call('UNLINK', key) end
end
