package scenario

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// warmShare is the part of the jobs that goes before the measured ones: 1/warmShare of them.
const warmShare = 10

// submit measures producers alone. The queue is emptied between the variants.
func submit(ctx context.Context, b *Bench) error {
	const bulk = 100
	for _, v := range []struct {
		name              string
		items, goroutines int
		perCall           int
	}{
		{"one goroutine", max(b.Items/4, 1), 1, 1},
		{fmt.Sprintf("%d goroutines", b.Concurrency), b.Items, b.Concurrency, 1},
		{fmt.Sprintf("batches of %d", bulk), b.Items, 1, bulk},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		all := b.payloads(v.items)
		if _, err := b.send(ctx, all[:v.items/warmShare], v.goroutines, v.perCall); err != nil {
			return err
		}
		m, err := b.start(ctx, v.name)
		if err != nil {
			return err
		}
		took, err := b.send(ctx, all, v.goroutines, v.perCall)
		if err != nil {
			return err
		}
		f, commands, err := m.Stop(ctx, len(all))
		if err != nil {
			return err
		}
		f.Latencies(took)
		b.done(v.name, f, commands)
	}
	return nil
}

// send submits all payloads, each goroutine its share, and returns how long the calls took.
func (b *Bench) send(ctx context.Context, all [][]byte, goroutines, perCall int) ([]time.Duration, error) {
	if len(all) == 0 {
		return nil, nil
	}
	took := make([][]time.Duration, 0, goroutines)
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(all) + goroutines - 1) / goroutines
	for part := range slices.Chunk(all, share) {
		own := make([]time.Duration, 0, len(part)/perCall+1)
		took = append(took, nil)
		at := &took[len(took)-1]
		p.Go(func(ctx context.Context) error {
			defer func() { *at = own }()
			for call := range slices.Chunk(part, perCall) {
				began := time.Now()
				var err error
				if perCall == 1 {
					err = b.Store.Submit(ctx, call[0])
				} else {
					err = b.Store.SubmitMany(ctx, call)
				}
				if err != nil {
					return fmt.Errorf("submit: %w", err)
				}
				own = append(own, time.Since(began))
			}
			return nil
		})
	}
	err := p.Wait()
	return slices.Concat(took...), err
}

// counter is a handler that does nothing, or takes its time, and that knows when the warm-up and when everything was handled.
type counter struct {
	work       time.Duration // that a job takes
	warm, all  int64
	handled    atomic.Int64
	warmed     chan struct{} // closed by the warm-th job
	finished   chan struct{} // closed by the last
	finishedAt time.Time
	wave       int64
	waves      chan struct{} // one for every wave jobs
}

func newCounter(all int) *counter {
	wave := max(all/waveShare, 1)
	return &counter{warm: int64(max(all/warmShare, 1)), all: int64(all), warmed: make(chan struct{}), finished: make(chan struct{}),
		wave: int64(wave), waves: make(chan struct{}, all/wave)}
}

func (c *counter) handle(context.Context, []byte) {
	if c.work > 0 {
		time.Sleep(c.work)
	}
	n := c.handled.Add(1)
	if n == c.warm {
		close(c.warmed)
	}
	if n%c.wave == 0 {
		c.waves <- struct{}{}
	}
	if n == c.all {
		c.finishedAt = time.Now()
		close(c.finished)
	}
}

// await waits for a channel of the counter.
func (c *counter) await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("after %d of %d jobs: %w", c.handled.Load(), c.all, context.Cause(ctx))
	}
}

