package admit

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// How long a route is closed at most, unless something wakes it.
const (
	longestPause = time.Hour // of a rate that refuses; whatever makes room wakes earlier, but a wake may be lost
	budgetPause  = 30 * time.Second
	capPause     = 10 * time.Second
	missingPause = 30 * time.Second
	errorPause   = time.Second
)

// RefusalKind says why a gate let nothing more pass.
type RefusalKind string

// The kinds.
const (
	RefusedBudget   RefusalKind = "budget"    // it is exhausted
	RefusedRate     RefusalKind = "rate"      // as many as may have started in the window
	RefusedCap      RefusalKind = "cap"       // as many as may run at once
	RefusedNotFound RefusalKind = "not_found" // there is no such budget or quota
	RefusedError    RefusalKind = "error"     // it could not be asked
	RefusedUnknown  RefusalKind = "unknown"   // the reply did not say what the route is
)

// Refusal is why a route was closed, and for how long.
type Refusal struct {
	Kind      RefusalKind
	Gate      flowfabric.Gate
	Dimension string // of a budget
	Used      int64  // of it
	Limit     int64  // of it
	For       time.Duration
}

// Text is what the closed route shows: "budget <name> <dimension> <used> <limit>", "quota <name> rate", "quota <name> cap",
// "budget_not_found <name>", "quota_policy_not_found <name>", "unavailable budget <name>", "unavailable quota <name>", or "unavailable route".
func (r Refusal) Text() string {
	switch r.Kind {
	case RefusedBudget:
		return fmt.Sprintf("%s %s %d %d", r.Gate, r.Dimension, r.Used, r.Limit)
	case RefusedRate, RefusedCap:
		return r.Gate.String() + " " + string(r.Kind)
	case RefusedNotFound:
		if r.Gate.IsBudget() {
			return "budget_not_found " + r.Gate.Name()
		}
		return "quota_policy_not_found " + r.Gate.Name()
	case RefusedError:
		return "unavailable " + r.Gate.String()
	}
	return "unavailable route"
}

// exhausted is the refusal of a budget.
func exhausted(gate flowfabric.Gate, room engine.Room) Refusal {
	span := budgetPause
	if room.Left > 0 {
		span = min(span, room.Left)
	}
	return Refusal{Kind: RefusedBudget, Gate: gate, Dimension: room.Dimension, Used: room.Used, Limit: room.Limit, For: span}
}

// full is the refusal of a quota.
func full(gate flowfabric.Gate, a engine.Admitted) Refusal {
	r := Refusal{Kind: RefusedRate, Gate: gate, For: max(a.Retry, time.Millisecond)}
	if a.Why == string(RefusedCap) {
		r.Kind, r.For = RefusedCap, min(r.For, capPause)
	}
	return r
}
