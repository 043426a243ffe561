package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Waiter is a route of a partition that a gate had closed, and that may be opened.
type Waiter struct {
	Partition uint16
	Route     uint64
}

// PutBudget makes a budget, or with expected (a revision) changes it (lua/admission/ff_put_budget.lua). The waiters
// are to be woken with OpenRoutes. denied.BudgetSpec; denied.BudgetConflict: another one has the name, or the
// revision is not expected; denied.NoBudget.
func (e *Engine) PutBudget(ctx context.Context, b admission.Budget,
	expected uint64) (revision uint64, already bool, wake []Waiter, err error) {
	mode, soft := "strict", "allow"
	if b.Warn {
		mode = "warn"
	}
	if b.WarnSoft {
		soft = "warn"
	}
	if time.Duration(b.Reset)%time.Millisecond != 0 {
		return 0, false, nil, fmt.Errorf("ff_put_budget: %w: reset %s is not whole milliseconds", denied.BudgetSpec,
			b.Reset)
	}
	refund := slices.Clone(b.Refund)
	slices.Sort(refund)
	q := wire.PutBudget{Name: b.Name, Expected: int(expected), Scope: b.Scope, Mode: mode,
		OnHard: string(cmp.Or(b.OnHard, admission.HardReject)), OnSoft: soft, Interval: time.Duration(b.Reset),
		Strict: b.StrictDimensions, Refund: strings.Join(slices.Compact(refund), ",")}
	for _, dim := range slices.Sorted(maps.Keys(b.Limits)) {
		q.Dimensions = append(q.Dimensions, wire.PutBudgetDimension{Dimension: dim, Hard: int(b.Limits[dim].Hard),
			Soft: int(b.Limits[dim].Soft)})
	}
	r, already, err := read[wire.PutBudgetReply](e.onGate(ctx, flowfabric.BudgetGate(b.Name), expected == 0, q))
	wake, err = waiters("ff_put_budget", r.Waiters, err)
	return uint64(r.Revision), already, wake, err
}

// onGate makes a call about a budget or quota. That its partition was never used means that there is none; a call
// that makes one makes the partition's root then.
func (e *Engine) onGate(ctx context.Context, gate flowfabric.Gate, makes bool, q wire.Call) (*reader, error) {
	roots, absent := e.quotas, "quota_policy_not_found"
	if gate.IsBudget() {
		roots, absent = e.budgets, "budget_not_found"
	}
	root := rootOf(roots, gate.Name())
	r, err := e.sendTo(ctx, root, q)
	if !errors.Is(err, denied.PartitionMissing) {
		return r, err
	}
	if !makes {
		return nil, denied.New(q.Function(), absent, gate.Name())
	}
	if _, err := e.sendTo(ctx, root, wire.Boot{}); err != nil {
		return nil, err
	}
	return e.sendTo(ctx, root, q)
}

func rootOf(roots []string, name string) string {
	return roots[ids.GatePartition(name, uint16(len(roots)))]
}

// RemoveBudget forgets a budget (lua/admission/ff_remove_budget.lua). Executions that have it as a gate wait until it
// is made again.
func (e *Engine) RemoveBudget(ctx context.Context, name string) (already bool, err error) {
	return removed(e.onGate(ctx, flowfabric.BudgetGate(name), false, wire.RemoveBudget{Name: name}))
}

// removed tells whether there was no budget or quota to remove.
func removed(r *reader, err error) (already bool, _ error) {
	if errors.Is(err, denied.NoBudget) || errors.Is(err, denied.NoQuota) {
		return true, nil
	}
	return err == nil && r.Already, err
}

