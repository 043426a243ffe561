package scenario

import (
	"bytes"
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
	const bulk = 1000
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
		f, commands, err := b.measureSubmit(ctx, v.name, v.items, v.goroutines, v.perCall)
		if err != nil {
			return err
		}
		b.done(v.name, f, commands)
	}
	return nil
}

// measureSubmit measures producers that submit so many jobs, after a tenth as many to warm up.
func (b *Bench) measureSubmit(ctx context.Context, variant string, items, goroutines,
	perCall int) (measure.Figures, map[string]driver.Command, error) {
	all := b.payloads(items)
	if _, err := b.send(ctx, all[:items/warmShare], goroutines, perCall); err != nil {
		return nil, nil, err
	}
	send, err := b.prepare(ctx, all, goroutines, perCall)
	if err != nil {
		return nil, nil, err
	}
	m, err := b.start(ctx, variant)
	if err != nil {
		return nil, nil, err
	}
	took, err := send(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, commands, err := m.Stop(ctx, len(all))
	if err != nil {
		return nil, nil, err
	}
	f.Latencies(took)
	return f, commands, nil
}

// send submits all payloads, each goroutine its share, and returns how long the calls took.
func (b *Bench) send(ctx context.Context, all [][]byte, goroutines, perCall int) ([]time.Duration, error) {
	send, err := b.prepare(ctx, all, goroutines, perCall)
	if err != nil {
		return nil, err
	}
	return send(ctx)
}

// prepare does what is no part of sending: a store that submits from another process is given the payloads there.
func (b *Bench) prepare(ctx context.Context, all [][]byte, goroutines,
	perCall int) (send func(context.Context) ([]time.Duration, error), err error) {
	if producer, ok := b.Store.(driver.Producer); ok && len(all) > 0 {
		return producer.Prepare(ctx, all, goroutines, perCall)
	}
	return func(ctx context.Context) ([]time.Duration, error) { return b.sendHere(ctx, all, goroutines, perCall) }, nil
}

// sendHere is send in this process.
func (b *Bench) sendHere(ctx context.Context, all [][]byte, goroutines, perCall int) ([]time.Duration, error) {
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

// counter is a handler that does nothing, or takes its time, and that knows when the warm-up and when everything was
// handled.
type counter struct {
	work       time.Duration // that a job takes
	running    atOnce        // of handlers that take time in this process
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
	return &counter{warm: int64(max(all/warmShare, 1)), all: int64(all), warmed: make(chan struct{}),
		finished: make(chan struct{}), wave: int64(wave), waves: make(chan struct{}, all/wave)}
}

func (c *counter) handle(context.Context, []byte) {
	if c.work > 0 {
		c.running.begin()
		time.Sleep(c.work)
		c.running.end()
	}
	c.add(1)
}

// add counts n jobs.
func (c *counter) add(n int) {
	now := c.handled.Add(int64(n))
	before := now - int64(n)
	if before < c.warm && c.warm <= now {
		close(c.warmed)
	}
	for range min(now, c.all)/c.wave - min(before, c.all)/c.wave {
		c.waves <- struct{}{}
	}
	if before < c.all && c.all <= now {
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

// measureSettling is the rest of measureWork for systems in which many more jobs can be handled and not settled: it
// ends when no more than a worker's concurrency are, as in other systems, and tells how long after the last handler.
func (b *Bench) measureSettling(ctx context.Context, c *counter, m *measure.Meter,
	s driver.Settler) (measure.Figures, map[string]driver.Command, error) {
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
	return b.bothKinds(ctx, func(variant string) error {
		if err := b.fill(ctx, b.Items); err != nil {
			return err
		}
		return b.work(ctx, variant, b.Items, func(*counter) error { return nil })
	})
}

// bothKinds measures typed jobs, and then, as a variant, jobs that carry bytes and have no results.
func (b *Bench) bothKinds(ctx context.Context, measure func(variant string) error) error {
	if err := measure(""); err != nil || !b.typed() {
		return err
	}
	b.bytes, b.part = true, "bytes"
	defer func() { b.bytes, b.part = false, "" }()
	if err := b.open(ctx); err != nil {
		return err
	}
	return measure("bytes")
}

// waveShare is the part of the jobs that lifecycle submits at once: 1/waveShare of them.
const waveShare = 20

// lifecycle starts a worker, then many goroutines that submit. They submit in waves, and no more than two of them
// wait at any time: of systems that take jobs faster than they work, only the work would be measured otherwise,
// because all jobs were submitted by the end of the warm-up.
func lifecycle(ctx context.Context, b *Bench) error {
	return b.bothKinds(ctx, func(variant string) error { return b.lifecycle(ctx, variant) })
}

func (b *Bench) lifecycle(ctx context.Context, variant string) error {
	items := b.Items
	all := b.payloads(items)
	sends := make([]func(context.Context) ([]time.Duration, error), 0, waveShare+1)
	for wave := range slices.Chunk(all, max(items/waveShare, 1)) {
		send, err := b.prepare(ctx, wave, b.Concurrency, 1)
		if err != nil {
			return err
		}
		sends = append(sends, send)
	}
	return b.work(ctx, variant, items, func(c *counter) error {
		for i, send := range sends {
			if i >= 2 {
				if err := c.await(ctx, c.waves); err != nil {
					return err
				}
			}
			if _, err := send(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// work measures one worker that handles so many jobs while feed runs, and files the figures.
func (b *Bench) work(ctx context.Context, variant string, items int, feed func(c *counter) error) error {
	f, commands, err := b.worked(ctx, items, feed)
	if err == nil {
		b.done(variant, f, commands)
	}
	return err
}

// worked is work that files nothing.
func (b *Bench) worked(ctx context.Context, items int,
	feed func(c *counter) error) (measure.Figures, map[string]driver.Command, error) {
	c := newCounter(items)
	c.work = b.Work
	var f measure.Figures
	var commands map[string]driver.Command
	_, elsewhere := b.Store.(driver.Remote) // its handlers take their time in another process
	if elsewhere {
		c.work = 0
	}
	err := b.working(ctx, driver.Worker{Handle: c.handle, Concurrency: b.Concurrency, Counts: true, Work: b.Work},
		func() error {
			p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
			p.Go(func(context.Context) error { return feed(c) })
			p.Go(func(ctx context.Context) (err error) {
				f, commands, err = b.measureWork(ctx, c)
				return err
			})
			return p.Wait()
		})
	if err != nil {
		return nil, nil, err
	}
	if handled := c.handled.Load(); handled != c.all {
		return nil, nil, fmt.Errorf("%d jobs were handled, want %d", handled, c.all)
	}
	if c.work > 0 {
		most := c.running.most.Load()
		if most > int64(b.Concurrency) {
			return nil, nil, fmt.Errorf("%d handlers ran at once, want at most %d", most, b.Concurrency)
		}
		f[measure.AtOnce] = float64(most)
	}
	return f, commands, b.retained(ctx, f)
}

// latency submits one job, waits until its handler has begun, lets the worker come to rest, and does it again. On the
// way it checks that handlers get the payload.
func latency(ctx context.Context, b *Bench) error {
	all := b.payloads(b.warm() + b.Samples)
	began := make(chan time.Time, 1)
	var submitted atomic.Pointer[[]byte]
	var wrong atomic.Int64
	worker := driver.Worker{Concurrency: b.Concurrency, Handle: func(ctx context.Context, payload []byte) {
		at := driver.Began(ctx)
		if !bytes.Equal(payload, *submitted.Load()) {
			wrong.Add(1)
		}
		began <- at
	}}
	err := b.working(ctx, worker, func() error {
		return b.oneByOneSince(ctx, "", nil, began, func(i int) (time.Time, error) {
			submitted.Store(&all[i])
			if producer, ok := b.Store.(driver.Producer); ok {
				return producer.SubmitAt(ctx, all[i])
			}
			since := time.Now()
			return since, b.Store.Submit(ctx, all[i])
		})
	})
	if n := wrong.Load(); err == nil && n > 0 {
		return fmt.Errorf("%d of %d handlers got another payload than was submitted", n, len(all))
	}
	return err
}

// warm is how many samples are not measured.
func (b *Bench) warm() int { return max(b.Samples/warmShare, 1) }

// oneByOne makes a job run, waits until it has begun, lets the worker come to rest, and does it again; the first ones
// warm up. extra are figures besides.
func (b *Bench) oneByOne(ctx context.Context, extra measure.Figures, began <-chan time.Time,
	start func(i int) error) error {
	return b.oneByOneAs(ctx, "", extra, began, start)
}

// oneByOneAs is oneByOne of a variant.
func (b *Bench) oneByOneAs(ctx context.Context, variant string, extra measure.Figures, began <-chan time.Time,
	start func(i int) error) error {
	return b.oneByOneSince(ctx, variant, extra, began, func(i int) (time.Time, error) {
		since := time.Now()
		return since, start(i)
	})
}

// oneByOneSince is oneByOneAs where start tells since when time counts.
func (b *Bench) oneByOneSince(ctx context.Context, variant string, extra measure.Figures, began <-chan time.Time,
	start func(i int) (time.Time, error)) error {
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
		if err := pause(ctx, b.rest(poll)); err != nil {
			return err
		}
		since, err := start(i)
		if err != nil {
			return err
		}
		select {
		case at := <-began:
			if i >= warm {
				took = append(took, at.Sub(since))
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
	empty, err := b.emptyCall(ctx)
	if err != nil {
		return err
	}
	if empty > 0 {
		f[measure.OfCall] = f[measure.P50] / (float64(empty) / float64(time.Millisecond))
	}
	b.done(variant, f, commands)
	return nil
}

// pollPatience is how many windows a round of samples may take when workers poll, which can mean a second for each.
// There are then fewer samples.
const pollPatience = 5

// poll is the mean time between two looks of an idle worker, 0 if workers are woken.
func (b *Bench) poll() time.Duration {
	if poller, ok := b.Store.(driver.Poller); ok {
		return poller.Poll()
	}
	return 0
}

// rest is the time between two samples. A worker that polls has just looked when a handler begins, so that a job
// always 3 ms later would always wait for a whole interval; hence one to two intervals, at random.
func (b *Bench) rest(poll time.Duration) time.Duration {
	if poll == 0 {
		return b.Pause
	}
	return max(b.Pause, poll+rand.N(poll))
}

// emptyCall is the median of a call of a function that does nothing, after the same pauses as samples have; 0 of a
// server without functions. What a processor takes to wake is in both.
func (b *Bench) emptyCall(ctx context.Context) (time.Duration, error) {
	server, ok := b.Server.(driver.Callable)
	if !ok {
		return 0, nil
	}
	call, stop, err := server.Trivial(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	took := make([]float64, max(b.Samples/5, 1))
	for i := range took {
		if err := pause(ctx, b.rest(0)); err != nil {
			return 0, err
		}
		since := time.Now()
		if err := call(ctx); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(since))
	}
	return time.Duration(measure.Median(took)), nil
}
