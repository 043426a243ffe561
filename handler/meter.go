package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// meter counts what a call uses while it runs, such as the tokens of an answer that streams.
type meter struct {
	r    *Reservation
	stop context.CancelCauseFunc

	mu   sync.Mutex
	used map[string]int64
	held map[string]int64 // the reservation, and what was reserved beyond it
	over error            // why the call was stopped
}

// Meter begins to count what a call uses, for a call whose use is known bit by bit, such as the tokens of an answer
// that streams. The call is made with the context that it returns: it ends, with an [*OverBudgetError] as the cause, at
// the first use that gates have no room for. So a stream stops at the token that would pass a limit, and not after the
// answer.
//
//	ctx, count := r.Meter(ctx)
//	for delta, err := range llm.Stream(ctx, in.Topic) {
//		if err == nil {
//			err = count(ctx, map[string]int64{"tokens": delta.Tokens})
//		}
//		if err != nil {
//			return "", errors.Join(err, r.Settle(ctx, nil))
//		}
//	}
//	err = r.Settle(ctx, nil) // with what the meter counted
//
// count is told what is used now, 0..2^53-1 by dimension, and is safe for concurrent use. What the reservation has room
// for is counted without a call to the server. Beyond it count reserves more, as much again as the reservation had, or
// if there is no room for that, only what it was told. If gates have no room for that either, the context of the call
// ends, and count returns the [*OverBudgetError]; what it was told is counted all the same, since it was used. No gate
// does more about it: the handler decides, whatever the gate's OnHard is. Every later call counts, and returns the same
// error.
//
// Errors of count: ErrOverBudget; ErrInvalidInput for amounts: nothing is counted. ErrNotFound, ErrLeaseLost and
// ErrTransport as [Task.Reserve]; they end the call, too.
func (r *Reservation) Meter(ctx context.Context) (call context.Context,
	count func(ctx context.Context, used map[string]int64) error) {
	call, stop := context.WithCancelCause(ctx)
	m := &meter{r: r, stop: stop, used: map[string]int64{}, held: maps.Clone(r.entry.Amounts)}
	r.meter.Store(m)
	return call, m.add
}

// counted is what was counted so far.
func (m *meter) counted() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.used)
}

// add is what [Reservation.Meter] returns.
func (m *meter) add(ctx context.Context, used map[string]int64) (err error) {
	defer func() { err = denied.Last(err) }()
	if err := validateUsage(admission.Usage{Amounts: used}); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	need := map[string]int64{}
	for dim, n := range used {
		if m.used[dim] = min(maxAmount, m.used[dim]+n); m.used[dim] > m.held[dim] {
			need[dim] = m.used[dim] - m.held[dim]
		}
	}
	if m.over != nil || len(need) == 0 {
		return m.over
	}
	more := maps.Clone(need)
	for dim, n := range need {
		more[dim] = max(n, m.r.entry.Amounts[dim])
	}
	got, err := m.r.more(ctx, more)
	if errors.Is(err, flowfabric.ErrOverBudget) {
		got, err = m.r.more(ctx, need)
	}
	if err != nil {
		m.over = fmt.Errorf("count: %w", err)
		m.stop(m.over)
		return m.over
	}
	for dim, n := range got {
		m.held[dim] += n
	}
	return nil
}
