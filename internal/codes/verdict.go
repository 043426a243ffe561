package codes

// The values of admission.Verdict.
const (
	WithinBudget = "OK"
	SoftBreach   = "SOFT_BREACH"
	HardBreach   = "HARD_BREACH"
)
