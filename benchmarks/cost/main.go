// Command cost measures what the functions of the library cost the server: microseconds per item and bytes per
// execution, against the budgets of the project.
//
//	go run ./cost                       # a private redis-server, 5 rounds of 16,640 items
//	go run ./cost -server valkey-server # another server program
//	go run ./cost -json                 # for machines
//
// It starts a server of its own (unix socket, nothing on disk), drives it through package engine exactly as
// workers and producers do, and reads the time that the server itself gives for the median FCALL of each phase
// (INFO latencystats). Network, driver and Go are not part of these numbers.
//
// Machines differ and drift, so the run calibrates itself: a script that does nothing but HMGET of five fields
// is timed beside every phase, and figures are also given at the speed of the machine that the budgets were
// written on (3.0 µs for that HMGET). Budgets are judged there.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
)

type options struct {
	server     string
	items      int
	rounds     int
	payload    int
	partitions int
	json       bool
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "redis-server", "server program to start: redis-server or valkey-server, or a path")
	flag.IntVar(&o.items, "items", 16640, "executions (and frames) per phase and round")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median counts")
	flag.IntVar(&o.payload, "payload", 256, "bytes of input, of result and of a frame")
	flag.IntVar(&o.partitions, "partitions", 64, "partitions the work is spread over, each driven by one goroutine")
	flag.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flag.Parse()
	runtime.GOMAXPROCS(1) // leaves the other cores to the server
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.items < 64*o.partitions || o.rounds < 1 || o.payload < 1 || o.partitions < 1 {
		return fmt.Errorf("want at least one round and 64 items for each of the %d partitions", o.partitions)
	}
	s, err := startServer(ctx, o.server)
	if err != nil {
		return err
	}
	defer s.stop()
	samples := map[string][]float64{}
	for range o.rounds {
		for _, batch := range []int{1, 32} {
			if err := round(ctx, s, o, batch, samples); err != nil {
				return err
			}
		}
	}
	r := report(o, s, samples)
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(out)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