// ReportUsage adds to what was used of a budget, all dimensions or none (lua/admission/ff_report_usage.lua).
// denied.NoBudget, denied.Delta, denied.Dimension (by StrictDimensions; the details name them all),
// denied.Idempotency; ErrInvalidInput also of what would be a 65th dimension of the period, of which those with
// limits have theirs kept free; a breach is no error.
func (e *Engine) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	q := wire.ReportUsage{Name: u.Budget, Epoch: int(u.Epoch), Sequence: int(u.Sequence), Key: reportKey(u),
		Dimensions: amounts[wire.ReportUsageDimension](u.Amounts)}
	if !u.Execution.IsZero() {
		q.Execution = full(u.Execution)
	}
	r, already, err := read[wire.ReportUsageReply](e.onGate(ctx, flowfabric.BudgetGate(u.Budget), false, q))
	if err != nil {
		return admission.Reported{}, err
	}
	out := admission.Reported{Replayed: already, Verdict: admission.Verdict(r.Verdict), Applied: r.Applied,
		Late: r.Late, Action: admission.HardAction(r.Action), Left: flowfabric.Millis(r.Left), Period: uint64(r.Period)}
	for _, text := range r.Breaches {
		h := header{rest: text}
		b := admission.Breach{Dimension: h.next()}
		kind := h.next()
		b.Hard, b.Used, b.Limit, b.Crossed = kind == "hard", int64(h.unsigned()), int64(h.unsigned()), h.next() == "1"
		if h.err != nil {
			return out, unread(q.Function(), fmt.Errorf("breach: %w", h.err))
		}
		out.Breaches = append(out.Breaches, b)
	}
	return out, nil
}

// UndoUsage takes back the last report of the holder of an execution, by Budget, Execution, Epoch and Sequence
// (lua/admission/ff_undo_usage.lua). undone is false if it was not counted, was late, taken back before, or is not
// the last one. The waiters are to be woken with OpenRoutes, whether undone or not: a reply may have been lost.
// denied.NoBudget.
func (e *Engine) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []Waiter, err error) {
	r, already, err := read[wire.UndoUsageReply](e.onGate(ctx, flowfabric.BudgetGate(u.Budget), false,
		wire.UndoUsage{Name: u.Budget, Execution: full(u.Execution), Epoch: int(u.Epoch), Sequence: int(u.Sequence),
			Key: reportKey(u)}))
	wake, err = waiters("ff_undo_usage", r.Waiters, err)
	return err == nil && !already, wake, err
}

// reportKey is the key of a report in its budget: one from the holder of an execution is that execution's own.
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

// AdjustBudget corrects what was used, up or down, never below zero (lua/admission/ff_adjust_budget.lua), once whatever
// becomes of replies.
func (e *Engine) AdjustBudget(ctx context.Context, name string,
	by map[string]int64) (used map[string]int64, wake []Waiter, err error) {
	r, _, err := read[wire.AdjustBudgetReply](e.onGate(ctx, flowfabric.BudgetGate(name), false,
		wire.AdjustBudget{Name: name, Request: uuid.NewString(), Dimensions: amounts[wire.AdjustBudgetDimension](by)}))
	if err != nil {
		return nil, nil, err
	}
	wake, err = waiters("ff_adjust_budget", r.Waiters, nil)
	return usage(r.Used), wake, err
}

// ResetBudget begins a new period now (lua/admission/ff_reset_budget.lua), once whatever becomes of replies. With
// move the next one is a whole interval away.
func (e *Engine) ResetBudget(ctx context.Context, name string,
	move bool) (period uint64, left time.Duration, wake []Waiter, err error) {
	r, _, err := read[wire.ResetBudgetReply](e.onGate(ctx, flowfabric.BudgetGate(name), false,
		wire.ResetBudget{Name: name, Move: move, Request: uuid.NewString()}))
	wake, err = waiters("ff_reset_budget", r.Waiters, err)
	return uint64(r.Period), r.Left, wake, err
}

// Refund is an execution whose reports to a budget are to be given back. Outcome is failed, cancelled or expired, of
// which the budget says whether it refunds them, RefundAsked, or RefundPurged.
type Refund struct {
	Budget    string
	Execution flowfabric.ExecutionID
	Outcome   string
	Epoch     uint64 // of the attempt that ended: if a later one has reported, nothing is given back; 0 = any
}

// Outcomes that no attempt has.
const (
	RefundAsked = "asked" // an operator's word
	// RefundPurged gives nothing back: the execution was purged. Its ledger is kept for half an hour more, so that
	// repeated reports and refunds that are under way find it, and then forgotten; it is no spender of the budget any
	// more.
	RefundPurged = "purged"
)

// refundsPerCall is how many items ff_release_usage takes.
const refundsPerCall = 10

