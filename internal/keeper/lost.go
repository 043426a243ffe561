package keeper

// Why a session ended when the server did not say so in answer to a claim or a renewal: values of the label cause of
// the metric flowfabric_sessions_lost_total.
const (
	lostTrust = "trust_ended"         // no renewal was answered in time
	lostLate  = "claim_answered_late" // so late that trust had ended
	lostWrite = "write_refused"       // the server answered a write under the session that it has expired
)
