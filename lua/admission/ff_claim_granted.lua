-- ff_claim_granted: claims up to 100 executions that were granted to a session, whose gates let them pass, and notes
-- for their routes what these gates measure (gate.measure), so that they are told only what they have to know. An
-- answer is + (claimed now), = (an earlier identical call had claimed it) or -<code> <detail>: the grant was taken
-- back. The claims are those of + and =, in order.
-- Flags:   none
-- Go:      Engine.ClaimGranted
-- Args:    protocol session:bytes(1..64) grants:rows(1..100) {id:text epoch:text}
--          routes:rows(0..100) {route:n(1..) meters:bytes(2500)}
-- Replies: OK answers:rows {answer:text} claims
-- Errors:  @root invalid_input lease_expired
local ff_granted = {}

-- judge returns the answer for one, and its core if it is to be claimed or was.
function ff_granted.judge(ctx, session_id, id, epoch)
  if not args.id(id) then return '-invalid_input execution id' end
  local c = core.read(ctx, id)
  if not c.state then return '-execution_not_found' end
  if c.state == 'A1' and c.session == session_id and c.epoch == epoch then return '=', c end
  if not core.granted(c) or c.grant_session ~= session_id or c.grant_epoch ~= epoch then return '-stale_lease' end
  if c.deadline and tonumber(c.deadline) <= ctx.now or c.flow and graph.barred(ctx, c.flow) then
    return '-stale_lease'
  end
  return '+', c
end

local function ff_claim_granted(ctx, q)
  local id, grants = q.session, q.grants
  if not session.read(ctx, id).alive then return reply.err('lease_expired') end
  for i = 1, #q.routes do
    if not gate.measured(q.routes[i].meters) then return reply.err('invalid_input', 'routes: meters: name=ah,…') end
    gate.measure(ctx, reply.int(q.routes[i].route), q.routes[i].meters)
  end
  local out, list, seen = { 1, 'OK', reply.int(#grants) }, {}, {}
  for n = 1, #grants do
    local g = grants[n]
    local answer, c = ff_granted.judge(ctx, id, g.id, g.epoch)
    if seen[g.id] then answer, c = '-invalid_input the same execution twice in one call', nil end
    seen[g.id] = true
    out[3 + n] = answer
    if c then list[#list + 1] = { id = g.id, core = c } end
  end

  local wanted = { session = id }
  claim.granted(ctx, wanted, list)
  flow.apply(ctx)
  claim.describe(ctx, wanted, list, out)
  return out
end
