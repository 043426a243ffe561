// Package waitwords is what package suspend, which users meet, and the machinery of waits above it have in common
// without showing it to users: the error that asks to suspend, what is checked, and the effects of signals.
package waitwords

import (
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// OverBudget is what the names of waits begin with that a gate asks for (admission.HardAsk), not a handler.
const OverBudget = "over budget: "

// Wanted is the error by which a handler asks to be suspended. The runtime finds it with errors.As.
type Wanted struct {
	Name        string   // of the wait; "" for one without
	Condition   string   // as lua/lib/condition.lua reads it
	Keys        []string // waitpoints that the condition numbers
	Reason      string
	Question    string                   // that people are asked, as JSON; "" for none
	Several     bool                     // it is several questions, by the keys of their waitpoints
	Lives       map[string]time.Duration // by key; without one a waitpoint has that of the wait
	Behaviour   string                   // when Within has passed
	Within      time.Duration
	ResumeDelay time.Duration
}

func (w *Wanted) Error() string {
	if w.Name == "" {
		return "suspend the execution until its condition is met"
	}
	return "suspend the execution until " + w.Name + " is answered"
}

// ValidKid tells whether a text can be the id of a token key: 1..32 bytes of A-Z a-z 0-9 . _ -.
func ValidKid(kid string) bool {
	return kid != "" && len(kid) <= 32 &&
		strings.Trim(kid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// CheckName accepts 1..128 bytes of printable ASCII, like the names of steps.
func CheckName(name string) error {
	return valid.Printable("wait name", name, limits.MaxStepName)
}
