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
	RefusedAmount   RefusalKind = "amount"    // an amount is used up, or what was refused does not fit yet
	RefusedRate     RefusalKind = "rate"      // as many as may have started in the window
	RefusedCap      RefusalKind = "cap"       // as many as may run at once
	RefusedNotFound RefusalKind = "not_found" // there is no such gate
	RefusedError    RefusalKind = "error"     // it could not be asked
	RefusedUnknown  RefusalKind = "unknown"   // the reply did not say what the route is
)

// Refusal is why a route was closed, and for how long.
type Refusal struct {
	Kind      RefusalKind
	Gate      flowfabric.Gate
	Dimension string // of an amount
	Used      int64  // of it
	Limit     int64  // of it
	Refused   int64  // what of it does not fit; 0 = nothing does
	For       time.Duration
}

// Text is what the closed route shows, as gatetext.ParseClosing reads it. The name of a limit of a key says everything.
func (r Refusal) Text() string {
	switch r.Kind {
	case RefusedAmount:
		text := fmt.Sprintf("gate %s amount %s %d %d", r.Gate.Name(), r.Dimension, r.Used, r.Limit)
		if r.Refused > 0 {
			text += fmt.Sprintf(" %d", r.Refused)
		}
		return text
	case RefusedRate, RefusedCap:
		return "gate " + r.Gate.Name() + " " + string(r.Kind)
	case RefusedNotFound:
		return "gate_not_found " + r.Gate.Name()
	case RefusedError:
		return "unavailable gate " + r.Gate.Name()
	}
	return "unavailable route"
}

// Blocker is what closing a queue for want of an amount needs of the server; *engine.Engine is one.
type Blocker interface {
	Waker
	Admit(ctx context.Context, name string, at engine.Waiter, ttl time.Duration, look bool,
		holds []engine.Hold) (engine.Admitted, error)
	ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn,
		closings []engine.RouteClosing) error
}

// Block closes the queue of an execution whose spend a gate refuses, puts it back there, has the queue woken when there
// is room, and looks whether there is some meanwhile: a wake before it was asked for goes unheard, and others wait
// behind who is not there. closing names the queue, and how often it had been woken when the execution was claimed: if
// it was since, it stays open, for another one may go on.
func Block(ctx context.Context, e Blocker, fence flowfabric.Fence, closing engine.RouteClosing, r Refusal,
	release func() error) error {
	partition := fence.Execution.Partition()
	closing.For, closing.Why = r.For, r.Text()
	if err := e.ReleaseGrants(ctx, partition, fence.Session, nil, []engine.RouteClosing{closing}); err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	a, err := e.Admit(ctx, r.Gate.Name(), engine.Waiter{Partition: partition, Route: closing.Route}, holdTTL, true,
		[]engine.Hold{{Execution: fence.Execution, Epoch: fence.Epoch}})
	if err == nil && a.Why == "" {
		_, _ = e.OpenRoutes(ctx, partition, []uint64{closing.Route}) // else it opens by itself
	}
	return nil
}

// full is the refusal of a gate.
func full(gate flowfabric.Gate, a engine.Admitted) Refusal {
	r := Refusal{Kind: RefusalKind(a.Why), Gate: gate, Dimension: a.Dimension, Used: int64(a.Used),
		Limit: int64(a.Limit), Refused: int64(a.Refused), For: max(a.Retry, time.Millisecond)}
	if r.Kind == RefusedCap {
		r.For = min(r.For, capPause)
	}
	return r
}
