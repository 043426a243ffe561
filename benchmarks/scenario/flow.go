package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// slowWatcher is a server that remembers its long calls.
type slowWatcher interface {
	WatchSlow(ctx context.Context, us int) error
	Slow(ctx context.Context) (ms map[string][]float64, err error)
}

// longCall is how many µs a call takes that is remembered.
const longCall = 500

// chainLength is how many jobs a chain has.
const chainLength = 10

// flows measures graphs of jobs: chains as many as go, one chain after the other, many jobs between one and a join,
// and a join that needs one of many and cancels the rest; and what jobs that wait for others occupy.
func flows(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Grapher); !ok {
		return b.lacks("jobs cannot depend on each other")
	}
	for _, v := range []struct {
		name    string
		graph   driver.Graph
		n       int
		atOnce  int
		rest    time.Duration
		members int
	}{
		{name: "chains of 10", graph: chain(), n: max(b.Items/chainLength, 1), atOnce: b.Concurrency},
		{name: "chains of 10, one at a time", graph: chain(), n: max(b.Samples/chainLength, 1), atOnce: 1,
			rest: 3 * time.Millisecond},
		{name: fmt.Sprint("1 → ", b.Members, " → join"), graph: fan(b.Members, 0), n: 4, atOnce: 1},
		{name: fmt.Sprint("1 → ", 10*b.Members-b.Members/10), graph: fan(10*b.Members-b.Members/10, -1), n: 1,
			atOnce: 1},
		{name: fmt.Sprint("1 of ", b.Members, ", rest cancelled"), graph: fan(b.Members, 1), n: 4, atOnce: 1},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.graphs(ctx, v.name, v.graph, v.n, v.atOnce, v.rest); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return b.weighGraphs(ctx)
}

func chain() (g driver.Graph) {
	g.Nodes = make([]driver.Node, chainLength)
	for i := 1; i < chainLength; i++ {
		g.Nodes[i].After = []int{i - 1}
	}
	return g
}

// fan is one job, n jobs after it, and a join of them that needs all (0) or some of them; -1: no join.
func fan(n, need int) (g driver.Graph) {
	g.Nodes = make([]driver.Node, n+1, n+2)
	var all []int
	for i := 1; i <= n; i++ {
		g.Nodes[i].After = []int{0}
		all = append(all, i)
	}
	if need >= 0 {
		g.Nodes = append(g.Nodes, driver.Node{After: all, Need: need, CancelRest: need > 0})
	}
	return g
}

// clock is a [driver.Times]: when every job began and ended.
type clock struct {
	graph        driver.Graph
	began, ended [][]time.Time
	mu           sync.Mutex
	over         []chan struct{} // of each graph: its last node has begun
}

func newClock(g driver.Graph, n int) *clock {
	c := &clock{graph: g, began: make([][]time.Time, n), ended: make([][]time.Time, n), over: make([]chan struct{}, n)}
	for i := range n {
		c.began[i], c.ended[i], c.over[i] = make([]time.Time, len(g.Nodes)), make([]time.Time, len(g.Nodes)),
			make(chan struct{})
	}
	return c
}

func (c *clock) Began(graph, node int, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began[graph][node] = at
}

func (c *clock) Ended(graph, node int, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.ended[graph][node].IsZero()
	c.ended[graph][node] = at
	if first && c.complete(graph, node) {
		close(c.over[graph])
	}
}

// complete tells whether a graph's last stage has run with this node: the only last one, or all of many.
func (c *clock) complete(graph, node int) bool {
	last := len(c.graph.Nodes) - 1
	if len(c.graph.Nodes[last].After) > 1 || len(c.graph.Nodes) == chainLength {
		return node == last
	}
	for _, at := range c.ended[graph] {
		if at.IsZero() {
			return false
		}
	}
	return true
}

// stages are the times between the end of the last job that a job needed and its own begin, of graphs from first on.
func (c *clock) stages(first int) (took []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := first; i < len(c.began); i++ {
		for node, n := range c.graph.Nodes {
			if len(n.After) == 0 || c.began[i][node].IsZero() {
				continue
			}
			var free time.Time // the job that decided: the last one, or the first of those of which one is enough
			for _, up := range n.After {
				at := c.ended[i][up]
				if !at.IsZero() && (free.IsZero() || (n.Need == 1) == at.Before(free)) {
					free = at
				}
			}
			took = append(took, c.began[i][node].Sub(free))
		}
	}
	return took
}

