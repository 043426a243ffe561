-- ff_claim_next: claims up to max executions from the routes of a subscription, fresh, retried, resumed and requeued
-- alike, with everything their handlers need. Opens the session when it finds work. A repeated claim number
-- answers what is still held under it. Work with gates is granted instead, at most grants of it, and not at all if
-- that is 0. A claim's header is one slot: id attempt epoch type route priority created claimed retries reclaims
-- timeleft deadlinein sequence input tags steps resume, and for a member of a flow inputs. The last five are 0
-- (none), 1 (follows) or 2 (to be read by a call of its own); tags is never 2. Of a member follows one slot with flow
-- and node. A grant is one slot: id epoch route wakes. gated is 1 if there is work with gates for the subscription. The
-- rows at the end are of those routes of the claims and grants that are not their classes' own.
-- Flags:   none
-- Go:      Engine.ClaimNext
-- Args:    protocol search
-- Replies: OK found
-- Errors:  @root invalid_input lease_expired claim_out_of_order subscription_unknown
local function ff_claim_next(k, argv)
  local ctx, refused = root.enter(k, argv, true)
  if not ctx then return refused end
  local q, bad = claim.parse(argv, 2)
  if not q then return bad end
  return claim.run(ctx, q)
end
