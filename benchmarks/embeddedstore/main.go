// Command embeddedstore measures a store under a backlog: submission, the drain of all executions that wait, and the
// memory of each. It passes -url on, so the same command measures every store that a URL selects.
//
//	go run ./embeddedstore -waiting 20000                        # embedded://, in memory
//	go run ./embeddedstore -waiting 20000 -server redis-server   # a private server, for comparison
//	go run ./embeddedstore -waiting 100000 -memory
//	go run ./embeddedstore -url 'embedded:/tmp/store-{run}'      # a new folder for each run
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "embeddedstore:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	url, program, profiles string
	waiting, runs          int
	most                   time.Duration
	memory                 bool
}

func parse(args []string, progress io.Writer) (o options, err error) {
	f := flag.NewFlagSet("embeddedstore", flag.ContinueOnError)
	f.SetOutput(progress)
	f.StringVar(&o.url, "url", embedded.URL, "URL of a store that is empty; {run} becomes the number of the run")
	f.StringVar(&o.program, "server", "", "program to start and measure instead: redis-server, valkey-server or a path")
	f.IntVar(&o.waiting, "waiting", 2000, "executions that wait, 100 or more")
	f.IntVar(&o.runs, "runs", 3, "runs, of which the median, minimum and maximum are printed")
	f.DurationVar(&o.most, "most", 6*time.Minute, "stop a drain after so long; its figures are of what was drained")
	f.BoolVar(&o.memory, "memory", false, "measure memory of waiting executions instead of submission and drain")
	f.StringVar(&o.profiles, "profiles", "", "directory for processor profiles of the drains")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q; options begin with a dash, see -h", f.Arg(0))
	case o.waiting < 100 || o.runs < 1 || o.most <= 0:
		return o, fmt.Errorf("-waiting %d, -runs %d, -most %s: want 100 executions, one run and some time at least",
			o.waiting, o.runs, o.most)
	case o.memory && o.program == "" && !strings.HasPrefix(o.url, "embedded:"):
		return o, fmt.Errorf("-memory -url %s: the store is not in this process; use an embedded URL or -server", o.url)
	}
	return o, nil
}

// run prints a table of the figures of all runs.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	store, name := driver.Server(inProcess{}), o.url
	if o.program != "" {
		s, err := server.Start(ctx, o.program)
		if err != nil {
			return err
		}
		defer s.Stop()
		store, name, o.url = s, s.Name(), s.URL()
	}
	var runs []measure.Figures
	for number := 1; number <= o.runs; number++ {
		fmt.Fprintf(progress, "%s: run %d of %d …\n", name, number, o.runs)
		f, err := o.measure(ctx, store, strconv.Itoa(number))
		if err != nil {
			return fmt.Errorf("run %d: %w", number, err)
		}
		runs = append(runs, f)
	}
	fmt.Fprintf(out, "%s: %d executions of %d bytes wait; %d runs\n\n", name, o.waiting, len(input), o.runs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmedian\tmin\tmax")
	spreads := measure.Summary(runs)
	for _, f := range figures {
		if s, ok := spreads[f.key]; ok {
			fmt.Fprintf(w, "%s\t%.*f\t%.*f\t%.*f\n", f.title, f.digits, s.Median, f.digits, s.Min, f.digits, s.Max)
		}
	}
	return w.Flush()
}