// graphs runs n graphs of a shape, so many at once, and a tenth of that before.
func (b *Bench) graphs(ctx context.Context, variant string, g driver.Graph, n, atOnce int, rest time.Duration) error {
	warm := max(n/warmShare, 1)
	times := newClock(g, warm+n)
	g.Payload = b.payloads(1)[0]
	store := b.Store.(driver.Grapher)
	submit, stop, err := store.Graphs(ctx, b.Concurrency, times)
	if err != nil {
		return err
	}
	err = b.runGraphs(ctx, variant, times, g, warm, n, atOnce, rest, submit)
	return errors.Join(err, stop())
}

func (b *Bench) runGraphs(ctx context.Context, variant string, times *clock, g driver.Graph, warm, n, atOnce int,
	rest time.Duration,
	submit func(context.Context, driver.Graph) error) error {
	var next atomic.Int64
	run := func(until int) error {
		p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
		for range atOnce {
			p.Go(func(ctx context.Context) error {
				for {
					own := g
					if own.Number = int(next.Add(1)) - 1; own.Number >= until {
						return nil
					}
					if err := submit(ctx, own); err != nil {
						return err
					}
					select {
					case <-times.over[own.Number]:
					case <-ctx.Done():
						return fmt.Errorf("graph %d has not ended: %w", own.Number, context.Cause(ctx))
					}
					if rest > 0 {
						if err := pause(ctx, rest); err != nil {
							return err
						}
					}
				}
			})
		}
		return p.Wait()
	}
	if err := run(warm); err != nil {
		return err
	}
	next.Store(int64(warm))
	s, _ := b.Server.(slowWatcher)
	if s != nil {
		if err := s.WatchSlow(ctx, longCall); err != nil {
			return err
		}
	}
	m, err := b.start(ctx, variant)
	if err != nil {
		return err
	}
	if err := run(warm + n); err != nil {
		return err
	}
	ran := time.Now()
	if err := b.settled(ctx); err != nil {
		return err
	}
	extra := measure.Figures{measure.Backlog: float64(time.Since(ran).Microseconds()) / 1000}
	f, commands, err := m.StopAt(ctx, n, ran)
	if err != nil {
		return err
	}
	if s != nil {
		slow, err := s.Slow(ctx)
		if err != nil {
			return err
		}
		extra[measure.Longest] = 0
		for _, took := range slow {
			extra[measure.Longest] = max(extra[measure.Longest], slices.Max(took))
		}
	}
	if rest > 0 {
		delete(f, measure.Throughput) // set by the pauses
	}
	maps.Copy(f, extra)
	f.Latencies(times.stages(warm))
	b.done(variant, f, commands)
	return nil
}

// settled waits until all graphs have ended and nothing is left to do about them.
func (b *Bench) settled(ctx context.Context) error {
	for {
		_, _, left, err := b.Store.(driver.Grapher).Settled(ctx)
		if err != nil || !left {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// weighGraphs compares what the server occupies before and after jobs are there that wait for others: with one edge,
// with five more, and one with very many.
func (b *Bench) weighGraphs(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	submit, stop, err := b.Store.(driver.Grapher).Graphs(ctx, b.Concurrency, nobody{})
	if err != nil {
		return err
	}
	if err := stop(); err != nil { // nobody works, so everything stays as it is
		return err
	}
	n := b.Members
	sizes := make([]float64, 0, 4)
	weigh := func() error {
		used, err := b.Server.Memory(ctx)
		sizes = append(sizes, used)
		return err
	}
	one, five := driver.Graph{Nodes: make([]driver.Node, n), Payload: b.payloads(1)[0]},
		driver.Graph{Nodes: make([]driver.Node, n), Payload: b.payloads(1)[0]}
	for i := 1; i < n; i++ {
		one.Nodes[i].After = []int{i - 1}
		for up := max(0, i-6); up < i; up++ {
			five.Nodes[i].After = append(five.Nodes[i].After, up)
		}
	}
	const graphs = 8 // of each kind, so that routes, connections and scripts do not weigh
	for number, g := range []driver.Graph{one, one, five} {
		for range graphs {
			if err := submit(ctx, g); err != nil {
				return err
			}
		}
		if number == 0 && b.Partitions > graphs { // every partition has its route from now on
			for range b.Partitions - graphs {
				if err := submit(ctx, driver.Graph{Nodes: chain().Nodes, Payload: g.Payload}); err != nil {
					return err
				}
			}
		}
		if err := weigh(); err != nil {
			return err
		}
	}
	members := float64(graphs * n)
	member := (sizes[1]-sizes[0])/members - float64(b.Payload)
	b.done("waiting for others", measure.Figures{measure.Items: members, measure.Blocked: member,
		measure.Edge: ((sizes[2] - sizes[1]) - (sizes[1] - sizes[0])) / (5 * members)}, nil)
	return nil
}

type nobody struct{}

func (nobody) Began(int, int, time.Time) {}
func (nobody) Ended(int, int, time.Time) {}
