package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Waiter is a route of a partition that a gate had closed, and that may be opened.
type Waiter struct {
	Partition uint16
	Route     uint64
}

// PutGate makes a gate, or with expected (a revision) changes it (lua/admission/ff_put_gate.lua). The waiters are to
// be woken with OpenRoutes. denied.GateSpec; denied.GateConflict: another one has the name, or the revision is not
// expected; denied.NoGate.
func (e *Engine) PutGate(ctx context.Context, g admission.Gate,
	expected uint64) (revision uint64, already bool, wake []Waiter, err error) {
	mode, soft := "strict", "allow"
	if g.Warn {
		mode = "warn"
	}
	if g.WarnSoft {
		soft = "warn"
	}
	for field, span := range map[string]flowfabric.Millis{"reset": g.Reset, "window": g.Window, "jitter": g.Jitter} {
		if time.Duration(span)%time.Millisecond != 0 {
			return 0, false, nil, fmt.Errorf("ff_put_gate: %w: %s %s is not whole milliseconds", denied.GateSpec, field,
				span)
		}
	}
	refund := slices.Clone(g.Refund)
	slices.Sort(refund)
	q := wire.PutGate{Name: g.Name, Expected: int(expected), Scope: g.Scope, Mode: mode,
		OnHard: string(cmp.Or(g.OnHard, admission.HardReject)), OnSoft: soft, Interval: time.Duration(g.Reset),
		Strict: g.StrictDimensions, Refund: strings.Join(slices.Compact(refund), ","), Rate: g.Rate,
		Window: time.Duration(g.Window), Concurrency: g.Concurrency, Jitter: time.Duration(g.Jitter), Parent: g.Parent}
	for _, dim := range slices.Sorted(maps.Keys(g.Limits)) {
		q.Dimensions = append(q.Dimensions, wire.PutGateDimension{Dimension: dim, Hard: int(g.Limits[dim].Hard),
			Soft: int(g.Limits[dim].Soft)})
	}
	if s := g.Service; s != nil {
		q.Calls, q.Patience = s.Calls, s.Waits()
		for _, dim := range slices.Sorted(maps.Keys(s.PerMinute)) {
			q.Rates = append(q.Rates, wire.PutGateRate{Dimension: dim, Minute: int(s.PerMinute[dim]),
				Burst: int(s.Burst[dim])})
		}
		for _, namespace := range slices.Sorted(maps.Keys(s.Weights)) {
			q.Weights = append(q.Weights, wire.PutGateWeight{Namespace: namespace, Weight: s.Weights[namespace]})
		}
	}
	r, already, err := read[wire.PutGateReply](e.onGate(ctx, flowfabric.Gate(g.Name), expected == 0, q))
	e.gateFacts.forget(g.Name)
	wake, err = waiters("ff_put_gate", r.Waiters, err)
	return uint64(r.Revision), already, wake, err
}

// onGate makes a call about a gate. That its partition was never used means that there is none; a call that makes one
// makes the partition's root then.
func (e *Engine) onGate(ctx context.Context, gate flowfabric.Gate, makes bool, q wire.Call) (*reader, error) {
	root := e.gateRoot(gate.Name())
	r, err := e.sendTo(ctx, root, q)
	if !errors.Is(err, denied.PartitionMissing) {
		return r, err
	}
	if !makes {
		return nil, denied.New(q.Function(), "gate_not_found", gate.Name())
	}
	if _, err := e.sendTo(ctx, root, wire.Boot{}); err != nil {
		return nil, err
	}
	return e.sendTo(ctx, root, q)
}

func (e *Engine) gateRoot(name string) string {
	return e.gates[ids.GatePartition(name, uint16(len(e.gates)))]
}

// RemoveGate forgets a gate (lua/admission/ff_remove_gate.lua). Executions that have it as a gate wait until it is made
// again.
func (e *Engine) RemoveGate(ctx context.Context, name string) (already bool, err error) {
	r, err := e.onGate(ctx, flowfabric.Gate(name), false, wire.RemoveGate{Name: name})
	e.gateFacts.forget(name)
	if errors.Is(err, denied.NoGate) {
		return true, nil
	}
	return err == nil && r.Already, err
}

