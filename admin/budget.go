package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Bounds of budgets and of what is said to them.
const (
	maxAmount     = 1<<53 - 1
	maxDimensions = 64
	maxScope      = 128 // bytes, of a budget's or quota's
	maxReportKey  = 128
	maxAdjustText = 256
	maxReset      = 10 * 365 * 24 * time.Hour
	auditEntries  = 256 // that Get reads
	spendersRead  = 100
)

// PutBudget makes a budget, or changes the one of its name to what b says: what was used stays, and its period goes on
// unless the interval is another one. Work that waits for it is looked at anew. It changes nothing if the budget is as
// b says already, so a program may call it at every start, and the call may be repeated.
//
// With flowfabric.IfNew it changes no budget that is there: that suits budgets that a program makes and operators
// change. With flowfabric.IfRevision it changes only what [Admin.GetBudget] told. A budget that is as b says is no
// conflict, whatever its revision.
//
// Errors: flowfabric.ErrInvalidInput for limits, periods and actions that cannot be, with the field, and for names,
// before any call; ErrConflict: with IfNew there is one with other settings, with IfRevision somebody has changed it;
// ErrNotFound, with IfRevision. client.ErrClosed.
func (a *Admin) PutBudget(ctx context.Context, b admission.Budget, opts ...flowfabric.ChangeOption) error {
	acts, expected := link.ChangeOf(opts)
	act, err := a.gating(acts, valid.GateName("budget", b.Name), validateBudget(b))
	if err != nil {
		return about("put", "budget", b.Name, err)
	}
	return synced(expected, func() (uint64, error) {
		r, err := a.GetBudget(ctx, b.Name)
		return r.Revision, err
	}, func(revision uint64) error {
		_, _, wake, err := a.store.PutBudget(act.Noted(ctx, putting(revision), "budget", b.Name), b, revision)
		a.wake(ctx, "change of "+b.Name, wake)
		return about(putting(revision), "budget", b.Name, conflict(revision, err))
	})
}

// synced puts something under the revision that is expected, else under the one that it has, and again if somebody
// changes it meanwhile.
func synced(expected *uint64, read func() (revision uint64, err error), put func(revision uint64) error) error {
	if expected != nil {
		return put(*expected)
	}
	for tries := 1; ; tries++ {
		revision, err := read()
		if err != nil && !errors.Is(err, flowfabric.ErrNotFound) {
			return err
		}
		err = put(revision)
		if err == nil || tries == 5 ||
			!errors.Is(err, flowfabric.ErrConflict) && !errors.Is(err, flowfabric.ErrNotFound) {
			return err
		}
	}
}

// validateBudget checks everything but the name.
func validateBudget(b admission.Budget) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{denied.BudgetSpec}, a...)...)
	}
	switch reset := time.Duration(b.Reset); {
	case len(b.Scope) > maxScope:
		return bad("scope has %d bytes, want at most %d", len(b.Scope), maxScope)
	case !slices.Contains([]admission.HardAction{"", admission.HardReject, admission.HardFail, admission.HardBlock},
		b.OnHard):
		return bad("action on a hard limit is %.40q, want reject, fail or block", b.OnHard)
	case b.Reset != 0 && (reset < time.Second || reset > maxReset || reset%time.Millisecond != 0):
		return bad("reset %s, want 0 or whole milliseconds of 1s..10 years", b.Reset)
	case len(b.Limits) > maxDimensions:
		return bad("it has %d dimensions, want at most %d", len(b.Limits), maxDimensions)
	}
	for _, outcome := range b.Refund {
		if !slices.Contains([]string{"failed", "cancelled", "expired"}, outcome) {
			return bad("refund of %.40q, want failed, cancelled or expired", outcome)
		}
	}
	for _, dim := range slices.Sorted(maps.Keys(b.Limits)) {
		l := b.Limits[dim]
		if err := valid.Dimension("dimension", dim); err != nil {
			return bad("%w", err)
		}
		if l.Hard < 0 || l.Hard > maxAmount || l.Soft < 0 || l.Soft > maxAmount {
			return bad("limits of %s are %d and %d, want 0..%d", dim, l.Hard, l.Soft, int64(maxAmount))
		}
		if l.Hard > 0 && l.Soft > l.Hard {
			return bad("soft limit of %s is %d, above the hard one, %d", dim, l.Soft, l.Hard)
		}
	}
	return nil
}

