// Package tenants measures what namespaces cost: the server's time for an execution, and its memory, while the same
// work waits in one namespace or in many; and how many executions a flooded namespace is given beside many small
// ones.
//
// It starts a server of its own and drives it through package engine. All work is in one partition, of one lane and
// kind.
package tenants

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Options of a run.
type Options struct {
	Server  string // program to start
	Work    int    // executions
	Spaces  []int  // over how many namespaces they are spread
	Claimed int    // how many of them are claimed and completed
	Keys    []int  // over how many keys with a limit they are spread; 0: no limit
}

// each is how many one call claims, and completes.
const each = 32

// Run measures and writes three tables: of namespaces, of keys with limits, of keys of submissions.
func Run(ctx context.Context, o Options, out io.Writer) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	for _, table := range []func(context.Context, *server.Server, Options, io.Writer) error{spaces, limits, submitted} {
		if err := table(ctx, s, o, out); err != nil {
			return fmt.Errorf("tenants: %w", err)
		}
	}
	return nil
}

// spaces is the table of namespaces.
func spaces(ctx context.Context, s *server.Server, o Options, out io.Writer) error {
	fmt.Fprintf(out, "%s, %d executions without input in one partition, of which %d are claimed %d a call\n\n",
		s.Name(), o.Work, o.Claimed, each)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "namespaces\tcreate µs\tclaim µs\tcomplete µs\tbytes waiting\tnamespaces served\tflood's part\t")
	for _, n := range o.Spaces {
		if err := once(ctx, s, o, n, w); err != nil {
			return fmt.Errorf("%d namespaces: %w", n, err)
		}
	}
	return w.Flush()
}

type bench struct {
	ctx   context.Context
	s     *server.Server
	e     *engine.Engine
	table map[uint64]string // namespace of a route
}

// open is a bench of an empty server, and the memory of that.
func open(ctx context.Context, s *server.Server) (b *bench, empty float64, err error) {
	if err := s.Reset(ctx); err != nil {
		return nil, 0, err
	}
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, 0, err
	}
	if empty, err = s.Memory(ctx); err != nil {
		e.Close()
		return nil, 0, err
	}
	return &bench{ctx: ctx, s: s, e: e, table: map[uint64]string{}}, empty, nil
}

func once(ctx context.Context, s *server.Server, o Options, n int, out io.Writer) error {
	b, empty, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer b.e.Close()
	create, err := b.timed(func() error {
		return b.create(o.Work, func(i int, x *engine.NewExecution) { x.Namespace = "tenant" + strconv.Itoa(i%n) })
	})
	if err != nil {
		return err
	}
	full, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	served := map[string]int{}
	var claim, complete float64
	if claim, complete, err = b.work(o.Claimed, served); err != nil {
		return err
	}
	met := len(served)
	part := "-"
	if n > 1 { // a flood comes, and is older than nothing
		if err := b.create(o.Claimed, func(_ int, x *engine.NewExecution) { x.Namespace = "flood" }); err != nil {
			return err
		}
		clear(served)
		if _, _, err := b.work(o.Claimed/4, served); err != nil {
			return err
		}
		part = fmt.Sprintf("%.2f %%", 100*float64(served["flood"])/float64(o.Claimed/4))
	}
	fmt.Fprintf(out, "%d\t%.2f\t%.2f\t%.2f\t%.0f\t%d\t%s\t\n", n, create/float64(o.Work), claim, complete,
		(full-empty)/float64(o.Work), met, part)
	return nil
}

// create makes n executions, each of which vary may change.
func (b *bench) create(n int, vary func(i int, x *engine.NewExecution)) error {
	for first := 0; first < n; first += 100 {
		items := make([]engine.NewExecution, min(100, n-first))
		for i := range items {
			items[i] = engine.NewExecution{ID: flowfabric.NewExecutionID(0),
				Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}}
			vary(first+i, &items[i])
		}
		made, err := b.e.CreateExecutions(b.ctx, 0, items)
		if err != nil {
			return err
		}
		for _, m := range made {
			if m.Err != nil {
				return m.Err
			}
		}
	}
	return nil
}

// work claims and completes n executions, and returns the server's µs for each.
func (b *bench) work(n int, served map[string]int) (claim, complete float64, err error) {
	q := engine.ClaimRequest{Session: engine.NewSessionID("tenants"), Number: 1, TTL: time.Hour, Max: each}
	done := 0
	for done < n {
		var reply engine.ClaimReply
		took, err := b.timed(func() (err error) {
			reply, err = b.e.ClaimNext(b.ctx, q)
			return err
		})
		if err != nil {
			return 0, 0, err
		}
		for _, r := range append(reply.Routes, reply.Others...) {
			b.table[r.ID] = r.Namespace
		}
		if q.Subscription == "" {
			if q.Subscription, err = b.e.SetSubscription(b.ctx, 0,
				engine.Subscription{Classes: []uint64{1}}); err != nil {
				return 0, 0, err
			}
			q.Table = reply.Table
			continue
		}
		if len(reply.Claims) == 0 {
			return 0, 0, fmt.Errorf("nothing to claim after %d", done)
		}
		claim += took
		items := make([]engine.Completion, len(reply.Claims))
		for i, c := range reply.Claims {
			items[i] = engine.Completion{Fence: c.Fence}
			served[b.table[c.Route]]++
		}
		if took, err = b.timed(func() error {
			_, _, err := b.e.CompleteExecutions(b.ctx, 0, items, nil)
			return err
		}); err != nil {
			return 0, 0, err
		}
		complete += took
		done += len(reply.Claims)
		q.Number++
		q.Rotation++
	}
	return claim / float64(done), complete / float64(done), nil
}

// timed is how many µs the server spends in functions.
func (b *bench) timed(call func() error) (float64, error) {
	before, err := b.s.Sample(b.ctx)
	if err != nil {
		return 0, err
	}
	if err := call(); err != nil {
		return 0, err
	}
	after, err := b.s.Sample(b.ctx)
	used := after.Sub(before).Commands
	return used["fcall"].USec + used["fcall_ro"].USec, err
}
