package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// admitter is the part of the engine behind budgets, quotas and gates.
type admitter interface {
	PutBudget(ctx context.Context, b admission.Budget, expected uint64, by string) (revision uint64, already bool, wake []engine.Waiter, err error)
	RemoveBudget(ctx context.Context, name string) (already bool, err error)
	ReadBudget(ctx context.Context, name string, spenders, entries int) (admission.BudgetRecord, error)
	BudgetNames(ctx context.Context) ([]string, error)
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	AdjustBudget(ctx context.Context, name string, by map[string]int64, who, reason string) (used map[string]int64, wake []engine.Waiter, err error)
	ResetBudget(ctx context.Context, name, by string, move bool) (period uint64, left time.Duration, wake []engine.Waiter, err error)
	ReleaseUsage(ctx context.Context, by string, items []engine.Refund) (released []bool, wake []engine.Waiter, err error)
	PutQuota(ctx context.Context, q admission.Quota, expected uint64, by string) (revision uint64, already bool, wake []engine.Waiter, err error)
	RemoveQuota(ctx context.Context, name string) (already bool, err error)
	ReadQuota(ctx context.Context, name string, holds, entries int) (admission.QuotaRecord, error)
	QuotaNames(ctx context.Context) ([]string, error)
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
	ChangeAttached(ctx context.Context, scope admission.Scope, how engine.AttachHow, gates []flowfabric.Gate, by string) []engine.AttachAnswer
	Gates(ctx context.Context) []engine.PartitionGates
	PauseExecution(ctx context.Context, id flowfabric.ExecutionID, by, reason string) (already bool, err error)
	UnpauseExecution(ctx context.Context, id flowfabric.ExecutionID, by string) (already bool, err error)
	SetShare(ctx context.Context, namespace, lane string, weight int) []engine.AttachAnswer
}

// GateOption changes a call about budgets, quotas and what they are attached to: [By].
type GateOption interface{ gating(by *string) }

func (b By) gating(by *string) { *by = string(b) }

// AdmissionOption is [Budgets] or [Quotas], an option of [Submit], [Schedule] and [SubmitFlow].
type AdmissionOption interface {
	WorkOption
	FlowOption
}

type gates func([]flowfabric.Gate) []flowfabric.Gate

func (g gates) submit(s *submission)         { s.item.Gates = g(s.item.Gates) }
func (g gates) schedule(s *scheduling)       { g.submit(&s.submission) }
func (g gates) submitFlow(q *flowSubmission) { q.gates = g(q.gates) }

// Budgets names the budgets that must have room before the execution runs, and that its handler spends of: at most 16, instead of
// those of its definition. Those that are attached to its namespace, lane or tags come in addition ([Client.AttachGates]). Of a flow: in
// addition to those of its nodes, for all of them. A budget that does not exist refuses the submission with flowfabric.ErrBudgetNotFound
// before anything is created; what is known to exist is believed for 10 s. Spec 70 §1.4.
func Budgets(names ...string) AdmissionOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithBudgets(g, names...) })
}

// Quotas names the quotas that must admit the execution before it runs: at most 8, as [Budgets] does budgets. One that does not exist
// is flowfabric.ErrQuotaNotFound.
func Quotas(names ...string) AdmissionOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithQuotas(g, names...) })
}

// For how long, and of how many gates, it is believed that they exist.
const (
	gateBelieved = 10 * time.Second
	gatesKnown   = 4096
)

// knownGates remembers which gates exist.
type knownGates struct {
	mu    sync.Mutex
	until map[flowfabric.Gate]time.Time
}

func (k *knownGates) has(g flowfabric.Gate, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.until[g])
}

func (k *knownGates) add(g flowfabric.Gate, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil || len(k.until) >= gatesKnown {
		k.until = map[flowfabric.Gate]time.Time{}
	}
	k.until[g] = now.Add(gateBelieved)
}

func (k *knownGates) remove(g flowfabric.Gate) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.until, g)
}

// requireGates refuses gates that do not exist. Nothing has been created when it fails. The reads are repeated as create calls are.
func (c *Client) requireGates(ctx context.Context, all []flowfabric.Gate) error {
	var unsure []flowfabric.Gate
	for _, g := range all {
		if !c.known.has(g, time.Now()) {
			unsure = append(unsure, g)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	errs := make([]error, len(unsure))
	p := pool.New().WithMaxGoroutines(partitionCalls)
	for i, g := range unsure {
		p.Go(func() {
			_, err := persist(ctx, c, func() (struct{}, error) { return struct{}{}, c.findGate(ctx, g) })
			if err == nil {
				c.known.add(g, time.Now())
				return
			}
			errs[i] = fmt.Errorf("%s: %w", g, err)
		})
	}
	p.Wait()
	err := errors.Join(errs...)
	if ctx.Err() != nil && err != nil && repeatable(err) {
		return notSent(ctx)
	}
	return err
}

func (c *Client) findGate(ctx context.Context, g flowfabric.Gate) error {
	if g.IsBudget() {
		_, err := c.store.ReadBudget(ctx, g.Name(), 0, 0)
		return err
	}
	_, err := c.store.ReadQuota(ctx, g.Name(), 0, 0)
	return err
}

// routesPerCall is how many routes one call opens; wakeTime bounds all calls of one waking.
const (
	routesPerCall = 256
	wakeTime      = 5 * time.Second
)

// wake opens the routes that a gate had closed. It is a courtesy: they open by themselves, within half a minute, so that a failure is
// worth a line and no error, and the caller's context does not end it halfway.
func (c *Client) wake(ctx context.Context, why string, waiters []engine.Waiter) {
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
				if _, err := c.store.OpenRoutes(ctx, partition, part); err != nil {
					c.cfg.Logger.Warn("flowfabric: routes stay closed for a while", "after", why, "partition", partition, "routes", len(part), "error", err)
				}
			})
		}
	}
	p.Wait()
}

