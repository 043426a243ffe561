package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// holder is a handler that does not return before it is let go.
type holder struct {
	all    int64
	began  atomic.Int64
	full   chan struct{} // closed when all have begun
	letGo  chan struct{}
	ending sync.Once
}

func newHolder(all int) *holder {
	return &holder{all: int64(all), full: make(chan struct{}), letGo: make(chan struct{})}
}

func (h *holder) handle(ctx context.Context, _ []byte) {
	if h.began.Add(1) == h.all {
		close(h.full)
	}
	select {
	case <-h.letGo:
	case <-ctx.Done():
	}
}

func (h *holder) awaitFull(ctx context.Context) error {
	select {
	case <-h.full:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d jobs have begun: %w", h.began.Load(), h.all, context.Cause(ctx))
	}
}

func (h *holder) release() { h.ending.Do(func() { close(h.letGo) }) }

// window lets things come to rest and then observes the server for a while.
func (b *Bench) window(ctx context.Context, variant string) (measure.Figures, map[string]driver.Command, error) {
	if err := pause(ctx, b.Settle); err != nil {
		return nil, nil, err
	}
	m, err := b.start(ctx, variant)
	if err != nil {
		return nil, nil, err
	}
	if err := pause(ctx, b.Window); err != nil {
		return nil, nil, err
	}
	return m.Stop(ctx, 0)
}

// idle starts many workers, each with connections of its own, and gives them nothing to do.
func idle(ctx context.Context, b *Bench) error {
	f, commands, err := b.idling(ctx, "")
	if err == nil {
		b.done("", f, commands)
	}
	return err
}

// idling measures idle workers.
func (b *Bench) idling(ctx context.Context,
	variant string) (f measure.Figures, commands map[string]driver.Command, err error) {
	nobody := driver.Worker{Concurrency: b.Concurrency, Counts: true, Handle: func(context.Context, []byte) {}}
	stops := pool.New().WithErrors()
	defer func() { err = errors.Join(err, stops.Wait()) }()
	over := make(chan struct{})
	defer close(over)
	for range b.Workers {
		stop, err := b.Store.Work(ctx, nobody)
		if err != nil {
			return nil, nil, err
		}
		stops.Go(func() error {
			<-over
			return stop()
		})
	}
	if f, commands, err = b.window(ctx, variant); err != nil {
		return nil, nil, err
	}
	f[measure.Workers] = float64(b.Workers)
	return f, commands, nil
}

// memory compares what the server occupies before and after jobs are submitted, claimed and completed, and then
// before and after others wait for a signal.
func memory(ctx context.Context, b *Bench) error {
	h := newHolder(b.Held)
	f := measure.Figures{measure.Items: float64(b.Held)}
	var empty float64
	perJob := func(figure string) error {
		used, err := b.Server.Memory(ctx)
		f[figure] = (used - empty) / float64(b.Held)
		if f[figure] >= float64(b.Payload) { // else the payload is not there any more
			f[figure] -= float64(b.Payload)
		}
		return err
	}
	// One by one they reach every partition: routes and the like do not grow with the jobs.
	if _, err := b.send(ctx, b.payloads(b.Partitions), 1, 1); err != nil {
		return err
	}
	first := newCounter(b.Partitions)
	err := b.working(ctx, driver.Worker{Handle: first.handle, Concurrency: b.Concurrency, Counts: true}, func() error {
		return first.await(ctx, first.finished)
	})
	if err != nil {
		return err
	}
	if empty, err = b.Server.Memory(ctx); err != nil {
		return err
	}
	if err := b.fill(ctx, b.Held); err != nil {
		return err
	}
	if err := perJob(measure.Waiting); err != nil {
		return err
	}
	err = b.working(ctx, driver.Worker{Handle: h.handle, Concurrency: b.Held}, func() error {
		defer h.release()
		if err := h.awaitFull(ctx); err != nil {
			return err
		}
		return perJob(measure.Active)
	})
	if err != nil {
		return err
	}
	if err := perJob(measure.Done); err != nil {
		return err
	}
	if err := b.retained(ctx, f); err != nil {
		return err
	}
	if suspender, ok := b.Store.(driver.Suspender); ok {
		_, stop, perJob, err := b.park(ctx, suspender, b.Held, func(int) {})
		if err != nil {
			return err
		}
		if err := stop(); err != nil {
			return err
		}
		f[measure.Parked] = perJob
	}
	b.done("", f, nil)
	return nil
}
