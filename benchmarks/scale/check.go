package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/flowfabric"
)

// CheckOptions are the sizes of a check.
type CheckOptions struct {
	Server string // program to start
	// executions of drain and of three primaries, in whole batches of each partition: 6,400 or a multiple; handlers
	// of 10 ms: a third of them
	Items int
	Lone  int // executions one by one; 100 or more
}

// Row is one figure, predicted and measured.
type Row struct {
	Scenario, Figure    string
	Predicted, Measured float64
}

// Ratio is the measured figure / the predicted one.
func (r Row) Ratio() float64 { return r.Measured / r.Predicted }

// Check measures five scenarios, and simulates the same ones with the published costs, fitted to this machine by
// three numbers:
//
//   - the pace, by which all calls take longer: that of creating 100 executions, measured right before
//   - the hop, the way of a message: half of what a lone submit takes beside its function, measured right before
//   - how long the servers waited for a processor, which others use, too, for each second that they ran: measured
//     meanwhile
func Check(ctx context.Context, o CheckOptions, out io.Writer) ([]Row, error) {
	if o.Items < 1 || o.Items%(maxBatch*channels) != 0 || o.Lone < 100 {
		return nil, fmt.Errorf("scale: %d and %d executions: want a multiple of %d, and at least 100", o.Items, o.Lone,
			maxBatch*channels)
	}
	c := &checking{o: o}
	for _, one := range []func(context.Context) error{c.drain, c.handlers, c.lone, c.stream, c.three} {
		if err := one(ctx); err != nil {
			return nil, err
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "scenario\tfigure\tpredicted\tmeasured\tratio\t")
	for _, row := range c.rows {
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%.4g\t%.2f\t\n", row.Scenario, row.Figure, row.Predicted, row.Measured,
			row.Ratio())
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	for _, n := range c.notes {
		fmt.Fprintln(out, n)
	}
	return c.rows, nil
}

type checking struct {
	o     CheckOptions
	rows  []Row
	notes []string
}

func (c *checking) add(scenario, figure string, predicted, measured float64) {
	c.rows = append(c.rows, Row{scenario, figure, predicted, measured})
}

// measure runs a scenario and returns its figures, and what was seen of its servers.
func (c *checking) measure(ctx context.Context, name string, cluster bool,
	change func(*scenario.Options)) (measure.Figures, *watched, error) {
	sizes := scenario.Options{Items: c.o.Items, Payload: 256, Raw: true, Concurrency: 64, Partitions: channels,
		Rounds: 1, Samples: c.o.Lone, Window: time.Second, Sleeps: []time.Duration{10 * time.Millisecond},
		Handlers: []int{64}}
	if change != nil {
		change(&sizes)
	}
	w := c.watching(cluster)
	at := slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == name })
	results, err := scenario.Run(ctx, scenario.All[at], []driver.System{w}, sizes, func(string, int) {})
	if err != nil {
		return nil, nil, err
	}
	return results[0].Rounds[0].Figures, w, nil
}

func (c *checking) watching(cluster bool) *watched {
	return &watched{System: flowfabric.System{Program: c.o.Server, Cluster: cluster}}
}

// simulated is the prediction under the costs of servers that waited for a processor.
func (c *checking) simulated(name string, l Load, w *watched) (Result, error) {
	costs := Published().Slowed(w.pace)
	costs.Client *= w.pace
	costs.Hop = max(1, float64((w.submit-costs.Create.Of(1)-costs.Outside.Of(1)).Microseconds())/2)
	costs = costs.Slowed(w.slow())
	c.notes = append(c.notes,
		fmt.Sprintf(
			"%s on %s: calls take %.2f of their published time, %.2f times that with waiting for a processor; a hop takes %.0f µs",
			name, w.name, w.pace, w.slow(), costs.Hop))
	return Simulate(l, costs)
}

// slept is how long so many goroutines really sleep when they want to sleep for a time.
func slept(ctx context.Context, n int, want time.Duration) time.Duration {
	const times = 20
	var sum atomic.Int64
	p := pool.New()
	for range n {
		p.Go(func() {
			for range times {
				began := time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(want):
				}
				sum.Add(int64(time.Since(began)))
			}
		})
	}
	p.Wait()
	return time.Duration(sum.Load()) / times / time.Duration(n)
}

func (c *checking) load() Load {
	return Load{Seed: 1, Primaries: 1, Partitions: channels, Producers: 1, Workers: 1, Concurrency: 64, Grain: 0.001,
		Lease: 30, Seconds: 600}
}

func (c *checking) drain(ctx context.Context) error {
	f, w, err := c.measure(ctx, "drain", false, nil)
	if err != nil {
		return err
	}
	l := c.load()
	l.Preload, l.Uncounted = c.o.Items, c.o.Items/10
	return c.throughput("drain", l, f, w)
}

func (c *checking) throughput(name string, l Load, f measure.Figures, w *watched) error {
	r, err := c.simulated(name, l, w)
	if err != nil {
		return err
	}
	c.add(name, "executions/s", r.Throughput, f[measure.Throughput])
	c.add(name, "calls", r.Calls, f[measure.CallsItem])
	c.add(name, "server µs", serverMicros(r, w), f[measure.ServerItem])
	return nil
}

// serverMicros is the processor time that all primaries need for an execution. One that waits for a processor is busy
// for longer, but does not use more of it.
func serverMicros(r Result, w *watched) float64 {
	used := 0.0
	for _, u := range r.Utilisation {
		used += u
	}
	return used * 1e6 / r.Throughput / w.slow()
}

