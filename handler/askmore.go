package handler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// AskMore asks a person for what a gate had no room for, after [Task.Reserve] or [Task.Spend] was refused. The
// execution waits outside the slots, as with [Task.Ask]: name is that of the wait. If the answer is approve, the hard
// limits of the gate are raised for the period that goes on by what was refused, once whatever is repeated, and AskMore
// returns nil: reserve again then. Any other answer returns over. The gate's OnHard is best HardReject: with HardFail
// and HardBlock the handler is stopped before it can ask, and HardAsk asks by itself.
//
//	text, err := draft(ctx, t, "draft") // a step that reserves
//	if over, ok := errors.AsType[*handler.OverBudgetError](err); ok {
//		if err := t.AskMore(ctx, "more tokens", over, suspend.Question{}); err != nil {
//			return "", err
//		}
//		text, err = draft(ctx, t, "draft again") // a run uses each name once
//	}
//
// A question may have the choice "alone": it gives this execution alone what was refused, as an allowance, see
// admin.Admin.RaiseLimits. So a person may decide for whom there is more, or with the choices alone and reject, only
// whether this one gets more:
//
//	suspend.Question{Choices: []suspend.Choice{{Name: "approve", Label: "More for all"},
//		{Name: "alone", Label: "More for this one"}, {Name: "reject"}}}
//
// An empty title of the question says what is asked for: "Gate acme: 50000 more tokens for 3-0197f3a0-…?". Choices
// other than these may be given; only approve and alone raise. Executions in line for the gate are served first, but
// for alone. That it was raised is recorded as the step "raised: " and the name.
//
// Errors: over; those of Ask, among them the wait itself, which the handler returns; ErrNotFound when the gate was
// removed; ErrTransport. Call it outside of steps.
func (t *Task) AskMore(ctx context.Context, name string, over *OverBudgetError, q suspend.Question,
	opts ...suspend.Option) (err error) {
	defer func() { err = denied.Last(err) }()
	if over == nil || len(over.Breaches) == 0 {
		return fmt.Errorf("ask for more: %w: there is no refusal", flowfabric.ErrInvalidInput)
	}
	missing := over.missing()
	var words []string
	for _, dim := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, fmt.Sprintf("%d more %s", missing[dim], dim))
	}
	q.Title = cmp.Or(q.Title, fmt.Sprintf("Gate %s: %s for %s?", over.Gate, strings.Join(words, " and "), t.ID()))
	answer, err := t.Ask(ctx, name, q, opts...)
	switch {
	case err != nil:
		return err
	case answer.Choice != approve && answer.Choice != alone:
		return over
	case t.cfg.Ledger == nil:
		return nil
	}
	_, err = Step(ctx, t, raised+name, func(ctx context.Context) (bool, error) {
		return true, t.raise(ctx, name, answer.Choice, over.Gate, missing)
	})
	if err != nil {
		return fmt.Errorf("raise the limits of gate %s: %w", over.Gate, err)
	}
	return nil
}

// raise makes limits of a gate higher by what is missing, once for the name of a wait: for all, or for this execution
// alone, as the answer to it chose.
func (t *Task) raise(ctx context.Context, name, choice, gate string, missing map[string]int64) error {
	x := engine.Raise{Gate: gate, Request: uuid.NewSHA1(ids.UUID(t.ID()), []byte("more "+name)), By: missing}
	if choice == alone {
		x.Execution = t.ID()
	}
	return ledger.Raise(ctx, t.cfg.Ledger, x)
}

// missing is what limits are to be raised by, so that what was refused fits: all of it, and what is used above a limit.
func (e *OverBudgetError) missing() map[string]int64 {
	out := map[string]int64{}
	for _, b := range e.Breaches {
		n := e.Amounts[b.Dimension]
		out[b.Dimension] = min(maxAmount, max(n, n+b.Used-b.Limit))
	}
	return out
}

// The names of answers that raise, for all and for the execution alone; and what the name of the step begins with that
// records it.
const (
	approve = "approve"
	alone   = "alone"
	raised  = "raised: "
)
