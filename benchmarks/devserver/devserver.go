// Package devserver measures the embedded development server, beside a server of the same machine: a connection to an
// empty store, a job that is submitted alone, and a worker that drains jobs that wait.
package devserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Options of a measurement.
type Options struct {
	Server string // program to start beside the embedded server
	Jobs   int    // that are drained in a round; a tenth of them is submitted alone
	Rounds int    // of which the medians count
}

// figures of one round.
type figures struct {
	connect, submit time.Duration
	drain           float64 // jobs/s
}

var job = handler.Define[string, string]("job")

// Run measures both servers in each round, one after the other, and prints the medians.
func Run(ctx context.Context, o Options, out io.Writer) error {
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	quiet := slog.New(slog.DiscardHandler)
	of := map[string][]figures{}
	for range o.Rounds + 1 {
		// the first one, in which the library is compiled and code is hot for the first time, does not count
		e, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
		if err != nil {
			return err
		}
		f, err := o.round(ctx, e.URL())
		e.Close()
		if err != nil {
			return fmt.Errorf("embedded server: %w", err)
		}
		of["embedded"] = append(of["embedded"], f)
		if err := s.Reset(ctx); err != nil {
			return err
		}
		if f, err = o.round(ctx, s.URL()); err != nil {
			return fmt.Errorf("%s: %w", o.Server, err)
		}
		of[o.Server] = append(of[o.Server], f)
	}
	fmt.Fprintf(out, "%d jobs; medians of %d rounds\n\n", o.Jobs, o.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server\tconnect ms\tlone submit ms\tdrain jobs/s\t")
	for _, name := range []string{"embedded", o.Server} {
		counted := of[name][1:]
		fmt.Fprintf(w, "%s\t%.2f\t%.3f\t%.0f\t\n", name,
			median(counted, func(f figures) float64 { return f.connect.Seconds() * 1e3 }),
			median(counted, func(f figures) float64 { return f.submit.Seconds() * 1e3 }),
			median(counted, func(f figures) float64 { return f.drain }))
	}
	return w.Flush()
}

func median(all []figures, of func(figures) float64) float64 {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = of(f)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// round uses an empty server.
func (o Options) round(ctx context.Context, url string) (f figures, err error) {
	quiet := slog.New(slog.DiscardHandler)
	began := time.Now()
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		return f, err
	}
	defer c.Close()
	f.connect = time.Since(began)
	alone := max(1, o.Jobs/10)
	began = time.Now()
	for range alone {
		if _, err := client.Submit(ctx, c, job, "input"); err != nil {
			return f, err
		}
	}
	f.submit = time.Since(began) / time.Duration(alone)
	if _, err := client.SubmitMany(ctx, c, job, make([]string, o.Jobs-alone)); err != nil {
		return f, err
	}
	var left atomic.Int64
	left.Store(int64(o.Jobs))
	done := make(chan struct{})
	w, err := runtime.New(runtime.Config{URL: url, Logger: quiet},
		handler.Bind(job, func(context.Context, *handler.Task, string) (string, error) {
			if left.Add(-1) == 0 {
				close(done)
			}
			return "result", nil
		}))
	if err != nil {
		return f, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var running conc.WaitGroup
	began = time.Now()
	running.Go(func() { err = w.Run(working) })
	select {
	case <-done:
	case <-ctx.Done():
		return f, ctx.Err()
	}
	f.drain = float64(o.Jobs) / time.Since(began).Seconds()
	stop()
	running.Wait()
	return f, err
}
