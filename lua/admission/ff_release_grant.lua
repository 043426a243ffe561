-- ff_release_grant: returns up to 100 executions that were granted to a session to their queues, and closes routes
-- whose gates refuse, for so many ms: what waits there is not handed out until then, or until ff_open_route. If that
-- has happened since the grant, which told wakes, the route stays open; 0 closes it anyway. reserved is 1 if a quota
-- may have a hold of the execution. An answer is + or = (it is not granted any more).
-- Flags:   allow-oom
-- Go:      Engine.ReleaseGrants
-- Args:    protocol session:bytes(1..64) grants:rows(0..100) {id:id epoch:text reserved:flag} routes:rows(0..100)
--          {route:n(1..) pause:ms(1..86400000) why:bytes(256) wakes:text}
-- Replies: OK answers:rows {answer:text}
-- Errors:  @root invalid_input
local function ff_release_grant(ctx, argv)
  local id = argv[2]
  if not id or #id < 1 or #id > 64 then return reply.err('invalid_input', 'session') end
  local grants, at = args.rows(argv, 3, 0, 100, { 'id', 'epoch', 'reserved' })
  if not grants then return reply.err('invalid_input', 'count: 0..100') end
  local routes, behind = args.rows(argv, at, 0, 100, { 'route', 'pause', 'why', 'wakes' })
  if not routes or argv[behind] then return reply.err('invalid_input', 'routes: 0..100') end
  for i = 1, #grants do
    local g = grants[i]
    if not args.id(g.id) then return reply.err('invalid_input', 'execution id') end
    if not args.int(g.epoch, 0, 9007199254740991) then return reply.err('invalid_input', 'epoch') end
    if g.reserved ~= '0' and g.reserved ~= '1' then return reply.err('invalid_input', 'reserved: 0 or 1') end
  end
  for i = 1, #routes do
    local x = routes[i]
    if not args.int(x.route, 1, 9007199254740991) then return reply.err('invalid_input', 'route') end
    if not args.int(x.pause, 1, 86400000) then return reply.err('invalid_input', 'closed for: 1..86400000 ms') end
    if #x.why > 256 then return reply.err('invalid_input', 'why: at most 256 bytes') end
    if not args.int(x.wakes, 0, 9007199254740991) then return reply.err('invalid_input', 'wakes') end
  end

  local out = { 1, 'OK', argv[3] }
  for i = 1, #routes do
    local x = routes[i]
    if gate.of(ctx, x.route) ~= '' and (x.wakes == '0' or x.wakes == gate.wakes(ctx, x.route)) then
      gate.close(ctx, x.route, ctx.now + tonumber(x.pause), x.why)
      ready.drop(ctx, x.route)
    end
  end
  for i = 1, #grants do
    local g = grants[i]
    local c, epoch, answer = core.read(ctx, g.id), tonumber(g.epoch), '='
    if c.state and core.granted(c) and c.grant_epoch == g.epoch then
      if c.grant_session == id then
        settle.ungrant(ctx, c, g.id, g.reserved == '0')
        answer = '+'
      end
    elseif g.reserved == '1' and c.route and c.epoch ~= g.epoch and
        epoch <= math.max(tonumber(c.epoch or '0'), tonumber(c.grant_epoch or '0')) then
      -- the hold is nobody's; epochs grow, so some never ran for sure
      gate.leave(ctx, c.route, g.id, g.epoch, tonumber(c.epoch or '0') < epoch and '0' or '1')
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
