package tenants

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// submitted measures what keys of submissions cost: the server's time for an execution and its memory with a key of
// each kind beside none, and that of a second submit under the same key.
func submitted(ctx context.Context, s *server.Server, o Options, out io.Writer) error {
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
			if err := keyed(ctx, s, o, fmt.Sprint(k.name, ", round ", round+1), k.keyed, k.window, w); err != nil {
				return fmt.Errorf("key %s: %w", k.name, err)
			}
		}
	}
	return w.Flush()
}

func keyed(ctx context.Context, s *server.Server, o Options, name string, with bool, window time.Duration,
	out io.Writer) error {
	b, empty, err := open(ctx, s)
	if err != nil {
		return err
	}
	defer b.e.Close()
	submit := func() error {
		return b.create(o.Work, func(i int, x *engine.NewExecution) {
			if with {
				_, x.Key.ID = ids.Keyed(1, "default", "k", "order-"+strconv.Itoa(i))
				x.Key.For = window
			}
		})
	}
	create, err := b.timed(submit)
	if err != nil {
		return err
	}
	full, err := s.Memory(ctx)
	if err != nil {
		return err
	}
	again := "-"
	if with {
		took, err := b.timed(submit)
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
