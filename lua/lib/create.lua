-- create: how executions come into being, for the functions that create some. They come in groups: what those of a
-- group have in common, their tags among it, and how many there are, then each with its id, digest and payload, and
-- what else the function wants of it. Capabilities may be followed by the unit separator and the group's own gates.
-- Everything is judged before anything is written.
local create = {}

local none = {}

-- The shapes of groups that were judged before, by their names: what does not depend on the partition or the time.
-- They outlive a call, where the server keeps the library loaded, as most executions share a few.
local shapes, shaped = {}, 0

-- head reads what a group has in common from position i, and how many of its kind follow, at most room. It returns
-- the group and the position behind, or nil and what is wrong.
local function head(argv, i, room)
  local tags, at = none, i + 11
  if argv[i + 10] ~= '0' then tags, at = args.tags(argv, i + 10) end
  if not tags then return nil, argv[i + 10] and 'tags: at most 64' or 'arguments: a group is cut short' end
  local group = { namespace = argv[i], lane = argv[i + 1], kind = argv[i + 2], capabilities = argv[i + 3],
    priority = argv[i + 4], delay = argv[i + 5], deadline = argv[i + 6], policy = argv[i + 7], timeout = argv[i + 8],
    creator = argv[i + 9], tags = tags, name = table.concat(argv, '\n', i, i + 9) }
  group.count = args.int(argv[at], 1, room)
  if not group.count then return nil, 'count: 1..100' end
  return group, at + 1
end

-- parse reads items from position i to the end of the arguments, at most 100 with 2,000 tags; with(argv, i, item)
-- reads what else the function wants of each from position i, and returns the position behind it, or nil, a code and
-- what is wrong. It returns the items, or nil and an error reply.
function create.parse(argv, i, with)
  local items, n, tags = {}, 0, 0
  while argv[i] do
    local group, behind = head(argv, i, 100 - n)
    if not group then return nil, reply.err('invalid_input', behind) end
    i, tags = behind, tags + group.count * #group.tags / 2
    for _ = 1, group.count do
      local item = { id = argv[i], digest = argv[i + 1], payload = argv[i + 2], group = group }
      i, n = i + 3, n + 1
      if not item.payload then
        return nil, reply.err('invalid_input', 'arguments: item ' .. reply.int(n) .. ' is cut short')
      end
      if with then
        local code, detail
        i, code, detail = with(argv, i, item)
        if not i then return nil, reply.err(code, detail, item.id) end
      end
      items[n] = item
    end
  end
  if n == 0 then return nil, reply.err('invalid_input', 'count: 1..100') end
  if tags > 2000 then return nil, reply.err('invalid_input', 'tags: at most 2000 a call') end
  return items
end

-- alike tells whether two groups differ in nothing but tags. Their names tell, as nothing of a group that is not
-- refused has a line end, but maybe its creator.
local function alike(a, b) return a.name == b.name and a.creator == b.creator end

-- shape is a new template for a group whose like was judged before, nil if there was none or more is to be looked at.
function create.shape(ctx, group)
  local s = not ctx.gates and shapes[group.name]
  if not s or s.creator ~= group.creator then return nil end
  return { row = s.row, route = route.find(ctx, s.row), priority = s.priority, categories = s.categories,
    state = 'R1f', shape = s }
end

-- keep keeps the shape of a group that was not refused, if it says nothing of gates or times.
local function keep(ctx, group, t)
  if ctx.gates or group.delay ~= '' or group.deadline ~= '' or string.find(group.name, '\31', 1, true) then return end
  if shaped == 256 then shapes, shaped = {}, 0 end
  shapes[group.name] = { row = t.row, creator = group.creator, priority = t.priority, categories = t.categories,
    core = t.core, stem = record.stem(t.core) }
  shaped = shaped + 1
end

-- template judges a group: what its executions begin with, or why they are refused. Groups mostly differ in nothing
-- but tags, so one that is like the one before takes over its template; where tags have gates, it must have the same
-- ones.
function create.template(ctx, group)
  local last, caps, gates, wrong = ctx.cache.group, group.capabilities, '', nil
  local t = last and alike(last, group) and last.template
  if t and ctx.gates == '3' and (last.tags ~= none or group.tags ~= none) or
      not t and (ctx.gates or string.find(caps, '\31', 1, true)) then
    caps, gates, wrong = gate.resolve(ctx, group)
    if t and (wrong or t.gates ~= gates) then t = nil end
  end
  if not t then t = create.shape(ctx, group) end
  if not t then
    t = { core = {}, gates = not wrong and gates }
    t.refusal = wrong or create.judge(ctx, group, t, caps, gates)
    if not t.refusal then keep(ctx, group, t) end
  end
  ctx.cache.group, group.template = group, t
  return t
end

