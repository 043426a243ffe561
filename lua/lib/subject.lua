-- subject: events that programs publish. An event has a subject, an id and data. All that waits for the events of one
-- subject of a namespace is in one partition, which follows from both, and so is what was published: a publication is
-- one call. A filter asks for values of fields; each is a term, the digest of a field and a value, made in Go. What is
-- to be done for an event is told through the outbox of that partition (lib/gate.lua), as one entry with these notices:
--   p <event> <namespace> <subject> <id> <at> <data>   what was published, joined by the unit separator
--   s <trigger> <definition>                           start what this trigger says, likewise
-- A trigger says what to start. It is in two hashes of its subject: name -> terms, by comma; and, of name, d: its
-- definition, u: when it was changed, its row in the
-- list of the partition, and by whom, c: how many events it matched, when and which was the last, r: the
-- last start that was refused: the code, when, and of which event.
local subject = { most_triggers = 100 }

local US = '\31'

-- has makes a set of the terms of an event.
function subject.has(terms)
  local has = {}
  for i = 1, #terms do has[terms[i]] = true end
  return has
end

-- meets tells whether an event has all terms of a filter, which are joined by commas.
function subject.meets(has, filter)
  for term in string.gmatch(filter, '[^,]+') do
    if not has[term] then return false end
  end
  return true
end

-- matching lists the triggers of a subject whose filters an event meets, in the order of their names.
function subject.matching(ctx, id, has)
  local all, names = redis.call('HGETALL', keys.trigger_terms(ctx.r, id)), {}
  for i = 1, #all, 2 do
    if subject.meets(has, all[i + 1]) then names[#names + 1] = all[i] end
  end
  table.sort(names)
  return names
end

-- row is a trigger in the list of all of a partition: namespace, subject, name, and what stands for the subject.
function subject.row(ctx, id, name)
  local text = redis.call('HGET', keys.trigger_facts(ctx.r, id), 'u' .. name) or ''
  return string.match(text, '^%d+\31([^\31]*\31[^\31]*\31[^\31]*\31[^\31]*)') or ''
end

-- fields are the fields of the facts of a trigger.
function subject.fields(name) return 'd' .. name, 'u' .. name, 'c' .. name, 'r' .. name end

-- start adds notices for triggers that an event matches to an entry of the outbox, and counts that they did.
function subject.start(ctx, id, names, event, entry)
  local key, wanted, changed = keys.trigger_facts(ctx.r, id), {}, {}
  for i = 1, #names do wanted[2 * i - 1], wanted[2 * i] = 'd' .. names[i], 'c' .. names[i] end
  local v = redis.call('HMGET', key, unpack(wanted))
  for i = 1, #names do
    local count = tonumber(string.match(v[2 * i] or '', '^%d+') or '0')
    entry[#entry + 1], entry[#entry + 2] = 's', names[i] .. US .. (v[2 * i - 1] or '')
    changed[#changed + 1] = 'c' .. names[i]
    changed[#changed + 1] = reply.int(math.min(count + 1, 9007199254740991)) .. US .. ctx.t .. US .. event
  end
  redis.call('HSET', key, unpack(changed))
end

-- notice tells whether a notice of the outbox is one of these.
function subject.notice(kind, text)
  if kind == 's' then return args.name(string.match(text, '^([^\31]*)\31.') or '', 64) and true or false end
  local event, namespace, name, id, at = string.match(text, '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]+)\31(%d+)\31')
  return event and args.uuid(event) and args.name(namespace, 64) and args.name(name, 128) and #id <= 256 and
    args.int(at, 0, 9007199254740991) and true or false
end