// ReportUsage adds to what was used of a gate, all dimensions or none (lua/admission/ff_spend.lua).
// denied.NoGate, denied.Delta, denied.Dimension (by StrictDimensions; the details name them all),
// denied.Idempotency; ErrInvalidInput also of what would be a 65th dimension of the period, of which those with
// limits have theirs kept free; a breach is no error. A gate that counts no amounts applies nothing, and has no breach.
func (e *Engine) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	r, already, err := e.spend(ctx, "report", u)
	if err != nil {
		return admission.Reported{}, err
	}
	return reported(r, already)
}

// reported reads what a gate says to a spend.
func reported(r wire.SpendReply, already bool) (admission.Reported, error) {
	out := admission.Reported{Replayed: already, Verdict: r.Verdict, Applied: r.Applied,
		Late: r.Late, Action: admission.HardAction(r.Action), Left: flowfabric.Millis(r.Left), Period: uint64(r.Period),
		Parent: r.Parent}
	for _, text := range r.Breaches {
		h := header{rest: text}
		b := admission.Breach{Dimension: h.next()}
		kind := h.next()
		b.Hard, b.Used, b.Limit, b.Crossed = kind == "hard", int64(h.unsigned()), int64(h.unsigned()), h.next() == "1"
		if h.err != nil {
			return out, unread("ff_spend", fmt.Errorf("breach: %w", h.err))
		}
		out.Breaches = append(out.Breaches, b)
	}
	return out, nil
}

func (e *Engine) spending(ctx context.Context, q wire.Spend) (wire.SpendReply, bool, error) {
	if f, known := e.gateFacts.read(q.Name); known && f.ignores && q.Sequence > 0 && q.How != "undo" {
		return wire.SpendReply{Verdict: codes.WithinBudget, Parent: f.parent}, false, nil
	}
	r, already, err := read[wire.SpendReply](e.onGate(ctx, flowfabric.Gate(q.Name), false, q))
	if err == nil && q.How == "report" {
		e.gateFacts.note(q.Name, r.Parent, !r.Applied && r.Verdict == codes.WithinBudget)
	}
	return r, already, err
}

// spend is the call of reports (lua/admission/ff_spend.lua).
func (e *Engine) spend(ctx context.Context, how string, u admission.Usage) (wire.SpendReply, bool, error) {
	q := wire.Spend{Name: u.Gate, How: how, Epoch: int(u.Epoch), Sequence: int(u.Sequence), Key: reportKey(u)}
	if how == "report" {
		q.Dimensions = amounts[wire.SpendDimension](u.Amounts)
	}
	if !u.Execution.IsZero() {
		q.Execution = full(u.Execution)
	}
	return e.spending(ctx, q)
}

// UndoUsage takes back the last report of the holder of an execution, by Gate, Execution, Epoch and Sequence
// (lua/admission/ff_spend.lua). undone is false if it was not counted, was late, taken back before, or is not
// the last one. The waiters are to be woken with OpenRoutes, whether undone or not: a reply may have been lost.
// denied.NoGate.
func (e *Engine) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []Waiter, err error) {
	r, already, err := e.spend(ctx, "undo", u)
	wake, err = waiters("ff_spend", r.Waiters, err)
	return err == nil && !already, wake, err
}

// reportKey is the key of a report in its gate: one from the holder of an execution is that execution's own.
func reportKey(u admission.Usage) string {
	if u.Sequence == 0 || u.Key == "" {
		return u.Key
	}
	return full(u.Execution) + "/" + u.Key
}

// amounts are the rows of what was used or reported, in the order of dimensions.
func amounts[T ~struct {
	Dimension string
	Amount    int
}](by map[string]int64) (out []T) {
	for _, dim := range slices.Sorted(maps.Keys(by)) {
		out = append(out, T{Dimension: dim, Amount: int(by[dim])})
	}
	return out
}

// usage is what rows say that was used.
func usage(rows []wire.Used) map[string]int64 {
	out := make(map[string]int64, len(rows))
	for _, x := range rows {
		out[x.Dimension] = int64(x.Amount)
	}
	return out
}

// waiters reads who is to be woken, if the call did not fail.
func waiters(op string, list []string, err error) (out []Waiter, _ error) {
	for _, text := range list {
		h := header{rest: text}
		out = append(out, Waiter{Partition: uint16(h.unsigned()), Route: h.unsigned()})
		if h.err != nil {
			return nil, unread(op, fmt.Errorf("waiter: %w", h.err))
		}
	}
	return out, err
}

