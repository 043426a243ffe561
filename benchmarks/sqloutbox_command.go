package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/flowfabric/flowfabric-go/benchmarks/sqloutbox"
)

func measureOutbox(ctx context.Context, args []string, out, progress io.Writer) error {
	var o sqloutbox.Options
	if _, err := command("outbox", "[-server redis-server] [-rounds 5] [-n 20000] [-c 16]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program of the store")
			f.IntVar(&o.Rounds, "rounds", 5, "rounds, of which the medians count")
			f.IntVar(&o.Jobs, "n", 20_000, "transactions of a round")
			f.IntVar(&o.Concurrency, "c", 16, "transactions at once")
		}); err != nil {
		return err
	}
	if o.Rounds < 1 || o.Jobs < 1 || o.Concurrency < 1 || o.Concurrency > 500 {
		return fmt.Errorf("outbox: -rounds %d, -n %d, -c %d: want 1 or more, and at most 500 at once", o.Rounds, o.Jobs,
			o.Concurrency)
	}
	return sqloutbox.Run(ctx, o, out)
}
