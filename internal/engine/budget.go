package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Waiter is a route of a partition that a gate had closed, and that may be opened.
type Waiter struct {
	Partition uint16
	Route     uint64
}

// PutBudget makes a budget, or with expected (a revision) changes it (lua/admission/ff_put_budget.lua). The waiters
// are to be woken with OpenRoutes. denied.BudgetSpec; denied.BudgetConflict: another one has the name, or the
// revision is not expected; denied.NoBudget.
func (e *Engine) PutBudget(ctx context.Context, b admission.Budget, expected uint64,
	by string) (revision uint64, already bool, wake []Waiter, err error) {
	mode, soft := "strict", "allow"
	if b.Warn {
		mode = "warn"
	}
	if b.WarnSoft {
		soft = "warn"
	}
	if b.Reset%time.Millisecond != 0 {
		return 0, false, nil, fmt.Errorf("%s: %w: reset %s is not whole milliseconds", fnPutBudget.name,
			denied.BudgetSpec, b.Reset)
	}
	refund := slices.Clone(b.Refund)
	slices.Sort(refund)
	hard := b.OnHard
	if hard == "" {
		hard = admission.HardReject
	}
	args := []string{protocol, b.Name, revisionText(expected), b.Scope, mode, string(hard), soft,
		strconv.FormatInt(b.Reset.Milliseconds(), 10), bit(b.StrictDimensions),
		strings.Join(slices.Compact(refund), ","), by, strconv.Itoa(len(b.Limits))}
	for _, dim := range sorted(b.Limits) {
		args = append(args, dim, strconv.FormatInt(b.Limits[dim].Hard, 10), strconv.FormatInt(b.Limits[dim].Soft, 10))
	}
	r, err := e.make(ctx, fnPutBudget, e.budgets, b.Name, "budget_not_found", args)
	if err != nil {
		return 0, false, nil, err
	}
	revision = r.unsigned()
	wake = waiters(r)
	return revision, r.Already, wake, r.fail()
}

// make calls what creates a budget or quota, and makes its partition's root if this is the first one there. What
// changes one, of an expected revision (the third argument), makes nothing: where there is no root it answers absent.
func (e *Engine) make(ctx context.Context, f function, roots []string, name, absent string,
	args []string) (*reader, error) {
	root := rootOf(roots, name)
	r, err := e.run(ctx, e.client, f, []string{root}, args)
	if !errors.Is(err, denied.PartitionMissing) {
		return r, err
	}
	if args[2] != "" {
		return nil, denied.New(f.name, absent, name)
	}
	if _, err := e.callKeys(ctx, fnBoot, []string{root}, protocol); err != nil {
		return nil, err
	}
	return e.run(ctx, e.client, f, []string{root}, args)
}

func rootOf(roots []string, name string) string {
	return roots[ids.GatePartition(name, uint16(len(roots)))]
}

// onBudget calls a function of a budget; that its partition was never used means that there is no such budget.
func (e *Engine) onBudget(ctx context.Context, f function, name string, args ...string) (*reader, error) {
	r, err := e.run(ctx, e.client, f, []string{rootOf(e.budgets, name)}, append([]string{protocol}, args...))
	if errors.Is(err, denied.PartitionMissing) {
		return nil, denied.New(f.name, "budget_not_found", name)
	}
	return r, err
}

// RemoveBudget forgets a budget (lua/admission/ff_remove_budget.lua). Executions that have it as a gate wait until it
// is made again.
func (e *Engine) RemoveBudget(ctx context.Context, name string) (already bool, err error) {
	r, err := e.onBudget(ctx, fnRemoveBudget, name, name)
	if errors.Is(err, denied.NoBudget) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return r.Already, nil
}

// ReportUsage adds to what was used of a budget, all dimensions or none (lua/admission/ff_report_usage.lua).
// denied.NoBudget, denied.Delta, denied.Dimension (by StrictDimensions; the details name them all),
// denied.Idempotency; ErrInvalidInput also of what would be a 65th dimension of the period, of which those with
// limits have theirs kept free; a breach is no error.
func (e *Engine) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	id := ""
	if !u.Execution.IsZero() {
		id = spenderText(u.Execution)
	}
	args := []string{u.Budget, id, strconv.FormatUint(u.Epoch, 10), strconv.FormatUint(u.Sequence, 10), u.Key}
	r, err := e.onBudget(ctx, fnReportUsage, u.Budget, amounts(args, u.Amounts)...)
	if err != nil {
		return admission.Reported{}, err
	}
	out := admission.Reported{Replayed: r.Already, Verdict: admission.Verdict(r.Text()), Applied: r.Flag(),
		Late: r.Flag(), Action: admission.HardAction(r.Text()), Left: r.Millis(), Period: r.unsigned()}
	for range r.Count(1) {
		h := header{rest: r.Text()}
		b := admission.Breach{Dimension: h.next()}
		kind := h.next()
		b.Hard, b.Used, b.Limit, b.Crossed = kind == "hard", int64(h.unsigned()), int64(h.unsigned()), h.next() == "1"
		if h.err != nil {
			r.Stop("breach: %w", h.err)
		}
		out.Breaches = append(out.Breaches, b)
	}
	return out, r.fail()
}

