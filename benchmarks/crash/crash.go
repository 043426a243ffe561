// Package crash measures what the death of a worker costs an agent. The same small agent is written for FlowFabric and
// for other systems as their documents say: a model call, a tool with an effect, a model call, the tool again, and an
// answer; what the model says goes to a reader token by token. Its worker is a process, which is killed (SIGKILL) once
// in each run, at every write and at every step in turn. Another worker then takes over.
//
//	                    ┌── ledger: model service (bills tokens), bank (takes bookings) ──┐
//	                    │        kills at a moment                                        │
//	caller ──▶ store ◀──┴── wire ◀── worker                                               ▼
//	   └── reader          kills before or after a write                          judge: what was paid,
//	                                                                               done and shown twice
//
// The ledger lives in this process, so no crash undoes what it counts. Its model never gives the same answer twice, as
// real ones do not: a call that is made again wants another seat.
//
//   - crash.go, report.go: all runs of all systems, and the page
//   - run.go, watch.go: one run, and when its worker is killed
//   - wire.go, resp.go, pgwire.go: the proxy between worker and store, and the two protocols
//   - ledger.go, judge.go: the world outside, and what it says of a run
//   - agent.go: what peers written in Go share; system.go and a file for each system
package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// Options of a run of the benchmark.
type Options struct {
	Server  string   // the program of those that need Redis
	Systems []string // by name; none: all
	Most    int      // points of each kind at most, spread evenly; 0: all of them
	Lanes   int      // runs of a system at once, 1 or more; each lane has a server of its own
	Out     string   // file of the page; "" writes none
	Points  bool     // print each run
}

// result is what all runs of a system came to.
type result struct {
	system system
	server string // which it ran on
	absent error  // why it did not run
	calm   outcome
	runs   []outcome
}

// Run makes all runs, prints a table to out and writes the page.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	chosen := systems
	if len(o.Systems) > 0 {
		chosen = nil
		for _, name := range o.Systems {
			s, err := find(name)
			if err != nil {
				return err
			}
			chosen = append(chosen, s)
		}
	}
	began := time.Now()
	var results []result
	for _, s := range chosen {
		r, err := measure(ctx, s, o, progress)
		if err != nil {
			return fmt.Errorf("crash: %s: %w", s.name, err)
		}
		results = append(results, r)
	}
	p := page{results: results, began: began, took: time.Since(began), most: o.Most}
	if o.Points {
		p.points(out)
	}
	p.print(out)
	if o.Out == "" {
		return nil
	}
	return p.save(o.Out)
}

// measure makes all runs of a system: one without a crash, which tells the points, and one for each point.
func measure(ctx context.Context, s system, o Options, progress io.Writer) (result, error) {
	out := result{system: s}
	var lanes []*lane
	defer func() {
		for _, l := range lanes {
			l.close()
		}
	}()
	for range o.Lanes {
		l, err := openLane(ctx, s, o.Server)
		if errors.Is(err, driver.ErrNotInstalled) {
			out.absent = err
			return out, nil
		}
		if err != nil {
			return out, err
		}
		lanes = append(lanes, l)
	}
	out.server = lanes[0].server.Name()
	var err error
	if out.calm, err = lanes[0].run(ctx, point{}); err != nil {
		return out, err
	}
	if c := out.calm; c.wrong != "" || c.bookings != turns-1 || c.other || c.twice+c.lost+c.dropped > 0 {
		return out, fmt.Errorf("a run without a crash went wrong: %+v", c)
	}
	todo := points(out.calm.reached, o.Most)
	queue := make(chan point, len(todo))
	for _, at := range todo {
		queue <- at
	}
	close(queue)
	var mu sync.Mutex
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for _, l := range lanes {
		p.Go(func(ctx context.Context) error {
			for at := range queue {
				r, err := l.run(ctx, at)
				if err != nil {
					return fmt.Errorf("%s, number %d: %w", at.kind, at.n, err)
				}
				mu.Lock()
				out.runs = append(out.runs, r)
				fmt.Fprintf(progress, "\r%s: %d of %d ", s.name, len(out.runs), len(todo))
				mu.Unlock()
			}
			return nil
		})
	}
	err = p.Wait()
	fmt.Fprintln(progress)
	slices.SortFunc(out.runs, func(a, b outcome) int {
		return int(a.point.kind-b.point.kind)*10_000 + a.point.n - b.point.n
	})
	return out, err
}

// points are the places to kill a worker that did all this.
func points(reached map[kind][]string, most int) (out []point) {
	for _, k := range []kind{before, after, moment} {
		n := len(reached[k])
		if most <= 0 || most >= n {
			most := n
			for i := range most {
				out = append(out, point{k, i + 1})
			}
			continue
		}
		for i := range most {
			out = append(out, point{k, 1 + i*n/most})
		}
	}
	return out
}
