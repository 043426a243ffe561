package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Reservation is what a handler has set aside of the gates of its execution for one call. Safe for concurrent use.
type Reservation struct {
	task  *Task
	entry ledger.Entry
	rest  []*ledger.Entry       // what a meter reserved beyond it
	meter atomic.Pointer[meter] // the last one
	used  map[string]int64      // what Settle was told; nil: nothing yet
	over  bool                  // it is settled or released
}

// reservations are those of a run that are not over. The holder of the turn may use it.
type reservations struct {
	last uint64 // number of the newest one
	open []*Reservation
	told func(tasks.Reservation) // of what becomes of them, too; may be nil
}

// below is the lowest number of a reservation that may still be asked about.
func (r *reservations) below() uint64 {
	lowest := r.last + 1
	for _, x := range r.open {
		lowest = min(lowest, x.entry.Number) // those of its rest have higher ones
	}
	return lowest
}

// Reserve sets amounts aside before they are used: in every gate of the execution that counts amounts, and in those
// above them, or in none. What is reserved counts as used, so calls that run at the same time exceed no limit.
// Say the most that a call may use (max_tokens, the highest price), make the call, and tell
// [Reservation.Settle] what it used; the difference is given back. Nothing is called without room:
//
//	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
//		r, err := t.Reserve(ctx, map[string]int64{"tokens": 4000})
//		if err != nil {
//			return "", err
//		}
//		text, used, err := llm.Generate(ctx, in.Topic, 4000)
//		if err != nil {
//			return "", err // it may have been paid: what is not settled is charged in full
//		}
//		return text, r.Settle(ctx, map[string]int64{"tokens": used})
//	})
//
// A reservation lasts until it is settled or released, or the lease is over. Then, and when the handler returns, what
// was not settled is charged in full, since the call may have been paid. A reservation under a lease that is over is
// refused.
//
// A refusal is a [*OverBudgetError], and the gate decides what follows, as [Task.SpendUsage] says. With HardBlock the
// execution waits outside the slots of its worker, with the amounts that it asked for, and goes on when there is room
// for all of them. Executions wait in line as in queues, by priority, then by age. One that does not fit beside the
// first in line that this period can still serve waits behind it, so small amounts never overtake a large one for
// ever. One that holds a reservation passes the line, or two could wait for each other. What is above a limit fails.
//
// Amounts are 0..2^53-1 by dimension, 1..64 of them. Without gates that count amounts nothing is reserved, and a
// warning says so once a minute and kind. Two calls to the server for each gate, and one more for a gate that the
// process has not heard of in ten seconds; concurrent calls of a task wait for each other.
//
// Errors: ErrOverBudget; ErrInvalidInput for amounts and dimensions, before any call, and if more than eight gates are
// above one; ErrNotFound, when a gate, or one above it, was removed; ErrLeaseLost, when the execution is another
// worker's; code task_consumed after the handler returned; ErrTransport. Then nothing is reserved: what was, is given
// back, or if that fails, charged when the lease is over.
func (t *Task) Reserve(ctx context.Context, amounts map[string]int64) (*Reservation, error) {
	return t.reserved(ctx, ledger.Entry{Amounts: maps.Clone(amounts)})
}

// ReserveEstimate is [Task.Reserve] with an estimate: of each dimension what nine of ten of the last 64 calls of the
// label used, or atMost, if that is less or there were fewer than eight. The label names calls that are alike, such as
// the kind, the step and the model: 1..64 bytes without control characters. What a process has not heard of yet is
// atMost, too. A call that uses more than was estimated counts in full when it is settled, and may pass a limit then; a
// [Reservation.Meter] reserves more meanwhile, or stops it.
//
// Errors: as Reserve; ErrInvalidInput for the label.
func (t *Task) ReserveEstimate(ctx context.Context, label string, atMost map[string]int64) (*Reservation, error) {
	if label == "" || len(label) > maxLabel || strings.ContainsFunc(label, unicode.IsControl) {
		return nil, fmt.Errorf("reserve: %w: label %.80q, want 1..%d bytes without control characters",
			flowfabric.ErrInvalidInput, label, maxLabel)
	}
	x := ledger.Entry{Amounts: maps.Clone(atMost), Label: label}
	if s := t.spending; s != nil && t.cfg.Ledger != nil {
		for _, gate := range s.gates {
			if known := t.cfg.Ledger.EstimateOf(gate, label); len(known) > 0 {
				for dim, n := range x.Amounts {
					x.Amounts[dim] = min(n, known[dim])
				}
				break
			}
		}
	}
	return t.reserved(ctx, x)
}

