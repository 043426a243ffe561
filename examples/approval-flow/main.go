// Command approval-flow shows a pipeline that waits for people: it builds a release, mails two approvers a link each,
// and holds nothing at all until both have approved, one has refused, or time is up. It needs nothing installed; see
// README.md.
//
//	go run ./examples/approval-flow           # you click
//	go run ./examples/approval-flow -auto     # two people click by themselves
//	go run ./examples/approval-flow -crash    # the same, and the worker process is killed twice
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
	"time"

	"go.uber.org/fx"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// approvers is the directory of who approves releases.
var approvers = []string{"ivy", "raj"}

// options are the flags and what the environment adds to them.
type options struct {
	url, keys, version          string
	within, pace, lease         time.Duration
	auto, refuse, crash, worker bool
	name                        string
	dieAfter                    int
	log                         *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "approval-flow:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, env, stderr)
	if err != nil {
		return err
	}
	if o.worker {
		return runWorker(ctx, o, stdin, stdout)
	}
	return demo(ctx, o, stdout)
}

func parse(args []string, env func(string) string, stderr io.Writer) (o options, err error) {
	verbose := false
	o.log, o.keys = slog.New(slog.DiscardHandler), env(suspend.EnvTokenKeys)
	f := flag.NewFlagSet("approval-flow", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.BoolVar(&o.auto, "auto", false, "two people approve by themselves after a moment")
	f.BoolVar(&o.refuse, "refuse", false, "like -auto, but one of them refuses")
	f.BoolVar(&o.crash, "crash", false, "like -auto, and the worker process is killed twice on the way")
	f.DurationVar(&o.within, "within", 10*time.Minute, "how long the approvers have")
	f.StringVar(&o.version, "version", "2.4.0", "what to release")
	f.DurationVar(&o.pace, "pace", 300*time.Millisecond, "how long each line of the build takes")
	f.DurationVar(&o.lease, "lease", 2*time.Second, "with -crash, how long the work of a dead worker stays with it")
	f.BoolVar(&verbose, "v", false, "log to stderr")
	f.BoolVar(&o.worker, "worker", false, "internal: be a worker process until stdin closes")
	f.StringVar(&o.name, "name", "", "internal: instance of the worker process")
	f.IntVar(&o.dieAfter, "die-after", 0, "internal: steps recorded before the worker process kills itself")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.url = cmp.Or(o.url, env("FLOWFABRIC_URL"), embedded.URL)
	o.auto = o.auto || o.refuse || o.crash
	if verbose {
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: there are flags only", f.Arg(0))
	case o.within < time.Millisecond || o.within > 10*365*24*time.Hour:
		return o, fmt.Errorf("-within %s: want 1ms..10 years", o.within)
	case o.keys == "" && o.url != embedded.URL:
		return o, fmt.Errorf(
			"%[1]s is not set, and links need a key to be signed with; for a try:\n  export %[1]s=demo:$(openssl rand -hex 32)",
			suspend.EnvTokenKeys)
	}
	return o, nil
}

// serve is a worker: it runs until ctx ends.
func serve(ctx context.Context, o options, cfg runtime.Config,
	did func(effect string, token suspend.Token) error) error {
	cfg.URL, cfg.TokenKeys, cfg.Logger, cfg.DrainTimeout = o.url, o.keys, o.log, time.Second
	return runtime.Run(ctx, cfg, runtime.Provide(Release, NewPipeline), fx.Supply(&Tools{Pace: o.pace, Did: did}))
}