// ReleaseUsage gives back what executions reported in the current period, of budgets in one partition of budgets, in
// calls of ten (lua/admission/ff_release_usage.lua). released tells of which there was something. After an error the
// ones before were given back; it may be repeated.
func (e *Engine) ReleaseUsage(ctx context.Context, items []Refund) (released []bool, wake []Waiter, err error) {
	for part := range slices.Chunk(items, refundsPerCall) {
		var q wire.ReleaseUsage
		for _, x := range part {
			q.Usages = append(q.Usages, wire.ReleaseUsageUsage{Name: x.Budget, Execution: full(x.Execution),
				Outcome: x.Outcome, Epoch: int(x.Epoch)})
		}
		r, _, err := read[wire.ReleaseUsageReply](e.sendTo(ctx, rootOf(e.budgets, part[0].Budget), q))
		if errors.Is(err, denied.PartitionMissing) { // no budget was ever made there, so none counted anything
			released = append(released, make([]bool, len(part))...)
			continue
		}
		for _, mark := range r.Answers {
			released = append(released, mark == "+")
		}
		woken, err := waiters("ff_release_usage", r.Waiters, err)
		if wake = append(wake, woken...); err != nil {
			return released, wake, err
		}
	}
	return released, wake, nil
}

// Room tells whether a budget has room for work to begin.
type Room struct {
	Open      bool
	Err       error // denied.NoBudget
	Dimension string
	Used      int64
	Limit     int64
	Left      time.Duration // of the period; 0 = it does not end
	// what it has no room for, of the execution that First names by its place; 0 = it is exhausted
	Refused int64
	Pause   time.Duration // until it is worth while to ask again, if nobody wakes the route
	First   int           // so many of the executions, from the first, may begin
}

// CheckBudgets tells whether budgets have room for work of a route (lua/admission/ff_check_budgets.lua), one call for
// each partition of budgets that is concerned, together. Of the executions that are to begin, in order, one that a
// budget refused a spend, and blocked, waits until there is room for all of it. A route that is refused is woken when
// there is room. The answers are in the order of names.
func (e *Engine) CheckBudgets(ctx context.Context, partition uint16, route uint64, names []string,
	executions ...flowfabric.ExecutionID) ([]Room, error) {
	out := make([]Room, len(names))
	by := map[string][]int{}
	for i, name := range names {
		root := rootOf(e.budgets, name)
		by[root] = append(by[root], i)
	}
	q := wire.CheckBudgets{Partition: int(partition), Route: int(route), Executions: make([]string, len(executions))}
	for i, id := range executions {
		q.Executions[i] = ids.UUID(id).String()
	}
	for _, root := range slices.Sorted(maps.Keys(by)) {
		q.Budgets = q.Budgets[:0]
		for _, i := range by[root] {
			q.Budgets = append(q.Budgets, names[i])
		}
		r, _, err := read[wire.CheckBudgetsReply](e.sendTo(ctx, root, q))
		if errors.Is(err, denied.PartitionMissing) {
			for _, i := range by[root] {
				out[i].Err = denied.New(q.Function(), "budget_not_found", names[i])
			}
			continue
		}
		if n := len(r.Answers); err == nil && n != len(by[root]) {
			err = unread(q.Function(), fmt.Errorf("%d answers to %d budgets", n, len(by[root])))
		}
		if err != nil {
			return nil, err
		}
		for n, i := range by[root] {
			if err := out[i].read(r.Answers[n]); err != nil {
				return nil, unread(q.Function(), err)
			}
		}
	}
	return out, nil
}

func (o *Room) read(text string) error {
	switch {
	case text == "+":
		o.Open = true
	case strings.HasPrefix(text, "!"):
		h := header{rest: text[1:]}
		o.Dimension, o.Used, o.Limit, o.Left = h.next(), int64(h.unsigned()), int64(h.unsigned()), h.millis()
		o.Refused, o.Pause, o.First = int64(h.unsigned()), h.millis(), int(h.unsigned())
		if h.err != nil {
			return fmt.Errorf("room: %w", h.err)
		}
	case strings.HasPrefix(text, "-"):
		code, detail, _ := strings.Cut(text[1:], " ")
		o.Err = denied.New("ff_check_budgets", code, detail)
	default:
		return fmt.Errorf("room %q", clip(text))
	}
	return nil
}
