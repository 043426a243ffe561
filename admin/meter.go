package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Bounds of gates and of what is said to them.
const (
	maxAmount     = 1<<53 - 1
	maxDimensions = 64
	maxScope      = 128 // bytes
	maxReportKey  = 128
	maxAdjustText = 256
	maxReset      = 10 * 365 * 24 * time.Hour
	auditEntries  = 256 // that Get reads
	spendersRead  = 100
	holdsRead     = 1000
	maxStarts     = 1_000_000 // in a window, and at once
	maxWindow     = 30 * 24 * time.Hour
	maxJitter     = time.Minute
)

// PutGate makes a gate, or changes the one of its name to what g says: what was used stays, and its period goes on
// unless the interval is another one; what it admitted keeps its slots, also those above a lower Concurrency. Work that
// waits for it is checked again. It changes nothing if the gate is as g says already, so a program may call it at
// every start, and the call may be repeated.
//
// With flowfabric.IfNew it changes no gate that is there: that suits gates that a program makes and operators
// change. With flowfabric.IfRevision it changes only what [Admin.GetGate] told. A gate that is as g says is no
// conflict, whatever its revision.
//
// Errors: flowfabric.ErrInvalidInput for limits, periods, rates and actions that cannot be, with the field, and for
// names, before any call; ErrConflict: with IfNew there is one with other settings, with IfRevision somebody has
// changed it; ErrNotFound, with IfRevision, and if there is no gate of the name of its Parent. client.ErrClosed.
func (a *Admin) PutGate(ctx context.Context, g admission.Gate, opts ...flowfabric.ChangeOption) error {
	acts, expected := link.ChangeOf(opts)
	act, err := a.gating(acts, valid.Service("gate", g.Name), validateGate(g))
	if err != nil {
		return about("put", "gate", g.Name, err)
	}
	if err := a.above(ctx, g); err != nil {
		return about("put", "gate", g.Name, err)
	}
	if link.Rehearsed(ctx) != nil {
		return nil
	}
	return synced(expected, func() (uint64, error) {
		r, err := a.GetGate(ctx, g.Name)
		return r.Revision, err
	}, func(revision uint64) error {
		_, _, wake, err := a.store.PutGate(act.Noted(ctx, putting(revision), "gate", g.Name), g, revision)
		a.wake(ctx, "change of "+g.Name, wake)
		return about(putting(revision), "gate", g.Name, conflict(revision, err))
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

// above looks at the gates that would be above one: they are there, at most eight, and it is none of them.
func (a *Admin) above(ctx context.Context, g admission.Gate) error {
	for name, n := g.Parent, 1; name != ""; n++ {
		switch {
		case name == g.Name:
			return fmt.Errorf("%w: parent %q: the gate would be above itself", denied.GateSpec, g.Parent)
		case n > limits.MaxGateDepth:
			return fmt.Errorf("%w: parent %q: more than %d gates would be above it", denied.GateSpec, g.Parent,
				limits.MaxGateDepth)
		}
		if r := link.Rehearsed(ctx); r != nil {
			if above, planned := r.Gates[name]; planned {
				name = above
				continue
			}
		}
		r, err := a.store.ReadGate(ctx, name, 0, 0, 0)
		if err != nil {
			return fmt.Errorf("parent %q: %w", name, err)
		}
		name = r.Parent
	}
	return nil
}

// validateGate checks everything but the name.
func validateGate(g admission.Gate) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{denied.GateSpec}, a...)...)
	}
	if g.Parent != "" {
		if err := valid.GateName("parent", g.Parent); err != nil {
			return bad("%w", err)
		}
	}
	switch reset := time.Duration(g.Reset); {
	case len(g.Scope) > maxScope:
		return bad("scope has %d bytes, want at most %d", len(g.Scope), maxScope)
	case !slices.Contains([]admission.HardAction{"", admission.HardReject, admission.HardFail, admission.HardBlock,
		admission.HardAsk}, g.OnHard):
		return bad("action on a hard limit is %.40q, want reject, fail, block or ask", g.OnHard)
	case g.Reset != 0 && (reset < time.Second || reset > maxReset || reset%time.Millisecond != 0):
		return bad("reset %s, want 0 or whole milliseconds of 1s..10 years", g.Reset)
	case len(g.Limits) > maxDimensions:
		return bad("it has %d dimensions, want at most %d", len(g.Limits), maxDimensions)
	case g.Rate < 0 || g.Rate > maxStarts:
		return bad("rate %d, want 0..%d starts in a window", g.Rate, maxStarts)
	case g.Window < 0 || time.Duration(g.Window) > maxWindow || time.Duration(g.Window)%time.Millisecond != 0:
		return bad("window %s, want whole milliseconds, at most 30 days", g.Window)
	case g.Rate > 0 && g.Window == 0:
		return bad("rate %d without a window", g.Rate)
	case g.Concurrency < 0 || g.Concurrency > maxStarts:
		return bad("concurrency %d, want 0..%d at once", g.Concurrency, maxStarts)
	case g.Jitter < 0 || time.Duration(g.Jitter) > maxJitter || time.Duration(g.Jitter)%time.Millisecond != 0:
		return bad("jitter %s, want whole milliseconds, at most 60s", g.Jitter)
	}
	for _, outcome := range g.Refund {
		if !slices.Contains([]string{"failed", "cancelled", "expired"}, outcome) {
			return bad("refund of %.40q, want failed, cancelled or expired", outcome)
		}
	}
	if strings.Contains(g.Name, "/") && g.Service == nil {
		return bad("name %q: one with a slash is of a service", g.Name)
	}
	return cmp.Or(validateLimits(g.Limits, bad), validateService(g, bad))
}

