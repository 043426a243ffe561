-- mailbox: messages to an execution, each to a mailbox of this name. What nobody has taken yet is one list, in the
-- order in which it came, whatever the mailbox. Taking messages is a durable step of the handler, so they are handed
-- out once. Beside the list are marks, by which a repeat is recognised: the idempotency key of a message, else its id
-- -> its number. The field mailbox of the record tells "<number of the last>,<how many wait>,<their bytes>". A
-- message is its parts joined by the unit separator, the payload, any bytes, last: number mailbox accepted by
-- encoding payload.
local mailbox = {}

local US = '\31'
local most, most_bytes, known, taken_bytes = 1000, 1048576, 1000, 131072

-- name: 1..96 bytes of printable ASCII.
function mailbox.name(text) return text and #text >= 1 and #text <= 96 and not string.find(text, '[^ -~]') end

-- of tells how many messages came, how many wait, and their bytes.
function mailbox.of(c)
  local last, n, bytes = string.match(c.mailbox or '', '^(%d+),(%d+),(%d+)$')
  return tonumber(last or '0'), tonumber(n or '0'), tonumber(bytes or '0')
end

-- many is how many wait, as text.
function mailbox.many(c)
  local _, n = mailbox.of(c)
  return reply.int(n)
end

local function count(ctx, id, last, n, bytes)
  record.set(ctx, id, 'mailbox', reply.int(last) .. ',' .. reply.int(n) .. ',' .. reply.int(bytes))
end

-- repeated is the number of a message that came before, among the last that are remembered.
function mailbox.repeated(ctx, c, id, m)
  return c.mailbox and redis.call('ZSCORE', keys.marks(ctx.r, id), m.key ~= '' and 'k' .. m.key or 's' .. m.id) or nil
end

-- put stores a message and returns its number and how many wait; nil and an error when the mailbox is full.
function mailbox.put(ctx, c, id, m)
  local last, n, bytes = mailbox.of(c)
  if n >= most then return nil, reply.err('mailbox_full', 'messages: at most 1000 that nobody has received') end
  local number = reply.int(last + 1)
  local text = table.concat({ number, m.box, ctx.t, m.by, m.encoding, m.payload }, US)
  if bytes + #text > most_bytes then
    return nil, reply.err('mailbox_full', 'bytes: at most 1048576 that nobody has received')
  end
  redis.call('RPUSH', keys.messages(ctx.r, id), text)
  redis.call('ZADD', keys.marks(ctx.r, id), number, m.key ~= '' and 'k' .. m.key or 's' .. m.id)
  if last >= known then redis.call('ZREMRANGEBYSCORE', keys.marks(ctx.r, id), '-inf', reply.int(last + 1 - known)) end
  count(ctx, id, last + 1, n + 1, bytes + #text)
  return number, reply.int(n + 1)
end

-- each calls visit with every message that waits, the first that came first, until it returns true.
local function each(ctx, id, visit)
  local key, at = keys.messages(ctx.r, id), 0
  while true do
    local list = redis.call('LRANGE', key, reply.int(at), reply.int(at + 63))
    for i = 1, #list do
      if visit(list[i]) then return end
    end
    if #list < 64 then return end
    at = at + 64
  end
end

-- is tells whether a message is one of a mailbox.
local function is(text, box)
  local at = string.find(text, US, 1, true)
  return string.sub(text, at + 1, at + #box + 1) == box .. US
end

-- waiting tells whether a message waits in a mailbox.
function mailbox.waiting(ctx, c, id, box)
  local _, n = mailbox.of(c)
  local found = false
  if n > 0 then
    each(ctx, id, function(text)
      found = is(text, box)
      return found
    end)
  end
  return found
end

-- heads lists up to max messages of a mailbox, '' for all, behind a number, and at most 128 KiB but for the first.
function mailbox.heads(ctx, c, id, box, max, behind)
  local out, bytes = {}, 0
  local _, n = mailbox.of(c)
  if n == 0 then return out end
  each(ctx, id, function(text)
    if box ~= '' and not is(text, box) or behind and tonumber(string.match(text, '^%d+')) <= behind then
      return false
    end
    if #out > 0 and bytes + #text > taken_bytes then return true end
    out[#out + 1], bytes = text, bytes + #text
    return #out >= max
  end)
  return out
end

-- take removes messages that were listed from those that wait.
function mailbox.take(ctx, c, id, list)
  local key, bytes = keys.messages(ctx.r, id), 0
  for i = 1, #list do
    redis.call('LREM', key, '1', list[i])
    bytes = bytes + #list[i]
  end
  local last, n, all = mailbox.of(c)
  count(ctx, id, last, n - #list, all - bytes)
end

-- value is what the step of a receipt keeps: why nothing came, '' if something did, and each message with its length.
function mailbox.value(why, list)
  local out = { why }
  for i = 1, #list do out[#out + 1] = reply.int(#list[i]) .. ':' .. list[i] end
  return table.concat(out, US)
end

-- step is the name of the step of a receipt, which is named after the wait.
function mailbox.step(name) return '\31m:' .. name end

-- purge removes everything.
function mailbox.purge(ctx, id) redis.call('UNLINK', keys.messages(ctx.r, id), keys.marks(ctx.r, id)) end
