package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/scale"
)

// predictScale simulates a load; or computes, measures or checks what its first argument says.
func predictScale(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "plan":
			return planScale(args[1:], out, progress)
		case "constants":
			return measureConstants(ctx, args[1:], out, progress)
		case "check":
			return checkScale(ctx, args[1:], out, progress)
		}
	}
	l := scale.Load{}
	rest, err := command("scale", "[plan | constants | check] [options]", args,
		progress, func(f *flag.FlagSet) {
			f.Uint64Var(&l.Seed, "seed", 1, "of what is random")
			f.IntVar(&l.Primaries, "primaries", 1, "servers")
			f.IntVar(&l.Partitions, "partitions", 64, "1..1024")
			f.BoolVar(&l.Even, "even", false, "deal partitions to primaries in turn, instead of by their slots")
			f.IntVar(&l.Preload, "preload", 0, "executions that wait at the beginning")
			f.IntVar(&l.Jobs, "jobs", 0, "submits at most; 0: no bound")
			f.IntVar(&l.Producers, "producers", 1, "clients that submit")
			f.Float64Var(&l.Rate, "rate", 0, "submits a second of all clients, at random moments")
			f.Float64Var(&l.Rest, "rest", 0,
				"instead of -rate: seconds between the begin of a handler and the next submit")
			f.IntVar(&l.Workers, "workers", 1, "processes")
			f.IntVar(&l.Concurrency, "c", 64, "handlers of a worker")
			f.Float64Var(&l.Work, "work", 0, "seconds that a handler takes")
			f.BoolVar(&l.Spread, "spread", false, "handlers take random times of that mean")
			f.Float64Var(&l.Grain, "grain", 0,
				"how late timers of a process may be, in seconds: 0.001 for handlers that sleep and for submits at random moments")
			f.Float64Var(&l.Lease, "lease", 30, "seconds")
			f.Float64Var(&l.Seconds, "seconds", 60, "of virtual time at most")
			f.Float64Var(&l.Warm, "warm", 0, "seconds that are not counted")
		})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf(
			"scale: unknown argument %q; options begin with a dash, and plan, constants or check come first", rest[0])
	}
	r, err := scale.Simulate(l, scale.Published())
	if err != nil {
		return err
	}
	return printScale(l, r, out)
}

func printScale(l scale.Load, r scale.Result, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\t\n", append([]any{name}, args...)...)
	}
	row("executions ended, waiting, held", "%d  %d  %d", r.Ended, r.Waiting, r.Held)
	row("counted", "%.3f s", r.Seconds)
	row("throughput", "%.0f/s", r.Throughput)
	if l.Work > 0 && l.Workers > 0 {
		row("of what so many handlers can do", "%.2f", r.Throughput*l.Work/float64(l.Workers*l.Concurrency))
	}
	row("start p50, p99", "%.3f  %.3f ms", r.P50, r.P99)
	row("calls an execution", "%.2f", r.Calls)
	row("pings", "%.0f/s", r.Pings)
	var used, memory []string
	for i := range r.Utilisation {
		used, memory = append(used, fmt.Sprintf("%.2f", r.Utilisation[i])),
			append(memory, fmt.Sprintf("%.1f", r.Memory[i]/1e6))
	}
	row("primaries used", "%s", strings.Join(used, "  "))
	row("their executions", "%s MB", strings.Join(memory, "  "))
	row("sessions", "%d", r.Sessions)
	return w.Flush()
}

func planScale(args []string, out, progress io.Writer) error {
	w := scale.Wish{}
	if _, err := command("scale plan", "[options]", args, progress, func(f *flag.FlagSet) {
		f.Float64Var(&w.Waiting, "waiting", 0, "executions that wait")
		f.Float64Var(&w.Suspended, "suspended", 0, "executions that are suspended")
		f.Float64Var(&w.Done, "done", 0, "executions that are retained")
		f.Float64Var(&w.Rate, "rate", 0, "lifecycles a second")
		f.IntVar(&w.Batch, "batch", 8, "executions of a call, on average")
		f.Float64Var(&w.Workers, "workers", 0, "worker processes")
		f.Float64Var(&w.Concurrency, "c", 64, "handlers of each")
		f.Float64Var(&w.Busy, "busy", 1, "sessions that a worker has, as a part of the partitions")
		f.Float64Var(&w.Tails, "tails", 0, "executions that are followed, by one reader each")
		f.Float64Var(&w.Frames, "frames", 1, "calls that append to each of them, a second")
		f.IntVar(&w.Partitions, "partitions", 64, "1..1024")
		f.IntVar(&w.Homes, "homes", 0, "what if a worker dealt with so many partitions only; 0: with all, as it does")
		f.Float64Var(&w.Lease, "lease", 30, "seconds")
		f.Float64Var(&w.Memory, "memory", 24e9, "usable bytes of a primary")
		f.Float64Var(&w.Use, "use", 0.6, "of a primary's processor at most")
	}); err != nil {
		return err
	}
	n, err := scale.Plan(w, scale.Published())
	if err != nil {
		return err
	}
	return n.Print(out)
}

func measureConstants(ctx context.Context, args []string, out, progress io.Writer) error {
	var server string
	if _, err := command("scale constants", "[-server redis-server]", args, progress, func(f *flag.FlagSet) {
		f.StringVar(&server, "server", "redis-server", "program to start")
	}); err != nil {
		return err
	}
	c, err := scale.Constants(ctx, server, 8*time.Second, scale.Published())
	if err != nil {
		return err
	}
	return c.Print(out)
}

func checkScale(ctx context.Context, args []string, out, progress io.Writer) error {
	o := scale.CheckOptions{}
	if _, err := command("scale check", "[-server redis-server] [-n 19200] [-lone 500]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.IntVar(&o.Items, "n", 19_200,
				"executions of drain and of three primaries, a multiple of 6,400; a third of them with handlers of 10 ms")
			f.IntVar(&o.Lone, "lone", 500, "executions one by one")
		}); err != nil {
		return err
	}
	_, err := scale.Check(ctx, o, out)
	return err
}
