package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const (
	partitions = 8      // of a new store, of -server too: the embedded server's default
	submitters = 64     // goroutines that submit at once
	chunk      = 10_000 // inputs of one SubmitMany; their handles are garbage before the next one
	already    = 800    // executions that wait before memory is counted, so that partitions themselves do not count
)

var input = strings.Repeat("x", 100)

// figures are the lines of the table. Those that were not measured are left out.
var figures = []struct {
	key, title string
	digits     int
}{
	{"lone", "lone submit, empty store: p50 ms", 3},
	{"beside", "lone submit, beside the backlog: p50 ms", 3},
	{"together", "submits of 64 goroutines: jobs/s", 0},
	{"bulk", "SubmitMany: jobs/s", 0},
	{measure.Throughput, "drain: jobs/s", 0},
	{measure.Items, "drain: jobs", 0},
	{measure.ClientItem, "drain: processor µs of this process per job", 1},
	{measure.ServerItem, "drain: processor µs of the server per job", 1},
	{measure.AllocItem, "drain: allocations of this process per job", 0},
	{"live", "live Go heap: bytes per waiting execution", 0},
	{"in_use", "Go heap in use: bytes per waiting execution", 0},
	{"start", "start with that folder: s", 2},
	{"used_memory", "used_memory of the server: bytes per waiting execution", 0},
}

// inProcess stands for a store in this process: all that it costs are costs of this process.
type inProcess struct{ driver.Server }

func (inProcess) PID() int                                      { return 0 }
func (inProcess) Reset(context.Context) error                   { return nil }
func (inProcess) Sample(context.Context) (driver.Sample, error) { return driver.Sample{}, nil }

// round is one run.
type round struct {
	options
	store  driver.Server
	job    *handler.Definition[string, string]
	client *client.Client // stays open: an embedded store in memory ends with its last user
}

// measure makes one run. Executions of an earlier run that are still in the store are of another kind.
func (o options) measure(ctx context.Context, store driver.Server, number string) (measure.Figures, error) {
	if err := store.Reset(ctx); err != nil {
		return nil, err
	}
	o.url = strings.ReplaceAll(o.url, "{run}", number)
	c, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &round{options: o, store: store, job: handler.Define[string, string]("run-" + number), client: c}
	if o.memory {
		return r.hold(ctx)
	}
	alone, many := min(o.waiting/20, 500), min(o.waiting/10, 5000)
	empty, err1 := r.submit(ctx, alone, 1)
	together, err2 := r.submit(ctx, many, submitters)
	bulk, err3 := r.fill(ctx, o.waiting-2*alone-many)
	beside, err4 := r.submit(ctx, alone, 1)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	f, err := r.drain(ctx, number)
	if err != nil {
		return nil, err
	}
	f["lone"], f["beside"] = empty[measure.P50], beside[measure.P50]
	f["together"], f["bulk"] = together[measure.Throughput], bulk
	return f, nil
}

func (o options) connect(ctx context.Context) (*client.Client, error) {
	return client.Connect(ctx, client.Config{URL: o.url, Partitions: partitions, Logger: slog.Default()})
}

// submit makes n executions one by one from several goroutines.
func (r *round) submit(ctx context.Context, n, goroutines int) (measure.Figures, error) {
	took := make([]time.Duration, n)
	p := pool.New().WithMaxGoroutines(goroutines).WithContext(ctx).WithCancelOnError().WithFirstError()
	began := time.Now()
	for i := range took {
		p.Go(func(ctx context.Context) error {
			began := time.Now()
			_, err := client.Submit(ctx, r.client, r.job, input)
			took[i] = time.Since(began)
			return err
		})
	}
	err := p.Wait()
	f := measure.Figures{measure.Throughput: float64(n) / time.Since(began).Seconds()}
	f.Latencies(took)
	return f, err
}

// fill makes n executions in large calls, and returns the rate.
func (r *round) fill(ctx context.Context, n int) (float64, error) {
	began := time.Now()
	for part := range slices.Chunk(slices.Repeat([]string{input}, n), chunk) {
		if _, err := client.SubmitMany(ctx, r.client, r.job, part); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// drain measures a worker from its start to the last handler, or for as long as it may take.
func (r *round) drain(ctx context.Context, number string) (measure.Figures, error) {
	var handled atomic.Int64
	working, stop := context.WithTimeout(ctx, r.most)
	defer stop()
	w, err := runtime.New(runtime.Config{URL: r.url, Logger: slog.Default()},
		handler.Bind(r.job, func(context.Context, *handler.Task, string) (string, error) {
			if handled.Add(1) == int64(r.waiting) {
				stop()
			}
			return "result", nil
		}))
	if err != nil {
		return nil, err
	}
	profile := ""
	if r.profiles != "" {
		profile = filepath.Join(r.profiles, "drain-"+number)
	}
	m, err := measure.Start(ctx, r.store, profile)
	if err != nil {
		return nil, err
	}
	var running conc.WaitGroup
	var ended error
	running.Go(func() {
		defer stop()
		ended = w.Run(working)
	})
	<-working.Done()
	f, _, err := m.Stop(ctx, int(handled.Load()))
	running.Wait()
	if errors.Is(working.Err(), context.DeadlineExceeded) {
		ended = nil // it may have been stopped before it took work
	}
	return f, errors.Join(err, ended, ctx.Err())
}

// hold counts the memory of executions that wait, and the time to start again with the folder that has them.
func (r *round) hold(ctx context.Context) (measure.Figures, error) {
	_, err1 := r.fill(ctx, already)
	before, err2 := r.used(ctx)
	_, err3 := r.fill(ctx, r.waiting)
	f, err4 := r.used(ctx)
	for key := range f {
		f[key] = (f[key] - before[key]) / float64(r.waiting)
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil || r.program != "" || r.url == embedded.URL {
		return f, err
	}
	r.client.Close()
	began := time.Now()
	c, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	f["start"] = time.Since(began).Seconds()
	c.Close()
	return f, nil
}

// used is what the store occupies: in the heap of this process after a collection, or as the server says.
func (r *round) used(ctx context.Context) (measure.Figures, error) {
	if r.program != "" {
		used, err := r.store.Memory(ctx)
		return measure.Figures{"used_memory": used}, err
	}
	goruntime.GC()
	goruntime.GC() // the second one frees what pools have kept
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return measure.Figures{"live": float64(m.HeapAlloc), "in_use": float64(m.HeapInuse)}, nil
}
