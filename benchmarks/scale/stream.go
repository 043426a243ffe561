package scale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

const (
	streamRate  = 1_000 // submits a second
	streamTime  = 4     // seconds
	streamUntil = time.Minute
)

// stream is a client that submits at random moments, a worker with handlers that do nothing, and a server that is far
// from busy: most calls have one item, and what they cost decides how busy it is.
func (c *checking) stream(ctx context.Context) error {
	name := fmt.Sprintf("%d submits/s", streamRate)
	w, f, err := c.measureStream(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l := c.load()
	l.Rate, l.Jobs, l.Uncounted = streamRate, streamRate*streamTime, streamRate*streamTime/10
	r, err := c.simulated(name, l, w)
	if err != nil {
		return err
	}
	c.add(name, "start p50 ms", r.P50, f[measure.P50])
	c.add(name, "calls", r.Calls, f[measure.CallsItem])
	c.add(name, "server µs", serverMicros(r, w), f[measure.ServerItem])
	return nil
}

func (c *checking) measureStream(ctx context.Context) (*watched, measure.Figures, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, streamUntil, errors.New("not all executions have begun"))
	defer cancel()
	w := c.watching(false)
	s, err := w.Serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer s.Stop()
	if err := s.Reset(ctx); err != nil {
		return nil, nil, err
	}
	store, err := w.Open(ctx, s, driver.Settings{Partitions: channels})
	if err != nil {
		return nil, nil, err
	}
	defer store.Close()

	const all, warm = streamRate * streamTime, streamRate * streamTime / 10
	submitted, took := make([]time.Time, all), make([]time.Duration, all)
	var begun atomic.Int64
	warmed, finished := make(chan struct{}), make(chan struct{})
	stop, err := store.Work(ctx, driver.Worker{Concurrency: 64, Handle: func(ctx context.Context, payload []byte) {
		i := binary.BigEndian.Uint64(payload)
		took[i] = driver.Began(ctx).Sub(submitted[i])
		switch begun.Add(1) {
		case warm:
			close(warmed)
		case all:
			close(finished)
		}
	}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = stop() }()

	var submits conc.WaitGroup
	var failed atomic.Pointer[error]
	submits.Go(func() {
		random, due := randomOf(1), time.Now()
		for i := range all {
			due = due.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / streamRate))
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return
			}
			payload := make([]byte, 256)
			binary.BigEndian.PutUint64(payload, uint64(i))
			submitted[i] = time.Now()
			submits.Go(func() {
				if err := store.Submit(ctx, payload); err != nil {
					failed.Store(&err)
					cancel()
				}
			})
		}
	})
	defer submits.Wait()
	wait := func(signal <-chan struct{}) error {
		select {
		case <-signal:
			return nil
		case <-ctx.Done():
			if err := failed.Load(); err != nil {
				return *err
			}
			return context.Cause(ctx)
		}
	}
	if err := wait(warmed); err != nil {
		return nil, nil, err
	}
	m, err := measure.StartHot(ctx, s, "")
	if err != nil {
		return nil, nil, err
	}
	if err := wait(finished); err != nil {
		return nil, nil, err
	}
	f, _, err := m.Stop(ctx, all-warm)
	if err != nil {
		return nil, nil, err
	}
	f.Latencies(took[warm:])
	return w, f, nil
}
