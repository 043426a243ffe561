package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
)

// shareOf is the share of a child, in the gates of its parent.
func (t *Task) shareOf(child engine.FlowMember) *ledger.Entry {
	return &ledger.Entry{Fence: flowfabric.Fence{Execution: child.ID}, Number: 1, Of: t.ID(),
		Own: t.spending.gates, Amounts: child.Share, Repeats: true}
}

// shared has a child with a share ask the gates of its parent.
func (t *Task) shared(child *engine.FlowMember) {
	if len(child.Share) == 0 {
		return
	}
	child.Names = slices.Clone(child.Names)
	for _, name := range t.named() {
		if !slices.Contains(child.Names, name) {
			child.Names = append(child.Names, name)
		}
	}
}

// setAside has the gates of the execution set aside what the children of a set may use, before they are made: of all or
// of none. What an earlier run set aside stays, and children that have begun since have their shares. A refusal is
// an [*OverBudgetError].
func (t *Task) setAside(ctx context.Context, p flowplan.Children) error {
	q, err := p.Request()
	if err != nil {
		return Permanent(err)
	}
	return t.setAsideFor(ctx, q)
}

func (t *Task) setAsideFor(ctx context.Context, q engine.ChildWait) error {
	if !slices.ContainsFunc(q.Children, hasShare) || t.spending == nil || t.cfg.Ledger == nil {
		return nil
	}
	s := t.spending
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	var made []*ledger.Entry
	for _, child := range q.Children {
		if !hasShare(child) {
			continue
		}
		x := t.shareOf(child)
		refused, err := ledger.Reserve(ctx, t.cfg.Ledger, x)
		switch {
		case refused != nil:
			for _, m := range made {
				_ = ledger.Release(ctx, t.cfg.Ledger, m) // else the check of old shares does
			}
			return fmt.Errorf("the share of child %s: %w", child.Node, &OverBudgetError{
				Gate: refused.Gate, Breaches: hard(refused.Breaches), Action: admission.HardReject,
				Amounts: refused.Amounts})
		case err != nil && !errors.Is(err, denied.StaleLease) && !errors.Is(err, denied.Idempotency):
			return fmt.Errorf("the share of child %s: %w", child.Node, denied.Last(err))
		case err == nil:
			made = append(made, x)
		}
	}
	return nil
}

func hasShare(child engine.FlowMember) bool { return len(child.Share) > 0 }

// giveShares gives back what is left of the shares of a set, in the run that its end has resumed. That is enough:
// the check of old shares finds out that these children have ended.
func (t *Task) giveShares(ctx context.Context, p flowplan.Children) {
	r, resumed := t.Resumed()
	if !resumed || r.Name != p.Wait || t.spending == nil || t.cfg.Ledger == nil {
		return
	}
	q, err := p.Request()
	if err != nil || !slices.ContainsFunc(q.Children, hasShare) {
		return
	}
	s := t.spending
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	for _, child := range q.Children {
		o, over, _ := t.kids.outcome(p.Wait, child.ID, child.Node)
		if hasShare(child) && over && (o.Outcome != "" || o.Gone) {
			_, _ = ledger.ReleaseAll(ctx, t.cfg.Ledger, t.shareOf(child))
		}
	}
}