// gating begins a call about a gate: who asks, and whether it can be made.
func (c *Client) gating(opts []GateOption, checks ...error) (by string, err error) {
	by = c.by()
	for _, o := range opts {
		o.gating(&by)
	}
	if c.closed.Load() {
		return by, ErrClosed
	}
	return by, errors.Join(append(checks, validateBy(by))...)
}

// conflict says which revision a budget or quota has, and which was expected: 0 is none.
func conflict(expected uint64, err error) error {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || refused.Slot(1) == "" {
		return err
	}
	advice := ""
	switch {
	case errors.Is(err, flowfabric.ErrBudgetConflict):
		advice = "client.UpdateBudget"
	case errors.Is(err, flowfabric.ErrQuotaConflict):
		advice = "client.UpdateQuota"
	default:
		return err
	}
	if expected != 0 {
		return &refusal{fmt.Sprintf("%s: somebody changed it: you had revision %d, it is at revision %s", refused.Code, expected, refused.Slot(1)), err}
	}
	return &refusal{fmt.Sprintf("%s: it exists and has other settings, at revision %s; %s changes them", refused.Code, refused.Slot(1), advice), err}
}

// about wraps the error of a call about a budget or quota.
func about(verb, what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", verb, what, name, err)
}

// AttachGates has budgets and quotas asked for everything that is created in a scope from now on: everywhere (the zero admission.Scope), in a
// namespace, in a lane of a namespace, or with a tag; they come in addition to those that are attached to it already. What exists keeps
// the gates it has. A lane without a namespace is in the client's. Each partition is changed by one atomic call.
//
// Errors: flowfabric.ErrInvalidInput for no gates, names or a scope that cannot be, or when more than 16 budgets or 8 quotas would be
// attached; ErrBudgetNotFound, ErrQuotaNotFound before anything is changed; a [*PartitionsError] that names the partitions that did not
// do it: the others did, and the call may be repeated. [ErrClosed]. Spec 70 §1.4.
func (c *Client) AttachGates(ctx context.Context, scope admission.Scope, gates []flowfabric.Gate, opts ...GateOption) error {
	if len(gates) == 0 {
		return fmt.Errorf("attach: %w: no budget and no quota is named", flowfabric.ErrInvalidInput)
	}
	return c.changeAttached(ctx, "attach", scope, engine.AttachAdd, gates, opts)
}

// DetachGates ends what [Client.AttachGates] began, for these gates, or with none for all gates of the scope. What was created in between keeps
// them. Detaching what is not attached is no error. Errors: those of AttachGates; a gate need not exist.
func (c *Client) DetachGates(ctx context.Context, scope admission.Scope, gates []flowfabric.Gate, opts ...GateOption) error {
	how := engine.AttachRemove
	if len(gates) == 0 {
		how = engine.AttachSet
	}
	return c.changeAttached(ctx, "detach", scope, how, gates, opts)
}

func (c *Client) changeAttached(ctx context.Context, verb string, scope admission.Scope, how engine.AttachHow, gates []flowfabric.Gate, opts []GateOption) error {
	scope, err := c.validScope(scope)
	gates, wrong := flowfabric.NormalizeGates(gates)
	by, err := c.gating(opts, err, wrong)
	if err == nil && how == engine.AttachAdd {
		err = c.requireGates(ctx, gates)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	answers := c.store.ChangeAttached(ctx, scope, how, gates, by)
	return foldAnswers(verb, answers)
}

func foldAnswers(verb string, answers []engine.AttachAnswer) error {
	var failed partitionErrors
	for _, a := range answers {
		if a.Err != nil {
			failed.add(a.Partition, a.Err)
		}
	}
	return failed.sum(verb, len(answers))
}

// validScope checks a scope, which is one of four.
func (c *Client) validScope(s admission.Scope) (admission.Scope, error) {
	switch {
	case s.TagKey != "" || s.Tag != "":
		if s.Namespace != "" || s.Lane != "" {
			return s, fmt.Errorf("%w: scope: a tag goes with neither namespace nor lane", flowfabric.ErrInvalidInput)
		}
		return s, flowfabric.ValidateTags(map[string]string{s.TagKey: s.Tag})
	case s.Lane != "":
		if s.Namespace == "" {
			s.Namespace = c.cfg.Namespace
		}
		return s, errors.Join(flowfabric.ValidateName("namespace", s.Namespace), flowfabric.ValidateName("lane", s.Lane))
	case s.Namespace != "":
		return s, flowfabric.ValidateName("namespace", s.Namespace)
	}
	return s, nil
}
