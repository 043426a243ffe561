-- create: how an execution comes into being, for the functions that create some. An item is fourteen arguments from
-- position i on, unless position d is given, where digest and payload of one without tags follow its id: id namespace lane kind capabilities priority delay deadline policy timeout creator digest payload tags, and the
-- tags' keys and values. Capabilities may be followed by the unit separator and the item's own gates. Everything is judged before anything is written.
local create = {}

-- template judges the ten arguments after the id. The items of a batch mostly share them, so an item that has the
-- same as the one before takes over its template, refusal included.
function create.template(ctx, argv, i)
  local t = ctx.template
  if t and (ctx.gates ~= '3' or argv[i + 13] == '0' and t.plain) then
    local same = true
    for n = 1, 10 do
      if argv[i + n] ~= argv[t.at + n] then
        same = false
        break
      end
    end
    if same then return t end
  end
  t = { at = i, core = {}, plain = argv[i + 13] == '0' }
  t.refusal = create.judge(ctx, argv, i, t)
  ctx.template = t
  return t
end

-- judge fills a template and returns why it is refused, or nil.
function create.judge(ctx, argv, i, t)
  local c, ok = t.core, true
  local caps, gates = argv[i + 4], ''
  if ctx.gates or string.find(caps, '\31', 1, true) then
    local wrong
    caps, gates, wrong = gate.resolve(ctx, argv, i)
    if wrong then return wrong end
  end
  t.row = route.row(argv[i + 1], argv[i + 2], argv[i + 3], caps, gates)
  t.route = route.find(ctx, t.row)
  if not t.route then
    local part = route.validate(argv[i + 1], argv[i + 2], argv[i + 3], caps)
    if part then return (part == 'capabilities' and '-invalid_capabilities ' or '-invalid_input ') .. part end
  end
  local priority = args.int((string.gsub(argv[i + 5], '^%-', '')), 0, 9007199254740991)
  if not priority then return '-invalid_input priority' end
  t.priority = string.byte(argv[i + 5], 1) == 45 and 0 or math.min(priority, 9000)
  if t.priority > 0 then c.pr = reply.int(t.priority) end
  t.delay, ok = args.instant(argv[i + 6], ctx.now)
  if not ok then return '-invalid_input delay: whole ms, at most ten years' end
  if t.delay and t.delay <= ctx.now then t.delay = nil end
  if t.delay then c.du = reply.int(t.delay) end
  t.deadline, ok = args.instant(argv[i + 7], ctx.now)
  if not ok then return '-invalid_input deadline: whole ms, at most ten years' end
  if t.deadline then c.dl = reply.int(t.deadline) end
  if argv[i + 8] ~= '' then
    local numbers, categories, keep = policy.split(argv[i + 8])
    if not numbers then return '-invalid_policy packed policy' end
    c.po = numbers
    if keep ~= '' then c.rt = keep end
    if categories ~= '' then
      c.ca = '1'
      t.categories = categories
    end
  end
  if argv[i + 9] ~= '' then
    if not args.int(argv[i + 9], 1, 315360000000) then return '-invalid_input attempt timeout: 1 ms to ten years' end
    c.to = argv[i + 9]
  end
  if #argv[i + 10] > 64 then return '-invalid_input creator: at most 64 bytes' end
  if argv[i + 10] ~= '' then c.cr = argv[i + 10] end
  t.state = t.delay and 'R2af' or 'R1f'
  c.s = t.state
  c.ct = ctx.t
  return nil
end

-- refuse judges what belongs to one item alone.
function create.refuse(argv, i, after, d)
  d = d or i + 11
  if not args.uuid(argv[i]) then return '-invalid_input execution id' end
  if #argv[d] > 64 then return '-invalid_input digest: at most 64 bytes' end
  if #argv[d + 1] > 1048576 then return '-payload_too_large payload: at most 1048576 bytes' end
  for t = i + 14, after - 1, 2 do
    local key, value = argv[t], argv[t + 1]
    if not args.tag(key) then return '-invalid_tag_key ' .. string.sub(key, 1, 64) end
    if #value > 256 then return '-invalid_input tags: value of at most 256 bytes' end
  end
  return nil