// measureWork measures from the end of the warm-up to the last job. The last ones, at most a worker's concurrency,
// are handled but perhaps not yet settled then, as are those in flight at the beginning.
func (b *Bench) measureWork(ctx context.Context, c *counter) (measure.Figures, map[string]driver.Command, error) {
	if err := c.await(ctx, c.warmed); err != nil {
		return nil, nil, err
	}
	m, err := b.startHot(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	if settler, ok := b.Store.(driver.Settler); ok {
		return b.measureSettling(ctx, c, m, settler)
	}
	before := c.handled.Load()
	if err := c.await(ctx, c.finished); err != nil {
		return nil, nil, err
	}
	return m.StopAt(ctx, int(c.all-before), c.finishedAt)
}

// measureSettling is the rest of measureWork for systems in which many more jobs can be handled and not settled: it ends
// when no more of them are than in other systems, and tells how long after the last handler that was.
func (b *Bench) measureSettling(ctx context.Context, c *counter, m *measure.Meter, s driver.Settler) (measure.Figures, map[string]driver.Command, error) {
	before, err := s.Done(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := c.await(ctx, c.finished); err != nil {
		return nil, nil, err
	}
	left, err := s.Settle(ctx, b.Concurrency)
	if err != nil {
		return nil, nil, err
	}
	ended := time.Now()
	f, commands, err := m.StopAt(ctx, int(c.all)-before-left, ended)
	if err == nil {
		f[measure.Backlog] = float64(ended.Sub(c.finishedAt)) / float64(time.Millisecond)
	}
	return f, commands, err
}

// drain fills the queue, then starts one worker.
func drain(ctx context.Context, b *Bench) error {
	if err := b.fill(ctx, b.Items); err != nil {
		return err
	}
	return b.work(ctx, func(*counter) error { return nil })
}

// waveShare is the part of the jobs that lifecycle submits at once: 1/waveShare of them.
const waveShare = 20

// lifecycle starts a worker, then many goroutines that submit. They submit in waves, and no more than two of them wait at any
// time: of systems that take jobs faster than they work, only the work would be measured otherwise, because all jobs were
// submitted by the end of the warm-up.
func lifecycle(ctx context.Context, b *Bench) error {
	all := b.payloads(b.Items)
	return b.work(ctx, func(c *counter) error {
		for i := 0; len(all) > 0; i++ {
			if i >= 2 {
				if err := c.await(ctx, c.waves); err != nil {
					return err
				}
			}
			wave := all[:min(int(c.wave), len(all))]
			if _, err := b.send(ctx, wave, b.Concurrency, 1); err != nil {
				return err
			}
			all = all[len(wave):]
		}
		return nil
	})
}

// work measures one worker that handles all items while feed runs, and files the figures.
func (b *Bench) work(ctx context.Context, feed func(c *counter) error) error {
	c := newCounter(b.Items)
	c.work = b.Work
	var f measure.Figures
	var commands map[string]driver.Command
	err := b.working(ctx, driver.Worker{Handle: c.handle, Concurrency: b.Concurrency}, func() error {
		p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
		p.Go(func(context.Context) error { return feed(c) })
		p.Go(func(ctx context.Context) (err error) {
			f, commands, err = b.measureWork(ctx, c)
			return err
		})
		return p.Wait()
	})
	if err != nil {
		return err
	}
	if handled := c.handled.Load(); handled != c.all {
		return fmt.Errorf("%d jobs were handled, want %d", handled, c.all)
	}
	if err := b.retained(ctx, f); err != nil {
		return err
	}
	b.done("", f, commands)
	return nil
}

// latency submits one job, waits until its handler has begun, lets the worker come to rest, and does it again.
func latency(ctx context.Context, b *Bench) error {
	began := make(chan time.Time, 1)
	worker := driver.Worker{Concurrency: b.Concurrency, Handle: func(context.Context, []byte) { began <- time.Now() }}
	return b.working(ctx, worker, func() error {
		all := b.payloads(b.warm() + b.Samples)
		return b.oneByOne(ctx, nil, began, func(i int) error { return b.Store.Submit(ctx, all[i]) })
	})
}

// warm is how many samples are not measured.
func (b *Bench) warm() int { return max(b.Samples/warmShare, 1) }

// oneByOne makes a job run, waits until it has begun, lets the worker come to rest, and does it again; the first ones warm
// up. extra are figures besides.
func (b *Bench) oneByOne(ctx context.Context, extra measure.Figures, began <-chan time.Time, start func(i int) error) error {
	return b.oneByOneAs(ctx, "", extra, began, start)
}

// oneByOneAs is oneByOne of a variant.
func (b *Bench) oneByOneAs(ctx context.Context, variant string, extra measure.Figures, began <-chan time.Time, start func(i int) error) error {
	var m *measure.Meter
	took := make([]time.Duration, 0, b.Samples)
	warm, poll := b.warm(), b.poll()
	for i, first := 0, time.Now(); len(took) < b.Samples; i++ {
		if poll > 0 && len(took) > 0 && time.Since(first) > pollPatience*b.Window {
			break
		}
		if poll > 0 && i < warm && time.Since(first) > pollPatience*b.Window/warmShare {
			warm = i
		}
		if i == warm {
			var err error
			if m, err = b.start(ctx, variant); err != nil {
				return err
			}
		}
		if err := pause(ctx, rest(poll)); err != nil {
			return err
		}
		started := time.Now()
		if err := start(i); err != nil {
			return err
		}
		select {
		case at := <-began:
			if i >= warm {
				took = append(took, at.Sub(started))
			}
		case <-ctx.Done():
			return fmt.Errorf("job %d has not begun: %w", i, context.Cause(ctx))
		}
	}
	f, commands, err := m.Stop(ctx, len(took))
	if err != nil {
		return err
	}
	delete(f, measure.Throughput) // set by the pauses
	maps.Copy(f, extra)
	f.Latencies(took)
	b.done(variant, f, commands)
	return nil
}

// pollPatience is how many windows a round of samples may take when workers poll, which can mean a second for each. There are
// then fewer samples.
const pollPatience = 5

// poll is the mean time between two looks of an idle worker, 0 if workers are woken.
func (b *Bench) poll() time.Duration {
	if poller, ok := b.Store.(driver.Poller); ok {
		return poller.Poll()
	}
	return 0
}

// rest is the time between two samples. A worker that polls has just looked when a handler begins, so that a job always 3 ms later
// would always wait for a whole interval; hence one to two intervals, at random.
func rest(poll time.Duration) time.Duration {
	const least = 3 * time.Millisecond
	if poll == 0 {
		return least
	}
	return max(least, poll+rand.N(poll))
}
