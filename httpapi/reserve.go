package httpapi

import (
	"errors"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

const maxCount = 1<<53 - 1 // of what a gate counts, and of reservations

// rememberedReservations is how many of the newest reservations of a lease gates know again when they are over.
const rememberedReservations = 1000

type reservationBody struct {
	leased
	Reservation uint64 `json:"reservation" jsonschema:"its number: 1, 2, … under one lease"`
}

type reserveBody struct {
	reservationBody
	Amounts map[string]int64 `json:"amounts" jsonschema:"by dimension, 1..64 of them: the most that the call may use"`
}

type settleBody struct {
	reservationBody
	Amounts map[string]int64 `json:"amounts,omitempty" jsonschema:"by dimension: what the call used, whatever was reserved. Counted also when the lease is over. Absent: nothing was used"`
}

type reserveAnswer struct {
	Reserved bool                 `json:"reserved" jsonschema:"make the call, then settle. Else nothing is set aside in any gate"`
	Gates    []string             `json:"gates,omitempty" jsonschema:"those that have it; absent with reserved: no gate of the execution counts these amounts"`
	Over     bool                 `json:"over,omitempty" jsonschema:"this number was settled, given back or refused before: reserve under the next one"`
	Gate     string               `json:"gate,omitempty" jsonschema:"the one that refused it"`
	Action   admission.HardAction `json:"action,omitempty" jsonschema:"what that gate wants done: reject (the worker decides), fail, block (release the execution), or ask (suspend it with a question)"`
	Left     flowfabric.Millis    `json:"left_ms,omitzero" jsonschema:"of the gate's period; absent: it does not end"`
	Breaches []admission.Breach   `json:"breaches,omitempty" jsonschema:"of the gate that refused it"`
}

type settleAnswer struct {
	already
	Gates []settledGate `json:"gates,omitempty" jsonschema:"what those say that count amounts"`
}

type settledGate struct {
	Gate     string             `json:"gate"`
	Verdict  string             `json:"verdict" jsonschema:"OK, SOFT_BREACH or HARD_BREACH; it is counted whatever it is"`
	Breaches []admission.Breach `json:"breaches,omitempty"`
}

func stale(action string, f flowfabric.Fence) error {
	return denied.New(action, flowfabric.CodeOf(denied.StaleLease), f.Execution.String())
}

// had reads an execution that the worker has, or had under a lease that is over.
func (c *call) had(action string, f flowfabric.Fence) (flowfabric.Snapshot, error) {
	s, err := c.h.client.Execution(f.Execution).Get(c.ctx())
	if err != nil {
		return s, err
	}
	if !c.who.may(s.Route.Namespace) || f.Epoch > s.Epoch || f.Epoch == s.Epoch && f.Session != s.Session {
		return s, stale(action, f)
	}
	return s, nil
}

// holds tells whether the lease of an execution that the worker had is not over.
func holds(f flowfabric.Fence, s flowfabric.Snapshot) bool {
	return f.Epoch == s.Epoch && f.Attempt == s.Attempts && s.Public == flowfabric.Active && s.BlockingReason == ""
}

// usable checks amounts of which there are at least least.
func usable(amounts map[string]int64, least int) error {
	if n := len(amounts); n < least || n > limits.MaxDimensions {
		return invalid("/amounts", "there are %d dimensions, want %d..%d", n, least, limits.MaxDimensions)
	}
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		if err := valid.Dimension("dimension", dim); err != nil {
			return invalid("/amounts", "%v", err)
		}
		if n := amounts[dim]; n < 0 || n > maxCount {
			return invalid("/amounts/"+dim, "it is %d, want 0..%d", n, int64(maxCount))
		}
	}
	return nil
}

// reservation reads what a call about a reservation is about, and whose execution it is.
func (c *call) reservation(f flowfabric.Fence, b reservationBody) (*ledger.Entry, flowfabric.Snapshot, error) {
	if b.Reservation < 1 || b.Reservation > maxCount {
		return nil, flowfabric.Snapshot{}, invalid("/reservation", "it is %d: count 1, 2, … under one lease",
			b.Reservation)
	}
	s, err := c.had("reservation", f)
	if err != nil {
		return nil, s, err
	}
	x := &ledger.Entry{Fence: f, Number: b.Reservation, Priority: s.Priority, Since: s.CreatedAt, Repeats: true}
	if b.Reservation > rememberedReservations {
		x.Below = b.Reservation - rememberedReservations
	}
	for _, g := range s.Route.Gates {
		if _, _, limit := g.Limit(); !limit {
			x.Own = append(x.Own, g.Name())
		}
	}
	slices.Sort(x.Own)
	return x, s, nil
}

// reserve sets amounts aside in all gates of an execution that count them, or in none. It needs the lease: whoever lost
// it makes no calls.
func (c *call) reserve(f flowfabric.Fence, b *reserveBody) (*reserveAnswer, error) {
	x, s, err := c.reservation(f, b.reservationBody)
	if err != nil {
		return nil, err
	}
	if err := usable(b.Amounts, 1); err != nil {
		return nil, err
	}
	if !holds(f, s) {
		return nil, stale("reservation", f)
	}
	if len(x.Own) == 0 {
		return &reserveAnswer{Reserved: true}, nil
	}
	x.Amounts = b.Amounts
	refused, err := ledger.Reserve(c.ctx(), c.h.conn.Engine, x)
	switch {
	case errors.Is(err, denied.StaleLease): // the lease is held: so it is the number
		return &reserveAnswer{Over: true}, nil
	case err != nil:
		return nil, err
	case refused != nil:
		return &reserveAnswer{Gate: refused.Gate, Action: refused.Action, Left: refused.Left,
			Breaches: refused.Breaches}, nil
	}
	slices.Sort(x.Held)
	return &reserveAnswer{Reserved: true, Gates: x.Held}, nil
}

// settle counts what was used, also by a worker that has lost the execution, as spend does.
func (c *call) settle(f flowfabric.Fence, b *settleBody) (*settleAnswer, error) {
	x, _, err := c.reservation(f, b.reservationBody)
	if err != nil {
		return nil, err
	}
	if err := usable(b.Amounts, 0); err != nil {
		return nil, err
	}
	said, err := ledger.SettleAll(c.ctx(), c.h.conn.Engine, x, b.Amounts)
	if err != nil {
		return nil, err
	}
	out := &settleAnswer{already: before(said)}
	for _, r := range said {
		out.Gates = append(out.Gates, settledGate{Gate: r.Gate, Verdict: r.Verdict, Breaches: r.Breaches})
	}
	return out, nil
}

// unreserve gives a reservation back, also when the lease is over: nobody else knows that the call was not made.
func (c *call) unreserve(f flowfabric.Fence, b *reservationBody) (*already, error) {
	x, _, err := c.reservation(f, *b)
	if err != nil {
		return nil, err
	}
	said, err := ledger.ReleaseAll(c.ctx(), c.h.conn.Engine, x)
	if err != nil {
		return nil, err
	}
	out := before(said)
	return &out, nil
}

// before tells whether all gates were told earlier.
func before(said []ledger.Ended) already {
	return already{len(said) > 0 && !slices.ContainsFunc(said, func(r ledger.Ended) bool { return !r.Replayed })}
}
