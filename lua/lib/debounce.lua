-- debounce: of submits under one key, the latest input counts. The first makes an execution that is delayed. Each
-- further one, as long as that was never claimed, replaces what it was submitted with and puts it off again. What
-- stays is its id, when it was created, its history, its mailbox and whether an operator holds it. Once it was
-- claimed, the next submit makes another execution. The record of the key says "<execution> ~<marks>" and, behind a
-- slash, "<execution before>,<marks>": a mark is the end of the id that a submit sent, so that one that is repeated
-- after a lost reply is known again, the last eight of each execution.
local debounce = {}

local most_marks = 8

local function mark(item) return string.sub(item.id, 25) end

-- marked tells whether a mark is among some.
local function marked(marks, item) return string.find(marks, mark(item), 1, true) ~= nil end

-- add appends the mark of an item to some, each with a comma behind it.
local function add(marks, item)
  marks = marks .. mark(item) .. ','
  return #marks > 13 * most_marks and string.sub(marks, 14) or marks
end

-- read splits what the record of a key says: the execution, its marks, the execution before, and the marks of that;
-- '' where there is none.
local function read(text)
  local id, marks, before = string.match(text or '', '^(%S+) ~([%x,]*)/?(%S*)$')
  if not id then return nil end
  return id, marks, string.sub(before, 1, 36), string.sub(before, 38)
end

-- known answers for an item that debounces and whose submit was applied before, or that meets a key of another kind;
-- it answers nil for one that is to be written, and notes what it is to replace: a stored execution (was), or what
-- twin is about to make in this call.
function debounce.known(ctx, item, twin)
  if not item.group.template.delay then return '-invalid_input debounce: its delay is at least 1 ms' end
  if item.most > 0 and ctx.now + item.most < item.group.template.delay then
    return '-invalid_input debounce: its longest wait is shorter than its delay'
  end
  if twin then
    if not twin.most then return keyed.known(ctx, item, twin) end
    item.over = twin.over or twin.id
    if twin.sent and marked(twin.sent, item) then
      return '~' .. (twin.code or twin.group.template.state) .. ' ' .. item.over
    end
    return nil
  end
  local id, marks, before, older = read(item.named)
  if not id then
    if item.named then return keyed.known(ctx, item, nil) end
    return nil
  end
  local applied = marked(marks, item) and id or marked(older, item) and before
  local state = applied and (core.read(ctx, applied).state or purge.read(ctx, applied))
  if state then return '~' .. state .. ' ' .. applied end
  local c = core.read(ctx, id)
  if c.state and keyed.open(c) then
    item.over, item.was, item.sent, item.rest = id, c, marks, before ~= '' and '/' .. before .. ',' .. older or ''
  elseif c.state then
    item.rest = '/' .. id .. ',' .. marks
  end
  return nil
end

-- follow lets an item replace what it is to replace, and answers it. Of several in one call the last counts.
function debounce.follow(ctx, item, twin)
  local target, t = twin or item, item.group.template
  target.times = (target.times or 0) + 1
  target.sent = add(target.sent or '', item)
  if twin then twin.group, twin.payload, twin.digest, twin.most = item.group, item.payload, item.digest, item.most end
  if not target.was then return '~' .. t.state .. ' ' .. item.over end
  local at, latest = t.delay, tonumber(target.was.created_at) + item.most
  if item.most > 0 and latest < at then at = latest end
  target.at = at > ctx.now and at or nil
  target.code = target.was.state == 'R4f' and 'R4f' or target.at and 'R2af' or 'R1f'
  return '~' .. target.code .. ' ' .. item.over
end

-- fields are those of an execution that a submit says.
local fields = { 'priority', 'deadline', 'policy', 'retention', 'has_categories', 'attempt_timeout', 'creator',
  'route' }

-- move lists an execution where its new content wants it.
local function move(ctx, item, t)
  local id, was, code = item.over, item.was, item.code
  if was.state ~= code or code == 'R1f' then home.leave(ctx, was, id) end
  if code == 'R2af' then
    timers.put(ctx, timers.delayed, item.at, id)
  elseif code == 'R1f' then
    indexes.enqueue(ctx, t.route,
      lane.score(ctx, { created_at = was.created_at, priority = t.core.priority, route = t.route }), id)
  end
  if t.deadline or was.deadline then indexes.alarm(ctx, t.deadline, id) end
  if t.route ~= was.route then
    catalogue.reroute(ctx, was, id, t.route)
    route.used(ctx, t.route, 1)
    route.used(ctx, was.route, -1)
  end
end

-- write gives a stored execution what an item says.
function debounce.write(ctx, item)
  local id, was, t, tags = item.over, item.was, item.group.template, item.group.tags
  if not t.route or not t.core.route then create.place(ctx, t) end
  local set, gone = { 'state', item.code, 'replaced', reply.int((tonumber(was.replaced or '') or 0) + item.times) },
    { 'digest' }
  local function say(field, value)
    if value then
      set[#set + 1], set[#set + 2] = field, value
    else
      gone[#gone + 1] = field
    end
  end
  for i = 1, #fields do say(fields[i], t.core[fields[i]]) end
  -- one that an operator holds is put off, too: ff_hold_execution
  say('delay_until', item.at and reply.int(item.at) or nil)
  say('has_tags', #tags > 0 and '1' or nil)
  local size, before = #item.payload, tonumber(was.input_size or '') or 0
  say('input_size', size > 0 and reply.int(size) or nil)
  say('input', size > 0 and size <= record.inline and item.payload or nil)
  record.clear(ctx, id, unpack(gone))
  record.set(ctx, id, unpack(set))
  if size > record.inline then
    record.write(ctx, keys.input(ctx.r, id), item.payload)
  elseif before > record.inline then
    redis.call('UNLINK', keys.input(ctx.r, id))
  end
  catalogue.retag(ctx, was, id, was.has_tags and meter.hash(keys.tags(ctx.r, id)) or {}, args.named(tags))
  if was.has_tags then redis.call('UNLINK', keys.tags(ctx.r, id)) end
  if #tags > 0 then redis.call('HSET', keys.tags(ctx.r, id), unpack(tags)) end
  if t.categories then
    redis.call('HSET', keys.attempts(ctx.r, id), 'categories', t.categories)
  elseif was.has_categories then
    redis.call('HDEL', keys.attempts(ctx.r, id), 'categories')
  end
  keyed.take(ctx, item)
  move(ctx, item, t)
end