// UndoUsage takes back the last report of the holder of an execution, by Budget, Execution, Epoch and Sequence
// (lua/admission/ff_undo_usage.lua). undone is false if it was not counted, was late, taken back before, or is not
// the last one. The waiters are to be woken with OpenRoutes, whether undone or not: a reply may have been lost.
// denied.NoBudget.
func (e *Engine) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []Waiter, err error) {
	r, err := e.onBudget(ctx, fnUndoUsage, u.Budget, u.Budget, spenderText(u.Execution),
		strconv.FormatUint(u.Epoch, 10), strconv.FormatUint(u.Sequence, 10))
	if err != nil {
		return false, nil, err
	}
	wake = waiters(r)
	return !r.Already, wake, r.fail()
}

func amounts(args []string, by map[string]int64) []string {
	args = append(args, strconv.Itoa(len(by)))
	for _, dim := range sorted(by) {
		args = append(args, dim, strconv.FormatInt(by[dim], 10))
	}
	return args
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func revisionText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// waiters reads who is to be woken.
func waiters(r *reader) []Waiter {
	var out []Waiter
	for range r.Count(1) {
		h := header{rest: r.Text()}
		if w := (Waiter{Partition: uint16(h.unsigned()), Route: h.unsigned()}); h.err == nil {
			out = append(out, w)
		} else {
			r.Stop("waiter: %w", h.err)
		}
	}
	return out
}

// AdjustBudget corrects what was used, up or down, never below zero (lua/admission/ff_adjust_budget.lua), once whatever
// becomes of replies. who is required.
func (e *Engine) AdjustBudget(ctx context.Context, name string, by map[string]int64, who,
	reason string) (used map[string]int64, wake []Waiter, err error) {
	r, err := e.onBudget(ctx, fnAdjustBudget, name, amounts([]string{name, who, reason, uuid.NewString()}, by)...)
	if err != nil {
		return nil, nil, err
	}
	used = r.amounts()
	wake = waiters(r)
	return used, wake, r.fail()
}

func (r *reader) amounts() map[string]int64 {
	n := r.Count(2)
	out := make(map[string]int64, n)
	for range n {
		dim := r.Text()
		out[dim] = r.number()
	}
	return out
}

// ResetBudget begins a new period now (lua/admission/ff_reset_budget.lua), once whatever becomes of replies. With
// move the next one is a whole interval away.
func (e *Engine) ResetBudget(ctx context.Context, name, by string,
	move bool) (period uint64, left time.Duration, wake []Waiter, err error) {
	r, err := e.onBudget(ctx, fnResetBudget, name, name, by, bit(move), uuid.NewString())
	if err != nil {
		return 0, 0, nil, err
	}
	period, left = r.unsigned(), r.Millis()
	wake = waiters(r)
	return period, left, wake, r.fail()
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
func (e *Engine) ReleaseUsage(ctx context.Context, by string,
	items []Refund) (released []bool, wake []Waiter, err error) {
	for part := range slices.Chunk(items, refundsPerCall) {
		done, woken, err := e.releaseUsage(ctx, by, part)
		released, wake = append(released, done...), append(wake, woken...)
		if err != nil {
			return released, wake, err
		}
	}
	return released, wake, nil
}

func (e *Engine) releaseUsage(ctx context.Context, by string,
	items []Refund) (released []bool, wake []Waiter, err error) {
	args := []string{protocol, by, strconv.Itoa(len(items))}
	for _, x := range items {
		args = append(args, x.Budget, spenderText(x.Execution), x.Outcome, strconv.FormatUint(x.Epoch, 10))
	}
	r, err := e.run(ctx, e.client, fnReleaseUsage, []string{rootOf(e.budgets, items[0].Budget)}, args)
	if errors.Is(err, denied.PartitionMissing) {
		return make([]bool, len(items)), nil, nil // no budget was ever made there, so none counted anything
	}
	if err != nil {
		return nil, nil, err
	}
	for range r.Count(1) {
		released = append(released, r.Text() == "+")
	}
	wake = waiters(r)
	return released, wake, r.fail()
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
	for _, root := range sorted(by) {
		args := []string{protocol, strconv.Itoa(int(partition)), strconv.FormatUint(route, 10),
			strconv.Itoa(len(by[root]))}
		for _, i := range by[root] {
			args = append(args, names[i])
		}
		args = append(args, strconv.Itoa(len(executions)))
		for _, id := range executions {
			args = append(args, id.UUID().String())
		}
		r, err := e.run(ctx, e.client, fnCheckBudgets, []string{root}, args)
		if errors.Is(err, denied.PartitionMissing) {
			for _, i := range by[root] {
				out[i].Err = denied.New(fnCheckBudgets.name, "budget_not_found", names[i])
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if n := r.Count(1); n != len(by[root]) {
			r.Stop("%d answers to %d budgets", n, len(by[root]))
		}
		for _, i := range by[root] {
			out[i].read(r)
		}
		if err := r.fail(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Room) read(r *reader) {
	text := r.Text()
	switch {
	case text == "+":
		o.Open = true
	case strings.HasPrefix(text, "!"):
		h := header{rest: text[1:]}
		o.Dimension, o.Used, o.Limit, o.Left = h.next(), int64(h.unsigned()), int64(h.unsigned()), h.millis()
		o.Refused, o.Pause, o.First = int64(h.unsigned()), h.millis(), int(h.unsigned())
		if h.err != nil {
			r.Stop("room: %w", h.err)
		}
	case strings.HasPrefix(text, "-"):
		code, detail, _ := strings.Cut(text[1:], " ")
		o.Err = denied.New(fnCheckBudgets.name, code, detail)
	default:
		r.Stop("room %q", clip(text))
	}
}
