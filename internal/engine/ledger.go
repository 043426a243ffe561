package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Reservation is what the holder of an execution sets aside of a gate before it uses it.
type Reservation struct {
	Gate      string
	Execution flowfabric.ExecutionID
	Epoch     uint64 // of the lease; 0: it is a share, which the parent of the execution sets aside for it
	Number    uint64 // of the reservation among those of the lease, from 1
	// Last is the gate whose word decides if the reservation is in several, "" if it is this one.
	Last  string
	Of    flowfabric.ExecutionID // of a share: the parent, whose own share, if there is one, it is a part of
	Below uint64                 // nobody asks any more about reservations of the lease with a lower number
	// Priority and Since, when it was created, of the execution: who waits first.
	Priority int
	Since    time.Time
	Label    string // of calls that are alike, at most 64 bytes: what they use is remembered
	Amounts  map[string]int64
}

func (x Reservation) call(how string) wire.Reserve {
	q := wire.Reserve{Name: x.Gate, How: how, Execution: full(x.Execution), Epoch: int(x.Epoch), Number: int(x.Number),
		Last: x.Last, Below: int(x.Below), Priority: x.Priority, Since: max(0,
			int(x.Since.UnixMilli())), Label: x.Label}
	if how == "reserve" && !x.Of.IsZero() {
		q.Of = full(x.Of)
	}
	if how == "reserve" || how == "settle" {
		q.Dimensions = amounts[wire.ReserveDimension](x.Amounts)
	}
	return q
}

// reserve is the call of all of them (lua/admission/ff_reserve.lua).
func (e *Engine) reserve(ctx context.Context, q wire.Reserve) (wire.ReserveReply, bool, []Waiter, error) {
	if f, known := e.gateFacts.read(q.Name); known && f.ignores && q.How == "reserve" {
		return wire.ReserveReply{Verdict: codes.WithinBudget, Parent: f.parent}, false, nil, nil
	}
	r, already, err := read[wire.ReserveReply](e.onGate(ctx, flowfabric.Gate(q.Name), false, q))
	if err == nil && q.How == "reserve" {
		e.gateFacts.note(q.Name, r.Parent, !r.Applied && r.Verdict == codes.WithinBudget)
	}
	if err == nil && q.Label != "" {
		e.gateFacts.learn(q.Name, q.Label, r.Estimate)
	}
	wake, err := waiters("ff_reserve", r.Waiters, err)
	return r, already, wake, err
}

// reservation is a call of ff_reserve whose answer is that of a spend (lua/admission/ff_reserve.lua).
func (e *Engine) reservation(ctx context.Context, q wire.Reserve) (admission.Reported, []Waiter, error) {
	r, already, wake, err := e.reserve(ctx, q)
	if err != nil {
		return admission.Reported{}, nil, err
	}
	out, err := reported(wire.SpendReply{Verdict: r.Verdict, Applied: r.Applied, Late: r.Late, Action: r.Action,
		Left: r.Left, Period: r.Period, Parent: r.Parent, Breaches: r.Breaches}, already)
	return out, wake, err
}

// Reserve sets amounts aside, all dimensions or none (lua/admission/ff_reserve.lua). What is refused is no error:
// Applied is false, with a breach. The same reservation again answers as before. denied.NoGate, denied.Delta,
// denied.Dimension, denied.Idempotency (it was made with other amounts); denied.StaleLease: the lease is over, or the
// reservation was given up.
func (e *Engine) Reserve(ctx context.Context, x Reservation) (admission.Reported, []Waiter, error) {
	return e.reservation(ctx, x.call("reserve"))
}

// Settle says what was used of a reservation, whatever was reserved: what is above it counts, too. Once for all, but
// that what was charged because the lease was over is corrected. A settlement without a reservation is charged.
func (e *Engine) Settle(ctx context.Context, x Reservation) (admission.Reported, []Waiter, error) {
	return e.reservation(ctx, x.call("settle"))
}

