-- ff_set_interest: stores which classes of work a kind of worker can serve, under a digest, and of which namespaces:
-- none given means all, and what weights of lanes its claims have (1..1000); a lane that is not named has the weight 1.
-- Class 0 exists nowhere; it keeps the set of a worker that can serve nothing yet from vanishing. Expires 10 minutes
-- after the last idle claim that used it.
-- Flags:   allow-oom
-- Go:      Engine.SetSubscription
-- Args:    protocol digest:hex(1..64) namespaces:rows {namespace:name(64)} classes:rows(0..1024) {class:n(1..)}
--          [lanes:rows {lane:text weight:n(0..1000)}]
-- Replies: OK digest:hex(1..64)
-- Errors:  @root invalid_input
local function ff_set_interest(ctx, argv)
  local digest, spaces, at = argv[2], args.list(argv, 3, 0, 256)
  if not digest or #digest < 1 or #digest > 64 or string.find(digest, '[^%x]') then
    return reply.err('invalid_input', 'digest: 1..64 hex digits')
  end
  if not spaces then return reply.err('invalid_input', 'count: 0..256 namespaces') end
  local classes, behind = args.list(argv, at, 0, 1024)
  if not classes then return reply.err('invalid_input', 'count: 0..1024 classes') end
  local lanes, last = {}, behind
  if argv[behind] then lanes, last = args.rows(argv, behind, 0, 256, { 'lane', 'weight' }) end
  if not lanes or argv[last] then return reply.err('invalid_input', 'count: 0..256 weights of lanes') end
  local first, own = route.space(ctx), #spaces == 0
  for i = 1, #spaces do
    if not args.name(spaces[i], 64) then return reply.err('invalid_input', 'namespace') end
    own = own or spaces[i] == first
  end
  local told = table.concat(spaces, '\31')
  for i = 1, #lanes do
    if not args.name(lanes[i].lane, 64) then return reply.err('invalid_input', 'lane') end
    if not args.int(lanes[i].weight, 1, 1000) then return reply.err('invalid_input', 'weight: 1..1000') end
    told = told .. (i == 1 and '\30' or '\31') .. lanes[i].lane .. '\31' .. lanes[i].weight
  end
  local members = { '0' }
  for i = 1, #classes do
    if not args.int(classes[i], 1, 999999999) then return reply.err('invalid_input', 'class') end
    if own then members[#members + 1] = classes[i] end
    members[#members + 1] = 'c' .. classes[i]
  end
  local key = keys.interest(ctx.r, digest)
  redis.call('DEL', key)
  for i = 1, #members, 500 do
    redis.call('SADD', key, unpack(members, i, math.min(i + 499, #members)))
  end
  redis.call('EXPIRE', key, 600)
  redis.call('SET', keys.spaces(ctx.r, digest), told, 'EX', 600)
  return reply.ok(digest)
end