-- judge fills a template of a group with these capabilities and gates and returns why it is refused, or nil.
function create.judge(ctx, g, t, caps, gates)
  local c, ok = t.core, true
  t.row = route.row(g.namespace, g.lane, g.kind, caps, gates)
  t.route = route.find(ctx, t.row)
  if not t.route then
    local part = route.validate(g.namespace, g.lane, g.kind, caps)
    if part then return (part == 'capabilities' and '-invalid_capabilities ' or '-invalid_input ') .. part end
  end
  local priority = args.int((string.gsub(g.priority, '^%-', '')), 0, 9007199254740991)
  if not priority then return '-invalid_input priority' end
  t.priority = string.byte(g.priority, 1) == 45 and 0 or math.min(priority, 9000)
  if t.priority > 0 then c.priority = reply.int(t.priority) end
  t.delay, ok = args.instant(g.delay, ctx.now)
  if not ok then return '-invalid_input delay: whole ms, at most ten years' end
  if t.delay and t.delay <= ctx.now then t.delay = nil end
  if t.delay then c.delay_until = reply.int(t.delay) end
  t.deadline, ok = args.instant(g.deadline, ctx.now)
  if not ok then return '-invalid_input deadline: whole ms, at most ten years' end
  if t.deadline then c.deadline = reply.int(t.deadline) end
  if g.policy ~= '' then
    local numbers, categories, keep = policy.split(g.policy)
    if not numbers then return '-invalid_policy packed policy' end
    c.policy = numbers
    if keep ~= '' then c.retention = keep end
    if categories ~= '' then
      c.has_categories = '1'
      t.categories = categories
    end
  end
  if g.timeout ~= '' then
    if not args.int(g.timeout, 1, 315360000000) then return '-invalid_input attempt timeout: 1 ms to ten years' end
    c.attempt_timeout = g.timeout
  end
  if #g.creator > 64 then return '-invalid_input creator: at most 64 bytes' end
  if g.creator ~= '' then c.creator = g.creator end
  t.state = t.delay and 'R2af' or 'R1f'
  c.state = t.state
  c.created_at = ctx.t
  return nil
end

-- refuse judges an item: its group, its tags, and what belongs to it alone.
function create.refuse(ctx, item)
  local group = item.group
  local t, tags = group.template or create.template(ctx, group), group.tags
  if t.refusal then return t.refusal end
  if not args.uuid(item.id) then return '-invalid_input execution id' end
  if #item.digest > 64 then return '-invalid_input digest: at most 64 bytes' end
  if #item.payload > 1048576 then return '-payload_too_large payload: at most 1048576 bytes' end
  if tags == none then return nil end
  local code, detail = args.wrong_tags(tags)
  return code and '-' .. code .. ' ' .. detail or nil
end

-- known answers for an item whose id exists, in the store or earlier in this call as twin; nil when it is new.
function create.known(ctx, item, twin)
  local digest, state, stored = item.digest, nil, nil
  if twin then
    state, stored = twin.group.template.state, twin.digest
  else
    if ctx.cache.unknown then return nil end
    local c = core.read(ctx, item.id)
    state, stored = c.state or '', c.digest or ''
    if not c.state then
      state, stored = purge.read(ctx, item.id)
      if not state then return nil end
      digest = purge.digest(digest)
    end
  end
  if digest ~= '' and stored ~= '' and digest ~= stored then return '-idempotency_conflict ' .. item.id end
  return '=' .. state
end

-- full tells whose maximum of classes the route of a group would exceed, nil when it exists or may still be made.
local function full(ctx, t)
  if t.route or t.new then return nil end
  local whose
  t.new, whose = route.room(ctx, t.row)
  return whose
end

-- admit tells why a new item cannot be made now, or nil: its lane is closed, or there is no room for another route.
function create.admit(ctx, item)
  local closed = lane.refusal(ctx, item.group.namespace, item.group.lane)
  if closed then return '-' .. closed end
  local whose = full(ctx, item.group.template)
  return whose and '-too_many_routes ' .. whose or nil
end

-- look asks once whether any of the executions of a call exists, so that none of the usual new ones need be asked for.
function create.look(ctx, items)
  local list = {}
  for i = 1, #items do
    list[2 * i - 1], list[2 * i] = keys.core(ctx.r, items[i].id), keys.tombstone(ctx.r, items[i].id)
  end
  ctx.cache.unknown = redis.call('EXISTS', unpack(list)) == 0
end

-- place gives the executions of a template their route.
function create.place(ctx, t)
  t.route = t.route or route.find(ctx, t.row) or route.add(ctx, t.row)
  if t.core then t.core.route = t.route end
end

-- fields are those that the executions of a placed template begin with.
local function fields(ctx, t)
  if not t.shape then return t.core end
  local c = {}
  for field, value in pairs(t.shape.core) do c[field] = value end
  c.route, c.created_at = t.route, ctx.t
  return c
end

