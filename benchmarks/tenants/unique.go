package tenants

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Submitted measures what keys of submissions cost: the server's time for an execution and its memory with a key of
// each kind beside none, and that of a second submit under the same key.
func Submitted(ctx context.Context, o Options, out io.Writer) error {
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Fprintf(out, "\nkeys of submissions: %d executions, of which %d are claimed %d a call\n\n", o.Work, o.Claimed,
		each)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "key\tcreate µs\tagain µs\tclaim µs\tcomplete µs\tbytes waiting\t")
	for round := range 3 {
		for _, k := range []struct {
			name   string
			keyed  bool
			window time.Duration
		}{{name: "none"}, {"IdempotencyKey", true, -1}, {"Unique", true, 0},
			{"KeyWindow of an hour", true, time.Hour}} {
			if err := submitted(ctx, s, o, fmt.Sprint(k.name, ", round ", round+1), k.keyed, k.window, w); err != nil {
				return fmt.Errorf("tenants: key %s: %w", k.name, err)
			}
		}
	}
	return w.Flush()
}

func submitted(ctx context.Context, s *server.Server, o Options, name string, keyed bool, window time.Duration,
	out io.Writer) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer e.Close()
	client, err := s.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	b := &bench{ctx: ctx, s: s, client: client, e: e, table: map[uint64]string{}}
	empty, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	key := func(i int) (k engine.SubmitKey) {
		if keyed {
			_, k.ID = ids.Keyed(1, "default", "k", "order-"+strconv.Itoa(i))
			k.For = window
		}
		return k
	}
	create, err := b.timed(func() error { return b.createKeyed(o.Work, key) })
	if err != nil {
		return err
	}
	full, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	again := "-"
	if keyed {
		took, err := b.timed(func() error { return b.createKeyed(o.Work, key) })
		if err != nil {
			return err
		}
		again = fmt.Sprintf("%.2f", took/float64(o.Work))
	}
	claim, complete, err := b.work(o.Claimed, map[string]int{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\t%.2f\t%s\t%.2f\t%.2f\t%.0f\t\n", name, create/float64(o.Work), again, claim, complete,
		(full-empty)/float64(o.Work))
	return nil
}

// createKeyed makes n executions with the keys that key tells.
func (b *bench) createKeyed(n int, key func(i int) engine.SubmitKey) error {
	for first := 0; first < n; first += 100 {
		items := make([]engine.NewExecution, min(100, n-first))
		for i := range items {
			items[i] = engine.NewExecution{ID: flowfabric.NewExecutionID(0),
				Start: flowfabric.Start{Namespace: "default", Lane: "default",
					Kind: "k"}, Key: key(first + i)}
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