// AdjustUsage corrects what was used, up or down, never below zero (lua/admission/ff_change_usage.lua), once whatever
// becomes of replies.
func (e *Engine) AdjustUsage(ctx context.Context, name string,
	by map[string]int64) (used map[string]int64, wake []Waiter, err error) {
	r, wake, err := e.changeUsage(ctx, wire.ChangeUsage{Name: name, How: "adjust",
		Dimensions: amounts[wire.ChangeUsageDimension](by)})
	if err != nil {
		return nil, nil, err
	}
	return usage(r.Used), wake, nil
}

// ResetUsage begins a new period now (lua/admission/ff_change_usage.lua), once whatever becomes of replies. With
// move the next one is a whole interval away.
func (e *Engine) ResetUsage(ctx context.Context, name string,
	move bool) (period uint64, left time.Duration, wake []Waiter, err error) {
	q := wire.ChangeUsage{Name: name, How: "reset"}
	if move {
		q.How = "move"
	}
	r, wake, err := e.changeUsage(ctx, q)
	return uint64(r.Period), r.Left, wake, err
}

// Raise lifts the hard limits of a gate for the period that goes on.
type Raise struct {
	Gate    string
	Request uuid.UUID // repeated within a day it is made once; zero: made up
	// Execution is the only one that may pass the limits; zero: the limits are higher for all.
	Execution flowfabric.ExecutionID
	By        map[string]int64
}

// RaiseLimits lifts hard limits that there are for the period that goes on (lua/admission/ff_change_usage.lua). raised
// tells by how much they are higher now, or how much of the allowance of x.Execution is left, of the dimensions of x.
// The waiters are to be woken. denied.NoGate, denied.Delta.
func (e *Engine) RaiseLimits(ctx context.Context, x Raise) (raised map[string]int64, wake []Waiter, err error) {
	q := wire.ChangeUsage{Name: x.Gate, How: "raise", Dimensions: amounts[wire.ChangeUsageDimension](x.By)}
	if x.Request != uuid.Nil {
		q.Request = x.Request.String()
	}
	if !x.Execution.IsZero() {
		q.Execution = full(x.Execution)
	}
	r, wake, err := e.changeUsage(ctx, q)
	if err != nil {
		return nil, wake, err
	}
	return usage(r.Used), wake, nil
}

func (e *Engine) changeUsage(ctx context.Context, q wire.ChangeUsage) (wire.ChangeUsageReply, []Waiter, error) {
	q.Request = cmp.Or(q.Request, uuid.NewString())
	r, _, err := read[wire.ChangeUsageReply](e.onGate(ctx, flowfabric.Gate(q.Name), false, q))
	wake, err := waiters("ff_change_usage", r.Waiters, err)
	return r, wake, err
}

// News is what a gate is to be told of an execution that it admitted, or that used of it (lua/lib/gate.lua).
type News struct {
	Gate      string
	Execution flowfabric.ExecutionID
	Epoch     uint64 // of the attempt; 0 = any
	What      string // NewsGone and the others; or failed, cancelled or expired: how it ended
}

// What gates are told.
const (
	NewsHeld  = "held"  // the hold is good for ten minutes more
	NewsGone  = "gone"  // it runs no more under this epoch
	NewsNever = "never" // and it never ran
	NewsAsked = "asked" // what it reported in this period is given back, at an operator's word
	// NewsPurged gives nothing back: the execution was purged. Its ledger is kept for half an hour more, so that
	// repeated reports and refunds that are under way find it, and then forgotten; it is no spender of the gate any
	// more.
	NewsPurged = "purged"
)

// aboutHold reports whether the news are of a hold; the others are of what was used, which may be much.
func (n News) aboutHold() bool {
	return n.What == NewsHeld || n.What == NewsGone || n.What == NewsNever
}

// newsPerCall and refundsPerCall are how many news ff_settle_gates is told at once, and how many of them not of holds.
const newsPerCall, refundsPerCall = limits.MaxBatch, 10

