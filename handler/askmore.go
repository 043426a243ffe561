package handler

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// AskMore asks a person for what a gate had no room for, after [Task.Reserve] or [Task.Spend] was refused. The
// execution waits outside the slots, as with [Task.Ask]: name is that of the wait. If the answer is approve, the hard
// limits of the gate are raised for the period that goes on by what was refused, once whatever is repeated, and AskMore
// returns nil: reserve again then. Any other answer returns over. The gate's OnHard is best HardReject: with HardFail
// and HardBlock the handler is stopped before it can ask.
//
//	text, err := draft(ctx, t, "draft") // a step that reserves
//	if over, ok := errors.AsType[*handler.OverBudgetError](err); ok {
//		if err := t.AskMore(ctx, "more tokens", over, suspend.Question{}); err != nil {
//			return "", err
//		}
//		text, err = draft(ctx, t, "draft again") // a run uses each name once
//	}
//
// An empty title of the question says what is asked for: "Gate acme: 50000 more tokens for 3-0197f3a0-…?". Choices
// other than approve and reject may be given; only approve raises. Who waits in line for the gate is served first. That
// it was raised is recorded as the step "raised: " and the name.
//
// Errors: over; those of Ask, among them the wait itself, which the handler returns; ErrNotFound when the gate was
// removed; ErrTransport. Call it outside of steps.
func (t *Task) AskMore(ctx context.Context, name string, over *OverBudgetError, q suspend.Question,
	opts ...suspend.Option) (err error) {
	defer func() { err = denied.Last(err) }()
	if over == nil || len(over.Breaches) == 0 {
		return fmt.Errorf("ask for more: %w: there is no refusal", flowfabric.ErrInvalidInput)
	}
	missing := map[string]int64{}
	var words []string
	for _, b := range over.Breaches {
		missing[b.Dimension] = over.Amounts[b.Dimension]
		words = append(words, fmt.Sprintf("%d more %s", over.Amounts[b.Dimension], b.Dimension))
	}
	q.Title = cmp.Or(q.Title, fmt.Sprintf("Gate %s: %s for %s?", over.Gate, strings.Join(words, " and "), t.ID()))
	answer, err := t.Ask(ctx, name, q, opts...)
	switch {
	case err != nil:
		return err
	case answer.Choice != approve:
		return over
	case t.cfg.Ledger == nil:
		return nil
	}
	request := uuid.NewSHA1(ids.UUID(t.ID()), []byte("more "+name))
	_, err = Step(ctx, t, "raised: "+name, func(ctx context.Context) (bool, error) {
		return true, ledger.Raise(ctx, t.cfg.Ledger, over.Gate, request, missing)
	})
	if err != nil {
		return fmt.Errorf("raise the limits of gate %s: %w", over.Gate, err)
	}
	return nil
}

// approve is the name of the answer that raises.
const approve = "approve"
