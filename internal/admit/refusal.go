package admit

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// How long a route is closed at most, unless something wakes it.
const (
	longestPause = time.Hour // of a rate that refuses; whatever makes room wakes earlier, but a wake may be lost
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
	Refused   int64  // what of it does not fit; 0 = nothing does
	For       time.Duration
}

// Text is what the closed route shows: "budget <name> <dimension> <used> <limit>[ <refused>]", "quota <name> rate",
// "quota <name> cap", "budget_not_found <name>", "quota_policy_not_found <name>", "unavailable budget <name>",
// "unavailable quota <name>", or "unavailable route".
func (r Refusal) Text() string {
	switch r.Kind {
	case RefusedBudget:
		text := fmt.Sprintf("%s %s %d %d", r.Gate, r.Dimension, r.Used, r.Limit)
		if r.Refused > 0 {
			text += fmt.Sprintf(" %d", r.Refused)
		}
		return text
	case RefusedRate, RefusedCap:
		return "quota " + r.Gate.Name() + " " + string(r.Kind) // also of a limit of a key, whose name says everything
	case RefusedNotFound:
		if r.Gate.IsBudget() {
			return "budget_not_found " + r.Gate.Name()
		}
		return "quota_policy_not_found " + r.Gate.Name()
	case RefusedError:
		if r.Gate.IsBudget() {
			return "unavailable budget " + r.Gate.Name()
		}
		return "unavailable quota " + r.Gate.Name()
	}
	return "unavailable route"
}

// exhausted is the refusal of a budget.
func exhausted(gate flowfabric.Gate, room engine.Room) Refusal {
	span := room.Pause
	if room.Left > 0 {
		span = min(span, room.Left)
	}
	return Refusal{Kind: RefusedBudget, Gate: gate, Dimension: room.Dimension, Used: room.Used, Limit: room.Limit,
		Refused: room.Refused, For: max(span, time.Millisecond)}
}

// Blocker is what closing a queue because of a budget needs of the server; *engine.Engine is one.
type Blocker interface {
	Waker
	CheckBudgets(ctx context.Context, partition uint16, route uint64, names []string,
		executions ...flowfabric.ExecutionID) ([]engine.Room, error)
	ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn,
		closings []engine.RouteClosing) error
}

// Block closes the queue of an execution whose spend a budget refuses, has it woken when there is room, and looks
// whether there is some meanwhile: a wake before it was asked for goes unheard.
func Block(ctx context.Context, e Blocker, fence flowfabric.Fence, route uint64, r Refusal) error {
	partition := fence.Execution.Partition()
	if err := e.ReleaseGrants(ctx, partition, fence.Session, nil,
		[]engine.RouteClosing{{Route: route, For: r.For, Why: r.Text()}}); err != nil {
		return err
	}
	rooms, err := e.CheckBudgets(ctx, partition, route, []string{r.Gate.Name()}, fence.Execution)
	if err == nil && rooms[0].Open { // if there is no such budget, the gate finds out
		_, err = e.OpenRoutes(ctx, partition, []uint64{route})
	}
	return err
}

// full is the refusal of a quota.
func full(gate flowfabric.Gate, a engine.Admitted) Refusal {
	r := Refusal{Kind: RefusedRate, Gate: gate, For: max(a.Retry, time.Millisecond)}
	if a.Why == string(RefusedCap) {
		r.Kind, r.For = RefusedCap, min(r.For, capPause)
	}
	return r
}
