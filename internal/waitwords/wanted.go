// Package waitwords is what package suspend, which users meet, and the machinery of waits above it have in common
// without showing it to users: the error that asks to suspend, what is checked, and the effects of signals.
package waitwords

import (
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Wanted is the error by which a handler asks to be suspended. The runtime finds it with errors.As.
type Wanted struct {
	Name        string   // of the wait; "" for one without
	Condition   string   // as lua/lib/condition.lua reads it
	Keys        []string // waitpoints that the condition numbers
	Reason      string
	Question    string // that people are asked, as JSON; "" for none
	Behaviour   string // when Within has passed
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
	if name == "" || len(name) > limits.MaxStepName {
		return fmt.Errorf("%w: wait name %.80q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, name, len(name),
			limits.MaxStepName)
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return fmt.Errorf("%w: wait name %.80q has byte %#02x at %d, want printable ASCII",
				flowfabric.ErrInvalidInput, name, name[i], i)
		}
	}
	return nil
}
