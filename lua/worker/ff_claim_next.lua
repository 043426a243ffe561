-- ff_claim_next: claims up to max executions from the routes of an interest, fresh, retried, resumed and requeued
-- alike, with everything their handlers need. Opens the session when it finds work. A repeated claim number
-- answers what is still held under it. A claim's header is one slot: id attempt epoch type route priority created
-- claimed retries reclaims timeleft deadlinein sequence input tags steps, the last three 0 (none), 1 (follows) or 2
-- (to be read by plain GET or HGETALL); tags is never 2.
-- Flags:   none
-- Go:      Engine.ClaimNext
-- Args:    protocol session number ttl max interest table wait rotation
-- Replies: OK duplicate registered more overdue full version rows {id row} claims {header [input] [tags {key value}] [steps {name value}] [resume]}
-- Errors:  invalid_input lease_expired claim_out_of_order interest_unknown partition_missing partition_frozen protocol_mismatch
local function ff_claim_next(k, argv)
  local ctx, refused = root.enter(k, argv, true)
  if not ctx then return refused end
  local q, bad = claim.parse(argv, 2)
  if not q then return bad end
  return claim.run(ctx, q)
end
