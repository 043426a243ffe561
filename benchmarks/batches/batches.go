// Package batches measures what a batch handler saves where each call waits for something: a database that takes a
// millisecond for a statement, whether that is about one row or about a hundred, and that has a bounded number of
// connections.
package batches

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Options of a measurement.
type Options struct {
	Server      string // program to start
	Jobs        int    // of a round
	Rounds      int    // of which the medians count
	Concurrency int    // of the worker
	Connections int    // of the database
	Call        time.Duration
	Sizes       []int // of batches; 0 is a handler of one job a call
	Wait        time.Duration
}

// Run measures every size in each round, alternating, and prints the medians.
func Run(ctx context.Context, o Options, out io.Writer) error {
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	rates, perCall := make([][]float64, len(o.Sizes)), make([][]float64, len(o.Sizes))
	for range o.Rounds {
		for i, size := range o.Sizes {
			took, calls, err := o.round(ctx, s, size)
			if err != nil {
				return fmt.Errorf("batches: size %d: %w", size, err)
			}
			rates[i] = append(rates[i], float64(o.Jobs)/took.Seconds())
			perCall[i] = append(perCall[i], float64(o.Jobs)/float64(calls))
		}
	}
	fmt.Fprintf(out,
		"%d jobs, a worker of concurrency %d, a database of %d connections and %s a call; medians of %d rounds\n\n",
		o.Jobs, o.Concurrency, o.Connections, o.Call, o.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "handler\tjobs/s\tjobs a call\t")
	for i, size := range o.Sizes {
		name := "one job a call"
		if size > 0 {
			name = fmt.Sprintf("batches of %d", size)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\t\n", name, measure.Median(rates[i]), measure.Median(perCall[i]))
	}
	return w.Flush()
}

// round lets one worker drain jobs that wait, and tells how long it took and how many calls of the database that were.
func (o Options) round(ctx context.Context, s *server.Server, size int) (took time.Duration, calls int64, err error) {
	if err := s.Reset(ctx); err != nil {
		return 0, 0, err
	}
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Logger: quiet})
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	row := handler.Define[int, int]("row")
	if _, err := client.SubmitMany(ctx, c, row, make([]int, o.Jobs), flowfabric.Creator("bench")); err != nil {
		return 0, 0, err
	}
	var made, left atomic.Int64
	left.Store(int64(o.Jobs))
	done, connections := make(chan struct{}), make(chan struct{}, o.Connections)
	query := func(rows int) {
		connections <- struct{}{}
		time.Sleep(o.Call)
		<-connections
		made.Add(1)
		if left.Add(-int64(rows)) == 0 {
			close(done)
		}
	}
	binding := handler.Bind(row, func(context.Context, *handler.Task, int) (int, error) { query(1); return 1, nil })
	if size > 0 {
		binding = handler.BindBatch(row, func(_ context.Context, items []*handler.Item[int, int]) error {
			query(len(items))
			for _, item := range items {
				item.Complete(1)
			}
			return nil
		}, handler.Batch{Size: size, Wait: o.Wait})
	}
	w, err := runtime.New(runtime.Config{URL: s.URL(), Logger: quiet, Concurrency: o.Concurrency}, binding)
	if err != nil {
		return 0, 0, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var running conc.WaitGroup
	began := time.Now()
	running.Go(func() { err = w.Run(working) })
	select {
	case <-done:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	took = time.Since(began)
	stop()
	running.Wait()
	return took, made.Load(), err
}
