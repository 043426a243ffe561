// Command governor shows how a fleet of workers shares the limits of a model service: three tenants flood it. Without a
// gate the service refuses a third of their calls. With one it refuses none, nearly all of what it allows is used, and
// the tenants share it by weight. Then it is overloaded, and everybody waits for as long as it says. It needs nothing
// installed and ends by itself; see README.md.
//
//	go run ./examples/governor
//	go run ./examples/governor -seconds 20 -rate 40
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/flowfabric/flowfabric-go/embedded"
)

// options are the flags and what the environment adds to them.
type options struct {
	url     string
	seconds int // that the second part takes
	rate    int // calls in a second that the service allows
	log     *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "governor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	o, err := parse(args, env, stderr)
	if err != nil {
		return err
	}
	return demo(ctx, o, stdout)
}

func parse(args []string, env func(string) string, stderr io.Writer) (o options, err error) {
	verbose := false
	o.log = slog.New(slog.DiscardHandler)
	f := flag.NewFlagSet("governor", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.IntVar(&o.seconds, "seconds", 12, "how long the tenants flood the service under its gate, 6..50")
	f.IntVar(&o.rate, "rate", 24, "calls in a second that the service allows, 6..60")
	f.BoolVar(&verbose, "v", false, "log to stderr")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.url = cmp.Or(o.url, env("FLOWFABRIC_URL"), embedded.URL)
	if verbose {
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: there are no arguments but flags", f.Arg(0))
	case o.seconds < 6 || o.seconds > 50:
		return o, fmt.Errorf("-seconds %d: want 6..50", o.seconds)
	case o.rate < 6 || o.rate > 60:
		return o, fmt.Errorf("-rate %d: want 6..60", o.rate)
	}
	return o, nil
}