func (c *checking) handlers(ctx context.Context) error {
	f, w, err := c.measure(ctx, "sleep", false, func(o *scenario.Options) { o.Items = c.o.Items / 3 })
	if err != nil {
		return err
	}
	l := c.load()
	took := slept(ctx, l.Concurrency, 10*time.Millisecond)
	c.notes = append(c.notes, fmt.Sprintf("handlers of 10 ms: %d goroutines that sleep for 10 ms do it for %.2f ms",
		l.Concurrency, took.Seconds()*1000))
	l.Preload, l.Work = int(f[measure.Items])*10/9, max(0.01, took.Seconds()-l.Grain/2)
	l.Uncounted = l.Preload / 10
	return c.throughput("handlers of 10 ms", l, f, w)
}

func (c *checking) lone(ctx context.Context) error {
	f, w, err := c.measure(ctx, "latency", false, nil)
	if err != nil {
		return err
	}
	l := c.load()
	l.Rest, l.Jobs, l.Uncounted = 0.003, c.o.Lone, c.o.Lone/10
	r, err := c.simulated("a lone execution", l, w)
	if err != nil {
		return err
	}
	c.add("a lone execution", "start p50 ms", r.P50, f[measure.P50])
	c.add("a lone execution", "calls", r.Calls, f[measure.CallsItem])
	return nil
}

func (c *checking) three(ctx context.Context) error {
	f, w, err := c.measure(ctx, "drain", true, nil)
	if err != nil {
		return err
	}
	l := c.load()
	l.Primaries, l.Preload, l.Uncounted = 3, c.o.Items, c.o.Items/10
	if err := c.throughput("three primaries", l, f, w); err != nil {
		return err
	}
	shares := w.shares()
	for i, n := range Spread(channels, 3) {
		c.add("three primaries", fmt.Sprintf("processor share of primary %d", i+1), float64(n)/channels, shares[i])
	}
	return nil
}

// watched is a system whose servers are looked at whenever their counters are read, which is at the beginning and at
// the end of what a scenario measures.
type watched struct {
	flowfabric.System
	nodes  []*server.Server
	name   string        // of the server
	pace   float64       // of its calls; 1 is as published
	submit time.Duration // of a lone one, the median
	seen   []look
}

type look struct {
	run, wait time.Duration // of all servers
	used      []float64     // processor time of each, in s
}

// Serve starts what the system starts.
func (w *watched) Serve(ctx context.Context) (driver.Server, error) {
	s, err := w.System.Serve(ctx)
	if err != nil {
		return nil, err
	}
	w.name = s.Name()
	switch s := s.(type) {
	case *server.Server:
		w.nodes = []*server.Server{s}
		return &watchedServer{s, w}, w.ask(ctx, s)
	case *server.Cluster:
		w.nodes = s.Nodes()
		return &watchedCluster{s, w}, w.ask(ctx, s)
	}
	return nil, fmt.Errorf("scale: a server of type %T", s)
}

type watchedServer struct {
	*server.Server
	by *watched
}

func (s *watchedServer) Sample(ctx context.Context) (driver.Sample, error) {
	if err := s.by.look(ctx); err != nil {
		return driver.Sample{}, err
	}
	return s.Server.Sample(ctx)
}

type watchedCluster struct {
	*server.Cluster
	by *watched
}

func (s *watchedCluster) Sample(ctx context.Context) (driver.Sample, error) {
	if err := s.by.look(ctx); err != nil {
		return driver.Sample{}, err
	}
	return s.Cluster.Sample(ctx)
}

// ask measures submits: many, and alone to a server that rests.
func (w *watched) ask(ctx context.Context, s driver.Server) error {
	store, err := w.Open(ctx, s, driver.Settings{Partitions: channels})
	if err != nil {
		return err
	}
	defer store.Close()
	p, err := w.nodes[0].Timed(ctx, "fcall", func() error {
		payloads := make([][]byte, maxBatch*channels)
		for i := range payloads {
			payloads[i] = make([]byte, 256)
		}
		return store.SubmitMany(ctx, payloads)
	})
	if err != nil {
		return err
	}
	if p.USec == 0 {
		return errors.New("scale: the server does not tell how long its calls take")
	}
	w.pace = p.USec / float64(Published().Create.Of(maxBatch).Microseconds())
	var took []time.Duration
	for range 200 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(3 * time.Millisecond):
		}
		began := time.Now()
		if err := store.Submit(ctx, make([]byte, 256)); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	w.submit = took[len(took)/2]
	return nil
}

func (w *watched) look(ctx context.Context) error {
	var l look
	for _, s := range w.nodes {
		run, wait := scheduled(fmt.Sprintf("/proc/%d/schedstat", s.PID()))
		l.run, l.wait = l.run+run, l.wait+wait
		sample, err := s.Sample(ctx)
		if err != nil {
			return err
		}
		l.used = append(l.used, sample.CPU.Seconds())
	}
	w.seen = append(w.seen, l)
	return nil
}

// scheduled is how long a thread ran, and how long it waited for a processor. Both are 0 where the system does not
// tell.
func scheduled(path string) (run, wait time.Duration) {
	text, err := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, 0
	}
	a, _ := strconv.ParseInt(fields[0], 10, 64)
	b, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(a), time.Duration(b)
}

// slow is how many times as long as it ran a server took, because it waited for a processor.
func (w *watched) slow() float64 {
	first, last := w.seen[len(w.seen)-2], w.seen[len(w.seen)-1]
	if last.run <= first.run {
		return 1
	}
	return 1 + float64(last.wait-first.wait)/float64(last.run-first.run)
}

// shares are the parts of all processor time that each server had.
func (w *watched) shares() []float64 {
	first, last := w.seen[len(w.seen)-2], w.seen[len(w.seen)-1]
	out, sum := make([]float64, len(last.used)), 0.0
	for i := range out {
		out[i] = last.used[i] - first.used[i]
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
