-- ff_release_grant: returns up to 100 executions that were granted to a session to their queues, and closes routes
-- whose gates refuse, for so many ms: what waits there is not handed out until then, or until ff_open_route. If that
-- has happened since the grant, which told wakes, the route stays open; 0 closes it anyway. reserved is 1 if a gate
-- may have a hold of the execution. An answer is + or = (it is not granted any more).
-- Flags:   allow-oom
-- Go:      Engine.ReleaseGrants
-- Args:    protocol session:bytes(1..64) grants:rows(0..100) {id:id epoch:n reserved:flag} routes:rows(0..100)
--          {route:n(1..) pause:ms(1..86400000) why:bytes(256) wakes:n}
-- Replies: OK answers:rows {answer:text}
-- Errors:  @root invalid_input
local function ff_release_grant(ctx, q)
  local id, grants, routes = q.session, q.grants, q.routes
  local out = { 1, 'OK', reply.int(#grants) }
  for i = 1, #routes do
    local x, route_id, wakes = routes[i], reply.int(routes[i].route), reply.int(routes[i].wakes)
    if gate.of(ctx, route_id) ~= '' and (wakes == '0' or wakes == gate.wakes(ctx, route_id)) then
      gate.close(ctx, route_id, ctx.now + x.pause, x.why)
      ready.drop(ctx, route_id)
    end
  end
  for i = 1, #grants do
    local g = grants[i]
    local c, epoch, answer = core.read(ctx, g.id), g.epoch, '='
    g.epoch = reply.int(epoch)
    if c.state and core.granted(c) and c.grant_epoch == g.epoch then
      if c.grant_session == id then
        settle.ungrant(ctx, c, g.id, not g.reserved)
        answer = '+'
      end
    elseif g.reserved and c.route and c.epoch ~= g.epoch and
        epoch <= math.max(tonumber(c.epoch or '0'), tonumber(c.grant_epoch or '0')) then
      -- the hold is nobody's; epochs grow, so some never ran for sure
      gate.leave(ctx, c.route, g.id, g.epoch, tonumber(c.epoch or '0') < epoch and '0' or '1')
    end
    out[#out + 1] = answer
  end
  flow.apply(ctx)
  return out
end