// RemoveBudget forgets a budget, what was used of it and who used it. Executions that have it as a gate wait, and go
// on within 30 s after one of that name is made again. What it is attached to stays: see [Admin.DetachGates]. removed
// is false when there was none.
func (a *Admin) RemoveBudget(ctx context.Context, name string, opts ...flowfabric.ActOption) (removed bool, err error) {
	already := true
	act, err := a.gating(opts, valid.GateName("budget", name))
	if err == nil {
		a.conn.Gates.Forget(flowfabric.BudgetGate(name))
		already, err = a.store.RemoveBudget(act.Noted(ctx, "remove", "budget", name), name)
	}
	return !already && err == nil, about("remove", "budget", name, err)
}

// GetBudget reads a budget: its settings, what was used in this period, its newest 256 audit entries, and the last
// 100 that used of it. Errors: flowfabric.ErrNotFound; ErrInvalidInput for a name that none can have.
func (a *Admin) GetBudget(ctx context.Context, name string) (admission.BudgetRecord, error) {
	_, err := a.gating(nil, valid.GateName("budget", name))
	var record admission.BudgetRecord
	if err == nil {
		record, err = a.store.ReadBudget(ctx, name, spendersRead, auditEntries)
	}
	return record, about("get", "budget", name, err)
}

// Budgets lists all budgets by name, as they are, without audit entries and spenders. Those that could not be read
// are left out, and the error joins why. Errors: flowfabric.ErrTransport; client.ErrClosed.
func (a *Admin) Budgets(ctx context.Context) ([]admission.BudgetRecord, error) {
	if a.closed() {
		return nil, fmt.Errorf("list budgets: %w", client.ErrClosed)
	}
	names, err := a.store.BudgetNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	return readAll(names, func(name string) (admission.BudgetRecord, error) {
		record, err := a.store.ReadBudget(ctx, name, 0, 0)
		return record, about("list", "budget", name, err)
	}, denied.NoBudget)
}

// readAll reads what has the names, a few at a time, in their order. What is gone meanwhile is left out.
func readAll[T any](names []string, read func(name string) (T, error), gone error) ([]T, error) {
	found, errs := make([]T, len(names)), make([]error, len(names))
	p := pool.New().WithMaxGoroutines(partitionCalls)
	for i, name := range names {
		p.Go(func() { found[i], errs[i] = read(name) })
	}
	p.Wait()
	out := make([]T, 0, len(names))
	var failed []error
	for i, err := range errs {
		switch {
		case err == nil:
			out = append(out, found[i])
		case !errors.Is(err, gone):
			failed = append(failed, err)
		}
	}
	return out, errors.Join(failed...)
}

// ReportUsage adds to what was used of a budget, all dimensions or none. Handlers report with their task instead;
// this is for what is used outside of executions, or is known only later. u.Key names the report: repeated with the
// same key within 24 h it is counted once and answered as the first time. u.Execution, if it is set, is whose ledger
// it goes into, from which it can be given back.
//
// A breach is no error but the answer: nothing was counted then, unless the budget only warns. The report that
// crosses a soft limit is also a warning in Config.Logger, once a period and dimension.
//
// Errors: flowfabric.ErrInvalidInput for amounts that are not 0..2^53-1, and for a key, dimensions (1..64) or names
// that cannot be, before any call; from the server when a total would pass 2^53-1, when a budget with
// StrictDimensions has no limits for a dimension, and for a dimension beyond the 64 that any budget counts in a
// period, of which those with limits have theirs kept free. ErrConflict: the key named other amounts; ErrNotFound.
// After ErrTransport it may have been counted: repeat it with the same key.
func (a *Admin) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	_, err := a.gating(nil, valid.GateName("budget", u.Budget), validateReporter(u), validateAmounts(u.Amounts, 0))
	var out admission.Reported
	if err == nil {
		out, err = a.store.ReportUsage(ctx, u)
		for _, x := range out.Breaches {
			if x.Crossed {
				a.conn.Logger.WarnContext(ctx, "flowfabric: the usage is above the soft limit of a budget", "budget",
					u.Budget,
					"dimension", x.Dimension, "used", x.Used, "limit", x.Limit)
			}
		}
	}
	return out, about("report to", "budget", u.Budget, err)
}

// validateReporter wants a key, or a place among the reports of a lease.
func validateReporter(u admission.Usage) error {
	if u.Epoch != 0 || u.Sequence != 0 {
		if u.Key != "" || u.Execution.IsZero() || u.Epoch == 0 || u.Sequence == 0 {
			return fmt.Errorf("%w: Epoch and Sequence go together, with Execution and without Key",
				flowfabric.ErrInvalidInput)
		}
		return nil
	}
	if u.Key == "" {
		return fmt.Errorf("%w: the key of the report is empty, want 1..%d bytes", flowfabric.ErrInvalidInput,
			maxReportKey)
	}
	return valid.ReportKey(u.Key, maxReportKey)
}

