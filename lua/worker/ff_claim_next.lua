-- ff_claim_next: claims up to max executions from the routes of an interest, fresh, retried, resumed and requeued
-- alike, with everything their handlers need. Opens the session when it finds work. A repeated claim number
-- answers what is still held under it.
-- Flags:   none
-- Go:      Engine.ClaimNext
-- Args:    protocol session number ttl max interest table wait rotation
-- Replies: OK duplicate registered more overdue full version rows {id row} claims {id attempt epoch type route priority created claimed retries reclaims timeleft deadline sequence inputmode input tags {key value} stepmode [steps {name value}]}
-- Errors:  invalid_input lease_expired claim_out_of_order interest_unknown partition_missing partition_frozen protocol_mismatch
local function ff_claim_next(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local q, bad = claim.parse(argv, 2)
  if not q then return bad end
  return claim.run(ctx, q)
end