// validateService checks what is said of a service.
func validateService(g admission.Gate, bad func(format string, a ...any) error) error {
	s := g.Service
	if s == nil {
		return nil
	}
	own := admission.Gate{Name: g.Name, Scope: g.Scope, OnHard: g.OnHard, Service: s}
	if !reflect.DeepEqual(g, own) || g.OnHard != "" && g.OnHard != admission.HardReject {
		return bad("the gate of a service has a scope and nothing else beside it")
	}
	switch {
	case len(s.PerMinute) == 0 && s.Calls == 0:
		return bad("a service has amounts per minute, or a number of calls at once")
	case len(s.PerMinute) > limits.MaxServiceDimensions:
		return bad("a service has %d dimensions, want at most %d", len(s.PerMinute), limits.MaxServiceDimensions)
	case s.Calls < 0 || s.Calls > maxStarts:
		return bad("calls %d, want 0..%d at once", s.Calls, maxStarts)
	case s.Patience < 0 || time.Duration(s.Patience) > time.Minute || time.Duration(s.Patience)%time.Millisecond != 0:
		return bad("patience %s, want whole milliseconds, at most 60s", s.Patience)
	case len(s.Weights) > limits.MaxWeights:
		return bad("%d namespaces have a weight, want at most %d", len(s.Weights), limits.MaxWeights)
	}
	for _, dim := range slices.Sorted(maps.Keys(s.PerMinute)) {
		n, burst := s.PerMinute[dim], s.Burst[dim]
		if err := valid.Dimension("per_minute", dim); err != nil {
			return bad("%w", err)
		}
		if n < 2 || n > limits.MaxPerMinute {
			return bad("%d %s per minute, want 2..%d", n, dim, limits.MaxPerMinute)
		}
		if burst < 0 || burst > n/2 {
			return bad("burst of %s is %d, want 0..%d: half of what a minute has", dim, burst, n/2)
		}
	}
	for _, dim := range slices.Sorted(maps.Keys(s.Burst)) {
		if _, ok := s.PerMinute[dim]; !ok {
			return bad("burst of %.64q, of which a minute is not limited", dim)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(s.Weights)) {
		if err := valid.Name("namespace", namespace); err != nil {
			return bad("%w", err)
		}
		if n := s.Weights[namespace]; n < 1 || n > limits.MaxWeight {
			return bad("weight %d of namespace %s, want 1..%d", n, namespace, limits.MaxWeight)
		}
	}
	return nil
}

// validateLimits checks the limits of dimensions.
func validateLimits(by map[string]admission.Limit, bad func(format string, a ...any) error) error {
	for _, dim := range slices.Sorted(maps.Keys(by)) {
		l := by[dim]
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

// RemoveGate forgets a gate, what was used of it, who used it, and what it admitted. Executions that have it wait, and
// go on within 30 s after one of that name is made again. What it is attached to stays: see [Admin.DetachGates].
// removed is false when there was none.
func (a *Admin) RemoveGate(ctx context.Context, name string, opts ...flowfabric.ActOption) (removed bool, err error) {
	already := true
	act, err := a.gating(opts, valid.Service("gate", name))
	if err == nil {
		a.conn.Gates.Forget(flowfabric.Gate(name))
		already, err = a.store.RemoveGate(act.Noted(ctx, "remove", "gate", name), name)
	}
	return !already && err == nil, about("remove", "gate", name, err)
}

// GetGate reads a gate: its settings, what was used in this period, what started in its window, who holds its slots (up
// to 1,000), the last 100 that used of it, and its newest 256 audit entries. Errors: flowfabric.ErrNotFound;
// ErrInvalidInput for a name that none can have.
func (a *Admin) GetGate(ctx context.Context, name string) (admission.GateRecord, error) {
	_, err := a.gating(nil, valid.Service("gate", name))
	var record admission.GateRecord
	if err == nil {
		record, err = a.store.ReadGate(ctx, name, spendersRead, holdsRead, auditEntries)
	}
	return record, about("get", "gate", name, err)
}

// GetLimit reads what a limit of a key counts now: what started in its window, who holds its slots (up to 1,000), and
// how many queues wait. A key that nobody uses has none of it. Errors: flowfabric.ErrInvalidInput as
// [flowfabric.LimitKey] says.
func (a *Admin) GetLimit(ctx context.Context, key string, limit flowfabric.Limit) (admission.GateRecord, error) {
	var said flowfabric.Start
	err := option.Apply(&said, 0, flowfabric.LimitKey(key, limit))
	gates, wrong := valid.Gates(said.Gates())
	err = errors.Join(err, wrong)
	_, err = a.gating(nil, err)
	var record admission.GateRecord
	if err == nil {
		record, err = a.store.ReadGate(ctx, gates[0].Name(), 0, holdsRead, 0)
	}
	return record, about("get", "limit", key, err)
}

// Gates lists all gates by name, as they are, without audit entries, spenders and holds. Those that could not be read
// are left out, and the error joins why. Errors: flowfabric.ErrTransport; client.ErrClosed.
func (a *Admin) Gates(ctx context.Context) ([]admission.GateRecord, error) {
	if a.closed() {
		return nil, fmt.Errorf("list gates: %w", client.ErrClosed)
	}
	names, err := a.store.GateNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("list gates: %w", err)
	}
	return readAll(names, func(name string) (admission.GateRecord, error) {
		record, err := a.store.ReadGate(ctx, name, 0, 0, 0)
		return record, about("list", "gate", name, err)
	}, denied.NoGate)
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

// ReportUsage adds to what was used of a gate, all dimensions or none. Handlers report with their task instead;
// this is for what is used outside of executions, or is known only later. u.Key names the report: repeated with the
// same key within 24 h it is counted once and answered as the first time. u.Execution, if it is set, is whose ledger
// it goes into, from which it can be given back.
//
// A breach is no error but the answer: nothing was counted then, unless the gate only warns. The report that
// crosses a soft limit is also a warning in Config.Logger, once a period and dimension.
//
// Errors: flowfabric.ErrInvalidInput for amounts that are not 0..2^53-1, and for a key, dimensions (1..64) or names
// that cannot be, before any call; from the server when a total would pass 2^53-1, when a gate with
// StrictDimensions has no limits for a dimension, and for a dimension beyond the 64 that any gate counts in a
// period, of which those with limits have theirs kept free. ErrConflict: the key named other amounts; ErrNotFound.
// After ErrTransport it may have been counted: repeat it with the same key.
func (a *Admin) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	_, err := a.gating(nil, valid.GateName("gate", u.Gate), validateReporter(u), validateAmounts(u.Amounts, 0))
	var out admission.Reported
	if err == nil {
		out, err = a.store.ReportUsage(ctx, u)
		for _, x := range out.Breaches {
			if x.Crossed {
				a.conn.Logger.WarnContext(ctx, "flowfabric: the usage is above the soft limit of a gate", "gate",
					u.Gate,
					"dimension", x.Dimension, "used", x.Used, "limit", x.Limit)
			}
		}
	}
	return out, about("report to", "gate", u.Gate, err)
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

// AdjustUsage corrects what was used of a gate in this period, up or down, and returns what was used then. Nothing
// gets below zero, and no limit is asked. The gate's audit log keeps who and why; the reason has at most 256 bytes.
// It is no idempotent call: after ErrTransport look before you repeat it.
//
// Errors: flowfabric.ErrInvalidInput for amounts beyond ±(2^53-1), names and reasons; ErrNotFound.
func (a *Admin) AdjustUsage(ctx context.Context, name string, amounts map[string]int64,
	opts ...flowfabric.ActOption) (used map[string]int64, err error) {
	act, err := a.act(opts)
	err = cmp.Or(a.conn.Closed(), errors.Join(valid.GateName("gate", name), validateAmounts(amounts, -maxAmount),
		validateText("reason", act.Reason), err))
	var wake []engine.Waiter
	if err == nil {
		used, wake, err = a.store.AdjustUsage(act.Noted(ctx, "adjust", "gate", name, amountWords(amounts)...), name,
			amounts)
		a.wake(ctx, "adjustment of "+name, wake)
	}
	return used, about("adjust", "gate", name, err)
}

// RaiseLimits lifts hard limits of a gate for the period that goes on, by amounts of 0..2^53-1, and returns by how much
// they are higher now. A dimension without a hard limit stays as it is. What waits and fits goes on. The next period
// begins with the limits that the gate has; [Admin.PutGate] changes those.
//
// With an execution the limits are higher for that one alone: it gets an allowance, on top of what it may have, and the
// amounts that are returned are what it has then. When a reservation or a report of it would be refused, or had to wait
// in line, the limit is raised by exactly what is lacking, out of the allowance, so that nobody else has more or less
// room. What is left is gone with the period. It waits in its queue until those before it have gone on, as ever. The
// zero id is for everybody.
//
// The gate's audit log keeps who and why; the reason has at most 256 bytes. It is no idempotent call: after
// ErrTransport look before you repeat it. Errors: flowfabric.ErrInvalidInput for amounts, also if a limit would pass
// 2^53-1, names and reasons; ErrNotFound.
func (a *Admin) RaiseLimits(ctx context.Context, name string, by map[string]int64, execution flowfabric.ExecutionID,
	opts ...flowfabric.ActOption) (raised map[string]int64, err error) {
	act, err := a.act(opts)
	err = cmp.Or(a.conn.Closed(), errors.Join(valid.GateName("gate", name), validateAmounts(by, 0),
		validateText("reason", act.Reason), err))
	var wake []engine.Waiter
	if err == nil {
		details := amountWords(by)
		if !execution.IsZero() {
			details = append(details, execution.String())
		}
		raised, wake, err = a.store.RaiseLimits(act.Noted(ctx, "raise", "gate", name, details...),
			engine.Raise{Gate: name, Execution: execution, By: by})
		a.wake(ctx, "raise of "+name, wake)
	}
	return raised, about("raise", "gate", name, err)
}

func validateText(field, text string) error {
	if len(text) > maxAdjustText {
		return fmt.Errorf("%w: %s has %d bytes, want at most %d", flowfabric.ErrInvalidInput, field, len(text),
			maxAdjustText)
	}
	return nil
}

// ResetUsage begins a new period of a gate now: nothing is used of it. The next one begins when it would have
// anyway or, with move, a whole interval after the reset. It returns the number of the period, and for how long it
// goes on, 0 for ever. Work that waits for it goes on. Errors: flowfabric.ErrNotFound; ErrInvalidInput.
func (a *Admin) ResetUsage(ctx context.Context, name string, move bool,
	opts ...flowfabric.ActOption) (period uint64, left time.Duration, err error) {
	act, err := a.gating(opts, valid.Service("gate", name))
	if err == nil {
		var wake []engine.Waiter
		period, left, wake, err = a.store.ResetUsage(act.Noted(ctx, "reset", "gate", name), name, move)
		a.wake(ctx, "reset of "+name, wake)
	}
	return period, left, about("reset", "gate", name, err)
}

// RefundUsage gives back what an execution reported to a gate in this period, whatever became of it; returned is
// false when there was nothing. What it reported in earlier periods is theirs. Half an hour after the execution was
// purged there is nothing left to give back. Errors: flowfabric.ErrNotFound; ErrInvalidInput.
func (a *Admin) RefundUsage(ctx context.Context, name string, id flowfabric.ExecutionID,
	opts ...flowfabric.ActOption) (returned bool, err error) {
	var empty error
	if id.IsZero() {
		empty = fmt.Errorf("%w: the execution id is empty", flowfabric.ErrInvalidInput)
	}
	act, err := a.gating(opts, valid.GateName("gate", name), empty)
	if err == nil { // of a gate that is not there the server says only that there was nothing
		err = a.conn.Gates.Find(ctx, flowfabric.Gate(name))
	}
	if err == nil {
		var released []bool
		var wake []engine.Waiter
		released, wake, err = a.store.SettleGates(act.Noted(ctx, "refund", "gate", name, id.String()),
			[]engine.News{{Gate: name, Execution: id, What: engine.NewsAsked}})
		a.wake(ctx, "refund of "+name, wake)
		returned = len(released) == 1 && released[0]
	}
	return returned, about("refund from", "gate", name, err)
}
