-- ff_create_execution: admits up to 100 executions. Each item is judged alone: a refused one does not touch its
-- neighbours. An answer is +<state> (created), =<state> (the id existed, the payload digest agrees) or
-- -<code> <detail> (refused).
-- Flags:   none
-- Go:      Engine.CreateExecutions
-- Args:    protocol count {id namespace lane kind capabilities priority delay deadline policy timeout creator digest payload tags {key value}}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local ff_create = {}

-- read parses and judges one item from position i; it returns the item or nil, its error code and detail, and
-- always the position after it.
function ff_create.read(ctx, argv, i)
  local tags = argv[i + 13] == '0' and 0 or args.int(argv[i + 13], 0, 64)
  if not tags then return nil, i, 'invalid_input', 'tags: at most 64' end
  local after = i + 14 + 2 * tags
  local function bad(code, detail) return nil, after, code, detail end
  local x = { id = args.uuid(argv[i]), at = i, tags = tags, creator = argv[i + 10], digest = argv[i + 11], payload = argv[i + 12] }
  if not x.id then return bad('invalid_input', 'execution id') end
  x.row = route.row(argv[i + 1], argv[i + 2], argv[i + 3], argv[i + 4])
  x.route = route.find(ctx, x.row)
  if not x.route then
    local part = route.validate(argv[i + 1], argv[i + 2], argv[i + 3], argv[i + 4])
    if part then return bad(part == 'capabilities' and 'invalid_capabilities' or 'invalid_input', part) end
  end
  local ok
  if argv[i + 5] == '0' then
    x.priority = 0
  else
    local priority = args.int((string.gsub(argv[i + 5], '^%-', '')), 0, 9007199254740991)
    if not priority then return bad('invalid_input', 'priority') end
    x.priority = string.byte(argv[i + 5], 1) == 45 and 0 or math.min(priority, 9000)
  end
  x.delay, ok = args.instant(argv[i + 6], ctx.now)
  if not ok then return bad('invalid_input', 'delay: whole ms, at most ten years') end
  x.deadline, ok = args.instant(argv[i + 7], ctx.now)
  if not ok then return bad('invalid_input', 'deadline: whole ms, at most ten years') end
  if x.delay and x.delay <= ctx.now then x.delay = nil end
  if argv[i + 8] ~= '' then
    ctx.policies = ctx.policies or {}
    local p = ctx.policies[argv[i + 8]]
    if not p then
      local numbers, categories = policy.split(argv[i + 8])
      if not numbers then return bad('invalid_policy', 'packed policy') end
      p = { numbers, categories }
      ctx.policies[argv[i + 8]] = p
    end
    x.policy, x.categories = p[1], p[2]
  end
  if argv[i + 9] ~= '' then
    x.timeout = args.int(argv[i + 9], 1, 315360000000)
    if not x.timeout then return bad('invalid_input', 'attempt timeout: 1 ms to ten years') end
  end
  if #x.creator > 64 then return bad('invalid_input', 'creator: at most 64 bytes') end
  if #x.digest > 64 then return bad('invalid_input', 'digest: at most 64 bytes') end
  if #x.payload > 1048576 then return bad('payload_too_large', 'payload: at most 1048576 bytes') end
  for t = i + 14, after - 1, 2 do
    if not (argv[t] and argv[t + 1]) then return bad('invalid_input', 'tags') end
    if #argv[t] > 64 or not string.find(argv[t], '^%l[%l%d_]*%.[%l%d_.]*[%l%d_]$') or string.find(argv[t], '..', 1, true) then
      return bad('invalid_input', 'tags: key')
    end
    if #argv[t + 1] > 256 then return bad('invalid_input', 'tags: value of at most 256 bytes') end
  end
  return x, after
end

-- write stores one judged item. Its route exists.
function ff_create.write(ctx, argv, x)
  local w = { 's', x.delay and 'R2af' or 'R1f', 'r', x.route, 'ct', ctx.t }
  local function put(field, value)
    w[#w + 1] = field
    w[#w + 1] = value
  end
  if x.priority > 0 then put('pr', reply.int(x.priority)) end
  if x.digest ~= '' then put('pd', x.digest) end
  if x.policy then put('po', x.policy) end
  if x.categories and x.categories ~= '' then put('ca', x.categories) end
  if x.timeout then put('to', reply.int(x.timeout)) end
  if x.creator ~= '' then put('cr', x.creator) end
  if x.delay then put('du', reply.int(x.delay)) end
  if x.deadline then put('dl', reply.int(x.deadline)) end
  if #x.payload > 0 then put('in', reply.int(#x.payload)) end
  if x.tags > 0 then put('tg', '1') end
  redis.call('HSET', keys.core(ctx.r, x.id), unpack(w))
  if #x.payload > 0 then redis.call('SET', keys.input(ctx.r, x.id), x.payload) end
  if x.tags > 0 then redis.call('HSET', keys.tags(ctx.r, x.id), unpack(argv, x.at + 14, x.at + 13 + 2 * x.tags)) end
  if x.delay then
    home.delay(ctx, x.delay, x.id)
  else
    home.enqueue(ctx, x.route, ctx.now - x.priority * 1000000000000, x.id)
  end
  if x.deadline then home.alarm(ctx, x.deadline, x.id) end
end

local function ff_create_execution(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local count = args.int(argv[2], 1, 100)
  if not count then return reply.err('invalid_input', 'count: 1..100') end

  local items, seen, i = {}, {}, 3
  local new_rows, room = {}, nil
  for n = 1, count do
    if not argv[i + 13] then return reply.err('invalid_input', 'arguments: item ' .. reply.int(n) .. ' is cut short') end
    local x, after, code, detail = ff_create.read(ctx, argv, i)
    if not x and after == i then return reply.err(code, detail) end
    i = after
    if not x then
      x = { status = code, detail = detail }
    else
      local stored = seen[x.id]
      if not stored then
        if redis.call('EXISTS', keys.core(ctx.r, x.id)) == 1 then
          local h = redis.call('HMGET', keys.core(ctx.r, x.id), 's', 'pd')
          stored = { s = h[1] or '', digest = h[2] or '' }
        end
      end
      if stored then
        if x.digest ~= '' and stored.digest ~= '' and x.digest ~= stored.digest then
          x.status, x.detail = 'idempotency_conflict', x.id
        else
          x.answer = '=' .. stored.s
        end
      else
        if not x.route and not new_rows[x.row] then
          room = room or 1024 - redis.call('HLEN', keys.routes(ctx.r))
          if room > 0 then
            room = room - 1
            new_rows[x.row] = true
          else
            x.status, x.detail = 'too_many_routes', '1024'
          end
        end
        if not x.status then
          x.answer, x.write = x.delay and '+R2af' or '+R1f', true
          seen[x.id] = { s = string.sub(x.answer, 2), digest = x.digest }
        end
      end
    end
    items[n] = x
  end
  if argv[i] then return reply.err('invalid_input', 'arguments: more than count items') end

  local out = { 1, 'OK', reply.int(count) }
  for n = 1, count do
    local x = items[n]
    if x.write then
      if not x.route then x.route = route.find(ctx, x.row) or route.add(ctx, x.row) end
      ff_create.write(ctx, argv, x)
    end
    out[#out + 1] = x.answer or '-' .. x.status .. ' ' .. x.detail
  end
  home.apply(ctx)
  if ctx.routes_added then bell.table_changed(ctx) end
  return out
end
