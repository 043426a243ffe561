package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// most is how late a timer may be once every partition was asked for its tick.
const most = 1200 * time.Millisecond

// unheardTimer is a store that sets a timer while a subscription is being made, so that nobody hears of it.
type unheardTimer struct {
	store
	set    func(ctx context.Context)
	during atomic.Int64 // which subscription, from 1
	lost   context.CancelFunc
	count  atomic.Int64
}

func (u *unheardTimer) Subscribe(ctx context.Context, p uint16, channels []string, ready func(),
	fn func(channel, message string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := u.count.Add(1)
	if n < u.during.Load() { // lost as soon as the ticks are owned and idle
		u.lost = cancel
	}
	if n == u.during.Load() {
		u.set(ctx)
	}
	return u.store.Subscribe(ctx, p, channels, ready, fn)
}

// A delay is set while the worker subscribes, at its start or again, where nothing else is due: what rang its owner
// is lost, and it comes on time all the same.
func TestTimerSetWhileNobodyListens(t *testing.T) {
	for name, during := range map[string]int64{"first": 1, "again": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unheardTimer{}
			u.during.Store(during)
			b := newBench(t, quiet, func(s store) store { u.store = s; return u })
			owned := func() bool {
				d, err := b.engine.DescribePartition(t.Context(), 1)
				if err != nil {
					t.Error(err)
				}
				return d.Owner != ""
			}
			began, ran := time.Now(), testwait.Running(t)
			id, set := mint.ID(1), make(chan struct{})
			u.set = func(ctx context.Context) {
				for began := time.Now(); !owned() && time.Since(began) < time.Second/2; {
					// a loop that does not wait for us has ticked by then
					sleep(ctx, time.Millisecond)
				}
				x := engine.NewExecution{ID: id, Payload: []byte(`""`), Start: flowfabric.Start{Namespace: "default",
					Lane: "default", Kind: "k",
					Delay: flowfabric.Millis(time.Second / 2)}}
				if created, err := b.engine.CreateExecutions(ctx, 1, []engine.NewExecution{x}); err != nil ||
					created[0].Err != nil {
					t.Error(err, created)
				}
				close(set)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for b.runs.Load() == 0 && t.Context().Err() == nil { // the first execution is done: the worker serves
					sleep(t.Context(), time.Millisecond)
				}
				if during > 1 {
					for !owned() && t.Context().Err() == nil {
						sleep(t.Context(), time.Millisecond)
					}
					u.lost()
				}
				<-set
				for b.runs.Load() < 2 && t.Context().Err() == nil {
					sleep(t.Context(), time.Millisecond)
				}
			}()
			b.run(t, done)
			s, err := b.engine.ReadExecution(t.Context(), id)
			must.No(t, err)
			if late := s.ClaimedAt.Sub(s.CreatedAt) - time.Second/2; s.ClaimedAt.IsZero() ||
				late > most+time.Since(began)-ran() {
				t.Errorf("%s, %v late, want at most %v", s.Code, late, most)
			}
		})
	}
}