// SettleGates tells gates, all in one partition of gates, what became of executions
// (lua/admission/ff_settle_gates.lua). done tells where a hold was freed or something given back; a gate that is gone
// has nothing. The waiters are to be woken with OpenRoutes. After an error the ones before were told; it may be
// repeated.
func (e *Engine) SettleGates(ctx context.Context, news []News) (done []bool, wake []Waiter, err error) {
	for len(news) > 0 {
		n, refunds := 0, 0
		for ; n < len(news) && n < newsPerCall; n++ {
			if !news[n].aboutHold() {
				if refunds++; refunds > refundsPerCall {
					break
				}
			}
		}
		var q wire.SettleGates
		for _, x := range news[:n] {
			q.News = append(q.News, wire.SettleGatesNew{Name: x.Gate, Execution: full(x.Execution), Epoch: int(x.Epoch),
				What: x.What})
		}
		r, _, err := read[wire.SettleGatesReply](e.sendTo(ctx, e.gateRoot(news[0].Gate), q))
		if errors.Is(err, denied.PartitionMissing) { // no gate was ever made there, so none counted anything
			done, news = append(done, make([]bool, n)...), news[n:]
			continue
		}
		for _, mark := range r.Answers {
			done = append(done, mark == "+")
		}
		woken, err := waiters("ff_settle_gates", r.Waiters, err)
		if wake = append(wake, woken...); err != nil {
			return done, wake, err
		}
		news = news[n:]
	}
	return done, wake, nil
}

// Hold is one admission: an execution under an epoch.
type Hold struct {
	Execution flowfabric.ExecutionID
	Epoch     uint64
}

// String is how gates write it: "<partition>.<execution>:<epoch>".
func (h Hold) String() string {
	return full(h.Execution) + ":" + strconv.FormatUint(h.Epoch, 10)
}

// ParseHold reads what a gate wrote.
func ParseHold(text string) (Hold, error) {
	who, number, _ := strings.Cut(text, ":")
	id, err := gatetext.ParseSpender(who)
	epoch, wrong := strconv.ParseUint(number, 10, 64)
	if err = errors.Join(err, wrong); err != nil {
		return Hold{}, fmt.Errorf("%w: hold %q: %w", flowfabric.ErrInvalidInput, clip(text), err)
	}
	return Hold{Execution: id, Epoch: epoch}, nil
}

// Admitted answers Admit. The first Count holds were admitted, now or before; Why, amount, rate or cap, tells why not
// more, and Retry when to ask again. Of an amount Dimension, Used, Limit and what was Refused, 0 if there is no room at
// all. Meters is what the gate measures: a amounts, h holds. Suspects are holds that nobody has heard of for a while,
// as ParseHold reads them; see CheckHolds.
type Admitted = wire.AdmitReply

// Admit asks a gate to let up to 100 executions of a route run (lua/admission/ff_admit.lua), in order. ttl is how
// long a hold is good before it is suspect, 1 s … 10 min. With look it asks only whether there is room for them; Why is
// "" if there is. denied.NoGate.
func (e *Engine) Admit(ctx context.Context, name string, at Waiter, ttl time.Duration, look bool,
	holds []Hold) (Admitted, error) {
	q := wire.Admit{Name: name, Partition: int(at.Partition), Route: int(at.Route), TTL: ttl, Look: look,
		Holds: make([]string, len(holds))}
	for i, h := range holds {
		q.Holds[i] = h.String()
	}
	gate := flowfabric.Gate(name)
	_, _, limit := gate.Limit() // which nobody makes: the first who asks it finds its partition unused
	r, _, err := read[wire.AdmitReply](e.onGate(ctx, gate, limit, q))
	return r, err
}

// CheckHolds asks the partition of 1..100 executions whether they are still held (lua/admission/ff_check_holds.lua):
// NewsHeld, NewsGone, or NewsNever if its grant was returned, or was over and is taken back now.
func (e *Engine) CheckHolds(ctx context.Context, partition uint16, holds []Hold) ([]string, error) {
	q := wire.CheckHolds{}
	for _, h := range holds {
		q.Holds = append(q.Holds, wire.CheckHoldsHold{ID: ids.UUID(h.Execution).String(),
			Epoch: strconv.FormatUint(h.Epoch, 10)})
	}
	r, _, err := ask[wire.CheckHoldsReply](ctx, e, partition, q)
	return r.Answers, err
}