// Unreserve gives a reservation back: nothing of it was used, and it cannot be made again.
func (e *Engine) Unreserve(ctx context.Context, x Reservation) (admission.Reported, []Waiter, error) {
	return e.reservation(ctx, x.call("release"))
}

// SuspectReservation is one whose lease may be over.
type SuspectReservation struct {
	Hold
	Gate   string
	Number uint64
	Last   string // the gate whose word decides, "" = this one; "/": it is a call of a service
}

// Suspects are up to 64 reservations of a partition of gates that nobody has vouched for in a minute
// (lua/admission/ff_settle_gates.lua). denied.PartitionMissing where there never was a gate.
func (e *Engine) Suspects(ctx context.Context, partition uint16) (out []SuspectReservation, err error) {
	r, _, err := read[wire.SettleGatesReply](e.sendTo(ctx, e.gates[partition], wire.SettleGates{}))
	for _, x := range r.Suspects {
		s := SuspectReservation{Gate: x.Gate, Last: x.Last}
		who, rest, _ := strings.Cut(x.Hold, ":")
		epoch, number, _ := strings.Cut(rest, ".")
		var wrong [3]error
		s.Execution, wrong[0] = gatetext.ParseSpender(who)
		s.Epoch, wrong[1] = strconv.ParseUint(epoch, 10, 64)
		s.Number, wrong[2] = strconv.ParseUint(number, 10, 64)
		if bad := errors.Join(wrong[:]...); bad != nil {
			return out, unread("ff_settle_gates", fmt.Errorf("suspect %q: %w", clip(x.Hold), bad))
		}
		out = append(out, s)
	}
	return out, err
}

// Vouch tells a gate that the lease of a reservation lasts.
func (e *Engine) Vouch(ctx context.Context, x SuspectReservation) error {
	q := wire.SettleGates{News: []wire.SettleGatesNew{{Name: x.Gate, Execution: full(x.Execution), Epoch: int(x.Epoch),
		Number: int(x.Number), What: NewsHeld}}}
	_, err := e.sendTo(ctx, e.gateRoot(x.Gate), q)
	return err
}

// Resolve ends a reservation whose lease is over: as the gate says whose word decides. It was given back, or charged in
// full, or settled before.
func (e *Engine) Resolve(ctx context.Context, x SuspectReservation) ([]Waiter, error) {
	last := x.Last
	if last == "/" {
		_, err := e.EndCall(ctx, ServiceCall{Service: x.Gate, Fence: flowfabric.Fence{Execution: x.Execution,
			Epoch: x.Epoch}, Number: x.Number}, CallOver)
		return nil, err
	}
	if last == "" {
		last = x.Gate
	}
	own := Reservation{Gate: x.Gate, Execution: x.Execution, Epoch: x.Epoch, Number: x.Number}
	if x.Epoch == 0 { // what is left of a share is nobody's now, whatever other gates say
		_, wake, err := e.Unreserve(ctx, own)
		return wake, err
	}
	decides := own
	decides.Gate = last
	r, _, wake, err := e.reserve(ctx, decides.call("resolve"))
	switch {
	case errors.Is(err, denied.NoGate): // it was removed: what it would say is not known, so all is charged
		r.Settled = "c"
	case err != nil:
		return nil, err
	case last == x.Gate:
		return wake, nil
	}
	q := own.call("settle")
	switch letter, text, _ := cutFirst(r.Settled); letter {
	case "v":
		q = own.call("release")
	case "s":
		q.Dimensions = amounts[wire.ReserveDimension](amountsOf(text))
	default:
		q.Full = true
	}
	_, more, err := e.reservation(ctx, q)
	return append(wake, more...), err
}

func cutFirst(text string) (first, rest string, ok bool) {
	if text == "" {
		return "", "", false
	}
	return text[:1], text[1:], true
}