-- write stores one judged item. m are the further fields of a member of a flow, and whether it is blocked.
function create.write(ctx, item, m)
  local t = item.group.template
  if not t.written then
    create.place(ctx, t)
    t.score = t.priority == 0 and ctx.t
      or lane.score(ctx, { created_at = ctx.t, priority = t.priority, route = t.route })
    if t.shape then
      t.before, t.named = record.grow(t.shape.stem, t.route, ctx.t)
    else
      t.before, t.named = record.fresh(t.core)
    end
    t.written = true
  end
  local id, digest, payload, tags = item.id, item.digest, item.payload, item.group.tags
  local before, named = t.before, t.named
  local key = item.key and keyed.take(ctx, item)
  if tags ~= none and named ~= '\n' then before = nil end
  if m and before then before, named = record.joining(before, named, m.fields) end
  if before then
    if tags ~= none then named = record.tagging(named) end
    if key then named = record.holding(named, key) end
  else
    local c = {}
    for field, value in pairs(fields(ctx, t)) do c[field] = value end
    for field, value in pairs(m and m.fields or none) do c[field] = value end
    if digest ~= '' then c.digest = digest end
    if key then c.key = key end
    if tags ~= none then c.has_tags = '1' end
    if #payload > 0 then c.input_size = reply.int(#payload) end
    if #payload > 0 and #payload <= record.inline then c.input = payload end
    record.add(ctx, id, c)
  end
  if before then record.splice(ctx, id, record.compose(before, named, digest, payload)) end
  if #payload > record.inline then record.write(ctx, keys.input(ctx.r, id), payload) end
  if tags ~= none then redis.call('HSET', keys.tags(ctx.r, id), unpack(tags)) end
  if t.categories then redis.call('HSET', keys.attempts(ctx.r, id), 'categories', t.categories) end
  route.used(ctx, t.route, 1)
  catalogue.add(ctx, t.route, ctx.t, id, tags)
  if m and m.blocked then
    indexes.block(ctx, id, ctx.t)
  elseif t.delay then
    timers.put(ctx, timers.delayed, t.delay, id)
  else
    indexes.enqueue(ctx, t.route, t.score, id)
  end
  if t.deadline then indexes.alarm(ctx, t.deadline, id) end
end

-- plainly makes executions that have all in common and whose like were made before, without a table for each, if they
-- have no keys, are all right, new, and nobody asked for more. It returns the answer; nil if it has done nothing.
function create.plainly(ctx, argv)
  local group, at = head(argv, 2, 100)
  if not group or not ctx.calm then return nil end
  local n, s, tags = group.count, shapes[group.name], group.tags
  if tags ~= none and (n * #tags > 4000 or s and s.stem.named ~= '\n' or args.wrong_tags(tags)) then return nil end
  if argv[at + 3 * n] or not argv[at + 3 * n - 1] or not s or s.creator ~= group.creator or s.categories then
    return nil
  end
  local route_id, r = route.find(ctx, s.row), ctx.r
  if not route_id then return nil end
  local list, seen = {}, {}
  for i = 1, n do
    local id, digest, payload = argv[at + 3 * i - 3], argv[at + 3 * i - 2], argv[at + 3 * i - 1]
    if not args.uuid(id) or seen[id] or #digest > 64 or #payload > 1048576 then return nil end
    seen[id], list[i], list[n + i] = true, keys.core(r, id), keys.tombstone(r, id)
  end
  if redis.call('EXISTS', unpack(list)) > 0 then return nil end
  local before, named = record.grow(s.stem, route_id, ctx.t)
  if tags ~= none then named = record.tagging(named) end
  local score = s.priority == 0 and ctx.t
    or lane.score(ctx, { created_at = ctx.t, priority = s.priority, route = route_id })
  local written, queue, made, out, answer = record.writes(ctx), {}, {}, { 1, 'OK', reply.int(n) }, '+R1f'
  local size, digest, lead
  for i = 1, n do
    local id, payload = argv[at + 3 * i - 3], argv[at + 3 * i - 1]
    if #payload ~= size or argv[at + 3 * i - 2] ~= digest then
      size, digest = #payload, argv[at + 3 * i - 2]
      lead = record.lead(before, named, digest, size)
    end
    if size <= record.inline then
      written[2 * i - 1], written[2 * i] = list[i], lead .. payload
    else
      written[2 * i - 1], written[2 * i] = list[i], lead
      redis.call('SET', keys.input(r, id), payload)
    end
    if tags ~= none then redis.call('HSET', keys.tags(r, id), unpack(tags)) end
    queue[2 * i - 1], queue[2 * i], out[3 + i] = score, id, answer
    if s.priority > 0 then made[2 * i - 1], made[2 * i] = ctx.t, id end
  end
  indexes.enqueue_all(ctx, route_id, queue)
  catalogue.add_all(ctx, route_id, s.priority == 0 and queue or made, tags)
  route.used(ctx, route_id, n)
  indexes.apply(ctx)
  return out
end

-- close announces the routes that were made.
function create.close(ctx)
  if ctx.moves.spread then ready.spread(ctx) end
  if ctx.moves.routes_added then doorbell.table_changed(ctx) end
end