// maxLabel bounds the label of an estimate, in bytes.
const maxLabel = 64

func (t *Task) reserved(ctx context.Context, x ledger.Entry) (_ *Reservation, err error) {
	defer func() { err = denied.Last(err) }()
	amounts := x.Amounts
	x.Since = t.cfg.Claim.CreatedAt
	if len(amounts) == 0 {
		return nil, fmt.Errorf("reserve: %w: no amounts", flowfabric.ErrInvalidInput)
	}
	if err := validateUsage(admission.Usage{Amounts: amounts}); err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	r := &Reservation{task: t, entry: x}
	s := t.spending
	if s == nil || t.cfg.Ledger == nil {
		if t.cfg.Ledger != nil {
			t.uncounted(ctx, amounts)
		}
		return r, nil
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil, fmt.Errorf("reserve: %w: the handler has returned", denied.TaskConsumed)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reserve: %w", context.Cause(ctx))
	}
	if watch, ok := ctx.Value(tasks.ReservationWatch{}).(func(tasks.Reservation)); ok {
		s.reserved.told = watch
	}
	_ = s.again(ctx) // what is left is settled when the handler returns
	for again := true; again && err == nil; {
		var over *OverBudgetError
		if over, err = t.reserve(ctx, &r.entry); over == nil {
			break
		}
		t.reservation(tasks.ReservationRefused)
		again, err = t.over(ctx, over)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	if len(r.entry.Held) == 0 {
		t.uncounted(ctx, amounts)
		return r, nil
	}
	s.reserved.open = append(s.reserved.open, r)
	t.reservation(tasks.ReservationMade)
	return r, nil
}

// reserve sets aside what an entry says. Its caller has the turn.
func (t *Task) reserve(ctx context.Context, x *ledger.Entry) (*OverBudgetError, error) {
	s := t.spending
	s.reserved.last++
	x.Fence, x.Own, x.Number, x.Priority = t.Fence(), s.gates, s.reserved.last, t.cfg.Claim.Priority
	x.Below = s.reserved.below()
	refused, err := ledger.Reserve(ctx, t.cfg.Ledger, x)
	if err != nil || refused == nil {
		return nil, err
	}
	return &OverBudgetError{Gate: refused.Gate, Breaches: hard(refused.Breaches), Action: refused.Action,
		Left: time.Duration(refused.Left), Amounts: refused.Amounts}, nil
}

// more reserves something in addition, for a call that is under way: it does not wait for room.
func (r *Reservation) more(ctx context.Context, amounts map[string]int64) (map[string]int64, error) {
	s := r.task.spending
	if s == nil || r.task.cfg.Ledger == nil {
		return amounts, nil
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if r.over || s.closed {
		return nil, fmt.Errorf("%w: the reservation is over", denied.TaskConsumed)
	}
	if len(r.entry.Held) == 0 { // no gate counts
		return amounts, nil
	}
	x := &ledger.Entry{Amounts: maps.Clone(amounts)}
	over, err := r.task.reserve(ctx, x)
	if over != nil {
		err = over
	}
	if err != nil {
		return nil, err
	}
	r.rest = append(r.rest, x)
	return amounts, nil
}

// held reports whether a gate still has something of it.
func (r *Reservation) held() bool {
	return slices.ContainsFunc(r.all(), func(x *ledger.Entry) bool { return len(x.Held) > 0 })
}

func (r *Reservation) all() []*ledger.Entry { return append([]*ledger.Entry{&r.entry}, r.rest...) }

// reservation says what became of a reservation. Its caller has the turn.
func (t *Task) reservation(what tasks.Reservation) {
	if t.cfg.OnReservation != nil {
		t.cfg.OnReservation(what)
	}
	if told := t.spending.reserved.told; told != nil {
		told(what)
	}
}

// Amounts are what was reserved.
func (r *Reservation) Amounts() map[string]int64 { return maps.Clone(r.entry.Amounts) }

// Settle says what the call used, whatever was reserved: what it used beyond that counts too, even if it passes a
// limit, and what it did not use is given back. It also works after the context has ended, and when the lease was lost:
// what is used is used. nil is what a [Reservation.Meter] counted, or without one, nothing. A second Settle, and one
// after Release, changes nothing.
//
// Errors: ErrInvalidInput for amounts, before any call: nothing is settled. ErrTransport: the task settles it again
// before its next reservation or spend and when the handler returns; Settle may be called again with the same amounts.
func (r *Reservation) Settle(ctx context.Context, used map[string]int64) (err error) {
	defer func() { err = denied.Last(err) }()
	if m := r.meter.Load(); used == nil && m != nil {
		used = m.counted()
	}
	if err := validateUsage(admission.Usage{Amounts: used}); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return r.end(ctx, "settle", func(ctx context.Context) error {
		if r.used != nil {
			return r.settle(ctx)
		}
		if r.used = maps.Clone(used); r.used == nil {
			r.used = map[string]int64{}
		}
		err := r.settle(ctx)
		r.task.reservation(tasks.ReservationSettled) // by the task, if not yet
		return err
	})
}

// Release gives the whole reservation back: the call was not made, for certain. After Settle it changes nothing.
// Errors: ErrTransport; then what could not be given back is charged when the handler returns, unless it is called
// again.
func (r *Reservation) Release(ctx context.Context) (err error) {
	defer func() { err = denied.Last(err) }()
	return r.end(ctx, "release", func(ctx context.Context) error {
		if r.used != nil {
			return nil
		}
		var failed error
		for _, x := range r.all() {
			failed = errors.Join(failed, ledger.Release(ctx, r.task.cfg.Ledger, x))
		}
		if failed == nil {
			r.task.reservation(tasks.ReservationReleased)
		}
		return failed
	})
}

// end makes the last call of a reservation, in turn.
func (r *Reservation) end(ctx context.Context, verb string, call func(context.Context) error) error {
	s := r.task.spending
	if s == nil || r.task.cfg.Ledger == nil {
		return nil
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if r.over || !r.held() {
		return nil
	}
	ctx, cancel := outlive(ctx, spendGrace)
	defer cancel()
	err := call(ctx)
	if !r.held() {
		r.over = true
		s.reserved.open = slices.DeleteFunc(s.reserved.open, func(x *Reservation) bool { return x == r })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// settle tells all gates that have it what was used. Its caller has the turn.
func (r *Reservation) settle(ctx context.Context) error {
	// all of it is counted before what a meter reserved besides is given back
	r.entry.Below = r.task.spending.reserved.below()
	said, failed := ledger.Settle(ctx, r.task.cfg.Ledger, &r.entry, r.used)
	if failed == nil {
		for _, x := range r.rest {
			failed = errors.Join(failed, ledger.Release(ctx, r.task.cfg.Ledger, x))
		}
	}
	for _, x := range said {
		for _, b := range x.Breaches {
			if b.Hard {
				r.task.Logger().WarnContext(ctx,
					"flowfabric: a call used more than was reserved for it, and passes a hard limit",
					"dimension", b.Dimension, "used", b.Used, "limit", b.Limit)
			}
		}
	}
	return failed
}

// settled ends all reservations of a run: as they were settled, if that is not known to all gates, else in full.
func (s *spending) settled(ctx context.Context) error {
	var failed error
	for _, r := range slices.Clone(s.reserved.open) {
		if r.used == nil {
			r.used = map[string]int64{}
			for _, x := range r.all() {
				for dim, n := range x.Amounts {
					r.used[dim] += n
				}
			}
			s.task.reservation(tasks.ReservationForgotten)
			s.task.Logger().WarnContext(ctx,
				"flowfabric: a reservation was neither settled nor released; it is charged in full", "amounts", r.used)
		}
		failed = errors.Join(failed, r.settle(ctx))
		r.over = true
	}
	s.reserved.open = nil
	return failed
}

// again settles what was settled before, but not at all gates.
func (s *spending) again(ctx context.Context) error {
	var failed error
	for _, r := range slices.Clone(s.reserved.open) {
		if r.used == nil {
			continue
		}
		if failed = errors.Join(failed, r.settle(ctx)); !r.held() {
			r.over = true
			s.reserved.open = slices.DeleteFunc(s.reserved.open, func(x *Reservation) bool { return x == r })
		}
	}
	return failed
}
