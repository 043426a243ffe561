-- ff_release_grant: returns up to 100 executions that were granted to a session to their queues, and closes routes whose gates refuse, for so many ms:
-- what waits there is not handed out until then, or until ff_open_route. If
-- that has happened since the grant, which told wakes, the route stays open; 0 closes it anyway. reserved is 1 if a quota may have a hold of the execution. An answer is + or =
-- (it is not granted any more).
-- Flags:   allow-oom
-- Go:      Engine.ReleaseGrants
-- Args:    protocol session count {id epoch reserved} count {route ms why wakes}
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_release_grant(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id, count = argv[2], args.int(argv[3], 0, 100)
  if not id or #id < 1 or #id > 64 then return reply.err('invalid_input', 'session') end
  if not count then return reply.err('invalid_input', 'count: 0..100') end
  local at = 4 + 3 * count
  local routes = args.int(argv[at], 0, 100)
  if not routes or routes > 0 and not argv[at + 4 * routes] or argv[at + 4 * routes + 1] then
    return reply.err('invalid_input', 'routes: 0..100')
  end
  for i = 4, at - 1, 3 do
    if not args.id(argv[i]) then return reply.err('invalid_input', 'execution id') end
    if not args.int(argv[i + 1], 0, 9007199254740991) then return reply.err('invalid_input', 'epoch') end
    if argv[i + 2] ~= '0' and argv[i + 2] ~= '1' then return reply.err('invalid_input', 'reserved: 0 or 1') end
  end
  for i = at + 1, at + 4 * routes, 4 do
    if not args.int(argv[i], 1, 9007199254740991) then return reply.err('invalid_input', 'route') end
    if not args.int(argv[i + 1], 1, 86400000) then return reply.err('invalid_input', 'closed for: 1..86400000 ms') end
    if #argv[i + 2] > 256 then return reply.err('invalid_input', 'why: at most 256 bytes') end
    if not args.int(argv[i + 3], 0, 9007199254740991) then return reply.err('invalid_input', 'wakes') end
  end

  local out = { 1, 'OK', argv[3] }
  for i = at + 1, at + 4 * routes, 4 do
    if gate.of(ctx, argv[i]) ~= '' and (argv[i + 3] == '0' or argv[i + 3] == gate.wakes(ctx, argv[i])) then
      gate.close(ctx, argv[i], ctx.now + tonumber(argv[i + 1]), argv[i + 2])
    end
  end
  for i = 4, at - 1, 3 do
    local c, answer = core.read(ctx, argv[i]), '='
    if c.s and core.granted(c) and c.ge == argv[i + 1] then
      if c.gs == id then
        settle.ungrant(ctx, c, argv[i], argv[i + 2] == '0')
        answer = '+'
      end
    elseif argv[i + 2] == '1' and c.r and c.e ~= argv[i + 1] and
        tonumber(argv[i + 1]) <= math.max(tonumber(c.e or '0'), tonumber(c.ge or '0')) then
      -- the hold is nobody's; epochs grow, so some never ran for sure
      gate.leave(ctx, c.r, argv[i], argv[i + 1], tonumber(c.e or '0') < tonumber(argv[i + 1]) and '0' or '1')
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
