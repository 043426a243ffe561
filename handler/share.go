package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
)

// shares are what is set aside for children, by their ids.
type shares map[flowfabric.ExecutionID]map[string]int64

func byText(a, b flowfabric.ExecutionID) int { return strings.Compare(a.String(), b.String()) }

// shareOf is the share of a child in the gates of its parent.
func (t *Task) shareOf(id flowfabric.ExecutionID, amounts map[string]int64) *ledger.Entry {
	return &ledger.Entry{Fence: flowfabric.Fence{Execution: id}, Number: 1, Own: t.spending.gates, Amounts: amounts,
		Repeats: true}
}

// setAside has the gates of the execution set the shares of children aside that are to be made: all of them or none.
// What was set aside in an earlier run stays as it is, and who has begun since has its share. A refusal is an
// [*OverBudgetError].
func (t *Task) setAside(ctx context.Context, wait string, all shares) error {
	if len(all) == 0 {
		return nil
	}
	if t.spending == nil || t.cfg.Ledger == nil {
		for _, amounts := range all {
			t.uncounted(ctx, amounts)
		}
		return nil
	}
	s := t.spending
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	var made []*ledger.Entry
	for _, id := range slices.SortedFunc(maps.Keys(all), byText) {
		x := t.shareOf(id, all[id])
		refused, err := ledger.Reserve(ctx, t.cfg.Ledger, x)
		switch {
		case refused != nil:
			for _, m := range made {
				_ = ledger.Release(ctx, t.cfg.Ledger, m) // else whoever asks about it does
			}
			return fmt.Errorf("children %s: share of %s: %w", wait, id, &OverBudgetError{Gate: refused.Gate,
				Breaches: hard(refused.Breaches), Action: admission.HardReject, Amounts: refused.Amounts})
		case err != nil && !errors.Is(err, denied.StaleLease) && !errors.Is(err, denied.Idempotency):
			return fmt.Errorf("children %s: share of %s: %w", wait, id, denied.Last(err))
		case err == nil:
			made = append(made, x)
		}
	}
	return nil
}

// giveShares gives back what is left of the shares of children whose wait is over. It is enough that one run tries:
// whoever asks about shares finds out that these have ended.
func (t *Task) giveShares(ctx context.Context, all shares) {
	if len(all) == 0 || t.spending == nil || t.cfg.Ledger == nil {
		return
	}
	s := t.spending
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	for id, amounts := range all {
		_, _ = ledger.ReleaseAll(ctx, t.cfg.Ledger, t.shareOf(id, amounts))
	}
}