// validateAmounts checks amounts, which are at least least.
func validateAmounts(by map[string]int64, least int64) error {
	if len(by) < 1 || len(by) > maxDimensions {
		return fmt.Errorf("%w: %d dimensions, want 1..%d", flowfabric.ErrInvalidInput, len(by), maxDimensions)
	}
	for _, dim := range slices.Sorted(maps.Keys(by)) {
		if err := valid.Dimension("dimension", dim); err != nil {
			return err
		}
		if n := by[dim]; n < least || n > maxAmount {
			return fmt.Errorf("%w: %s is %d, want %d..%d", denied.Delta, dim, n, least, int64(maxAmount))
		}
	}
	return nil
}

// AdjustBudget corrects what was used of a budget in this period, up or down, and returns what was used then. Nothing
// gets below zero, and no limit is asked. The budget's audit log keeps who and why; the reason has at most 256 bytes.
// It is no idempotent call: after ErrTransport look before you repeat it.
//
// Errors: flowfabric.ErrInvalidInput for amounts beyond ±(2^53-1), names and reasons; ErrNotFound.
func (a *Admin) AdjustBudget(ctx context.Context, name string, amounts map[string]int64,
	opts ...flowfabric.ActOption) (used map[string]int64, err error) {
	act, err := a.act(opts)
	err = cmp.Or(a.conn.Closed(), errors.Join(valid.GateName("budget", name), validateAmounts(amounts, -maxAmount),
		validateText("reason", act.Reason), err))
	var wake []engine.Waiter
	if err == nil {
		used, wake, err = a.store.AdjustBudget(act.Noted(ctx, "adjust", "budget", name, amountWords(amounts)...), name,
			amounts)
		a.wake(ctx, "adjustment of "+name, wake)
	}
	return used, about("adjust", "budget", name, err)
}

func validateText(field, text string) error {
	if len(text) > maxAdjustText {
		return fmt.Errorf("%w: %s has %d bytes, want at most %d", flowfabric.ErrInvalidInput, field, len(text),
			maxAdjustText)
	}
	return nil
}

// ResetBudget begins a new period of a budget now: nothing is used of it. The next one begins when it would have
// anyway or, with move, a whole interval after the reset. It returns the number of the period, and for how long it
// goes on, 0 for ever. Work that waits for it goes on. Errors: flowfabric.ErrNotFound; ErrInvalidInput.
func (a *Admin) ResetBudget(ctx context.Context, name string, move bool,
	opts ...flowfabric.ActOption) (period uint64, left time.Duration, err error) {
	act, err := a.gating(opts, valid.GateName("budget", name))
	if err == nil {
		var wake []engine.Waiter
		period, left, wake, err = a.store.ResetBudget(act.Noted(ctx, "reset", "budget", name), name, move)
		a.wake(ctx, "reset of "+name, wake)
	}
	return period, left, about("reset", "budget", name, err)
}

// RefundBudget gives back what an execution reported to a budget in this period, whatever became of it; returned is
// false when there was nothing. What it reported in earlier periods is theirs. Half an hour after the execution was
// purged there is nothing left to give back. Errors: flowfabric.ErrNotFound; ErrInvalidInput.
func (a *Admin) RefundBudget(ctx context.Context, name string, id flowfabric.ExecutionID,
	opts ...flowfabric.ActOption) (returned bool, err error) {
	var empty error
	if id.IsZero() {
		empty = fmt.Errorf("%w: the execution id is empty", flowfabric.ErrInvalidInput)
	}
	act, err := a.gating(opts, valid.GateName("budget", name), empty)
	if err == nil { // of a budget that is not there the server says only that there was nothing
		err = a.conn.Gates.Find(ctx, flowfabric.BudgetGate(name))
	}
	if err == nil {
		var released []bool
		var wake []engine.Waiter
		released, wake, err = a.store.ReleaseUsage(act.Noted(ctx, "refund", "budget", name, id.String()),
			[]engine.Refund{{Budget: name, Execution: id, Outcome: engine.RefundAsked}})
		a.wake(ctx, "refund of "+name, wake)
		returned = len(released) == 1 && released[0]
	}
	return returned, about("refund from", "budget", name, err)
}
