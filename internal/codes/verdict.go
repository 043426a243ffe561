package codes

// The values of Verdict in admission.Reported.
const (
	WithinBudget = "OK"
	SoftBreach   = "SOFT_BREACH"
	HardBreach   = "HARD_BREACH"
)