end

-- known answers for an id that exists, in the store or earlier in this call (with the digest at position before, in state); nil
-- when it is new.
function create.known(ctx, argv, i, d, before, state)
  local id, digest, stored = argv[i], argv[d or i + 11], nil
  if before then
    stored = argv[before]
  else
    if ctx.unknown then return nil end
    local c = core.read(ctx, id)
    state, stored = c.s or '', c.pd or ''
    if not c.s then
      state, stored = purge.read(ctx, id)
      if not state then return nil end
      digest = purge.digest(digest)
    end
  end
  if digest ~= '' and stored ~= '' and digest ~= stored then return '-idempotency_conflict ' .. id end
  return '=' .. state
end

-- room tells whether a template's route exists or may still be made.
function create.room(ctx, t)
  if t.route or t.new then return true end
  ctx.room = ctx.room or 1024 - redis.call('HLEN', keys.routes(ctx.r))
  ctx.rows = ctx.rows or {}
  if not ctx.rows[t.row] then
    if ctx.room <= 0 then return false end
    ctx.room = ctx.room - 1
    ctx.rows[t.row] = true
  end
  t.new = true
  return true
end

-- look asks once whether any of the executions of a call exists, so that none of the usual new ones need be asked for.
function create.look(ctx, ids)
  local list = {}
  for i = 1, #ids do list[2 * i - 1], list[2 * i] = keys.core(ctx.r, ids[i]), keys.tombstone(ctx.r, ids[i]) end
  ctx.unknown = redis.call('EXISTS', unpack(list)) == 0
end

-- write stores one judged item from position i. m are the further fields of a member of a flow, and whether it is blocked.
function create.write(ctx, argv, i, t, m, d)
  if not t.written then
    t.route = t.route or route.find(ctx, t.row) or route.add(ctx, t.row)
    t.core.r = t.route
    t.score = t.priority == 0 and ctx.t or lane.score(ctx, { ct = ctx.t, pr = t.priority, r = t.route })
    t.before, t.named = record.fresh(t.core)
    t.written = true
  end
  local id, digest, payload, tags = argv[i], argv[d or i + 11], argv[d and d + 1 or i + 12], d and '0' or argv[i + 13]
  local before, named = t.before, t.named
  if m then before, named = record.joining(before, named, m.fields) end
  if tags ~= '0' or not before then
    local c = {}
    for field, value in pairs(t.core) do c[field] = value end
    for field, value in pairs(m and m.fields or {}) do c[field] = value end
    if digest ~= '' then c.pd = digest end
    if tags ~= '0' then c.tg = '1' end
    if #payload > 0 then c['in'] = reply.int(#payload) end
    if #payload > 0 and #payload <= record.inline then c.input = payload end
    record.add(ctx, id, c)
  else
    record.splice(ctx, id, record.compose(before, named, digest, payload))
  end
  if #payload > record.inline then record.write(ctx, keys.input(ctx.r, id), payload) end
  if tags ~= '0' then
    redis.call('HSET', keys.tags(ctx.r, id), unpack(argv, i + 14, i + 13 + 2 * tonumber(tags)))
  end
  if t.categories then redis.call('HSET', keys.attempts(ctx.r, id), 'categories', t.categories) end
  home.used(ctx, t.route, 1)
  if m and m.blocked then
    home.block(ctx, id, ctx.t)
  elseif t.delay then
    home.delay(ctx, t.delay, id)
  else
    home.enqueue(ctx, t.route, t.score, id)
  end
  if t.deadline then home.alarm(ctx, t.deadline, id) end
end

-- close announces the routes that were made.
function create.close(ctx)
  if ctx.routes_added then bell.table_changed(ctx) end
end
