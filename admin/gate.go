package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// admitter is the part of the engine behind gates.
type admitter interface {
	PutGate(ctx context.Context, g admission.Gate,
		expected uint64) (revision uint64, already bool, wake []engine.Waiter, err error)
	RemoveGate(ctx context.Context, name string) (already bool, err error)
	ReadGate(ctx context.Context, name string, spenders, holds, entries int) (admission.GateRecord, error)
	GateNames(ctx context.Context) ([]string, error)
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	AdjustUsage(ctx context.Context, name string,
		by map[string]int64) (used map[string]int64, wake []engine.Waiter, err error)
	RaiseLimits(ctx context.Context, x engine.Raise) (raised map[string]int64, wake []engine.Waiter, err error)
	ResetUsage(ctx context.Context, name string,
		move bool) (period uint64, left time.Duration, wake []engine.Waiter, err error)
	SettleGates(ctx context.Context, news []engine.News) (done []bool, wake []engine.Waiter, err error)
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
	ChangeAttached(ctx context.Context, scope admission.Scope, how engine.AttachHow, gates []flowfabric.Gate,
	) []engine.InPartition[struct{}]
	Gates(ctx context.Context) []engine.PartitionGates
}

// routesPerCall is how many routes one call opens; wakeTime bounds all calls of one waking.
const (
	routesPerCall = 256
	wakeTime      = 5 * time.Second
)

// wake opens the routes that a gate had closed. It is a courtesy: they open by themselves, within half a minute, so
// that a failure is worth a line and no error, and the caller's context does not end it halfway.
func (a *Admin) wake(ctx context.Context, why string, waiters []engine.Waiter) {
	if len(waiters) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTime)
	defer cancel()
	by := map[uint16][]uint64{}
	for _, w := range waiters {
		by[w.Partition] = append(by[w.Partition], w.Route)
	}
	p := pool.New().WithMaxGoroutines(partitionCalls)
	for partition, routes := range by {
		for part := range slices.Chunk(routes, routesPerCall) {
			p.Go(func() {
				if _, err := a.store.OpenRoutes(ctx, partition, part); err != nil {
					a.conn.Logger.Warn("flowfabric: some routes could not be opened; they open by themselves",
						"after", why, "partition",
						partition, "routes", len(part), "error", err)
				}
			})
		}
	}
	p.Wait()
}

// gating begins a call about a gate: who asks and why, and whether it can be made.
func (a *Admin) gating(opts []flowfabric.ActOption, checks ...error) (act link.Act, err error) {
	act, err = a.act(opts)
	return act, cmp.Or(a.conn.Closed(), errors.Join(append(checks, err)...))
}

// conflict says which revision a gate has, and which was expected: 0 is none.
func conflict(expected uint64, err error) error {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || denied.Slot(refused, 1) == "" || !errors.Is(err, denied.GateConflict) {
		return err
	}
	if expected != 0 {
		return link.InWords(fmt.Sprintf("%s: somebody changed it: you had revision %d, it is at revision %s",
			refused.Code, expected, denied.Slot(refused, 1)), err)
	}
	return link.InWords(
		fmt.Sprintf("%s: it exists and has other settings, at revision %s; "+
			"admin.PutGate with that revision changes them", refused.Code, denied.Slot(refused, 1)), err)
}

// putting is what a put with a revision does.
func putting(revision uint64) string {
	if revision == 0 {
		return "create"
	}
	return "update"
}

// about wraps the error of a call about a gate.
func about(verb, what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", verb, what, name, err)
}

// AttachGates has gates asked for everything that is created in a scope from now on: everywhere (the
// zero admission.Scope), in a namespace, in a lane of a namespace, or with a tag; they come in addition to those that
// are attached to it already. What exists keeps the gates it has. A lane without a namespace is in the client's. Each
// partition is changed by one atomic call.
//
// Errors: flowfabric.ErrInvalidInput for no gates, names or a scope that cannot be, or when more than 16 gates or 8
// limits of keys would be attached; ErrNotFound before anything is changed; a [*PartitionsError] that names the
// partitions that did not do it: the others did, and the call may be repeated. client.ErrClosed.
func (a *Admin) AttachGates(ctx context.Context, scope admission.Scope, gates []flowfabric.Gate,
	opts ...flowfabric.ActOption) error {
	if len(gates) == 0 {
		return fmt.Errorf("attach: %w: no gate is named", flowfabric.ErrInvalidInput)
	}
	return a.changeAttached(ctx, engine.AttachAdd, scope, gates, opts)
}

// DetachGates ends what [Admin.AttachGates] began, for these gates, or with none for all gates of the scope. What was
// created in between keeps them. Detaching what is not attached is no error. Errors: those of AttachGates; a gate
// need not exist.
func (a *Admin) DetachGates(ctx context.Context, scope admission.Scope, gates []flowfabric.Gate,
	opts ...flowfabric.ActOption) error {
	how := engine.AttachRemove
	if len(gates) == 0 {
		how = engine.AttachSet
	}
	return a.changeAttached(ctx, how, scope, gates, opts)
}

func (a *Admin) changeAttached(ctx context.Context, how engine.AttachHow, scope admission.Scope,
	gates []flowfabric.Gate, opts []flowfabric.ActOption) error {
	verb := "detach"
	if how == engine.AttachAdd {
		verb = "attach"
	}
	scope, err := a.validScope(scope)
	gates, wrong := valid.Gates(gates)
	act, err := a.gating(opts, err, wrong)
	if err == nil && how == engine.AttachAdd {
		err = a.conn.Gates.Require(ctx, gates)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if link.Rehearsed(ctx) != nil {
		return nil
	}
	ctx = act.In(ctx, scope.Namespace, verb, "scope", scopeWords(scope), gateWords(gates)...)
	answers := a.store.ChangeAttached(ctx, scope, how, gates)
	return foldAnswers(verb, answers)
}

// validScope checks a scope, which is one of four.
func (a *Admin) validScope(s admission.Scope) (admission.Scope, error) {
	switch {
	case s.TagKey != "" || s.Tag != "":
		if s.Namespace != "" || s.Lane != "" {
			return s, fmt.Errorf("%w: scope: a tag goes with neither namespace nor lane", flowfabric.ErrInvalidInput)
		}
		return s, valid.Tags(map[string]string{s.TagKey: s.Tag})
	case s.Lane != "":
		if s.Namespace == "" {
			s.Namespace = a.conn.Namespace
		}
		return s, errors.Join(valid.Name("namespace", s.Namespace), valid.Name("lane", s.Lane))
	case s.Namespace != "":
		return s, valid.Name("namespace", s.Namespace)
	}
	return s, nil
}
