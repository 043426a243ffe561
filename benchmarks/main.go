// Command benchmarks measures FlowFabric, beside its peers where they are installed, and what its functions cost.
// Run it with -h for the scenarios and options; the README says what the figures mean and what they do not.
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
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/bounds"
	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// run measures what the arguments ask for, prints tables to out and what it is doing to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1:], out, progress)
	}
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	d, err := measureAll(ctx, o, progress)
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := d.Write(o.json); err != nil {
			return err
		}
		fmt.Fprintf(progress, "raw numbers in %s\n\n", o.json)
	}
	return d.Print(out)
}

// measureAll runs the scenarios that are asked for.
func measureAll(ctx context.Context, o options, progress io.Writer) (report.Document, error) {
	d := report.Document{Format: report.Format, Began: time.Now(), Machine: report.ThisMachine(),
		Modules: report.Modules(), Settings: o.settings()}
	var systems []driver.System
	for _, name := range o.systems {
		s := known[name](o)
		systems = append(systems, s)
		d.Systems = append(d.Systems, report.System{Name: s.Name(), Version: s.Version()})
	}
	for _, name := range o.scenarios {
		if name == costName {
			fmt.Fprintf(progress, "%s …\n", name)
			r, err := cost.Run(ctx, o.cost())
			if err != nil {
				return d, err
			}
			d.Cost = &r
			continue
		}
		if name == boundsName {
			fmt.Fprintf(progress, "%s …\n", name)
			r, err := bounds.Run(ctx, o.bounds())
			if err != nil {
				return d, err
			}
			d.Bounds = &r
			continue
		}
		sc := scenario.All[slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == name })]
		results, err := scenario.Run(ctx, sc, systems, o.sizes, func(system string, round int) {
			fmt.Fprintf(progress, "%s: %s, round %d of %d …\n", name, system, round+1, o.sizes.Rounds)
		})
		if err != nil {
			return d, err
		}
		d.Results = append(d.Results, results...)
	}
	d.Took = time.Since(d.Began).Seconds()
	return d, nil
}
