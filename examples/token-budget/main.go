// Command token-budget shows budgets: two tenants share a fleet of workers and nothing else. Each may use so many
// tokens. Every call of the model is reserved before it is made and settled after it. One tenant is stopped in the
// middle of an answer, before the call that does not fit; the other does not notice. What waits holds nothing, and once
// an operator raises the limit it goes on where it was. It needs nothing installed and ends by itself; see README.md.
//
//	go run ./examples/token-budget
//	go run ./examples/token-budget -limit 60 -pace 10ms
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

	"github.com/flowfabric/flowfabric-go/embedded"
)

// options are the flags and what the environment adds to them.
type options struct {
	url    string
	tokens int   // length of an answer
	limit  int64 // of the tenant that will be stopped
	pace   time.Duration
	log    *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "token-budget:", err)
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
	f := flag.NewFlagSet("token-budget", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.IntVar(&o.tokens, "tokens", 80, fmt.Sprintf("length of an answer, %d..%d", perCall+1, maxTokens))
	f.Int64Var(&o.limit, "limit", 45,
		"tokens that the tenant acme may use: a call of the model at least, fewer than an answer has")
	f.DurationVar(&o.pace, "pace", 20*time.Millisecond, "how long the model takes for a token")
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
	case o.tokens <= perCall || o.tokens > maxTokens:
		return o, fmt.Errorf("-tokens %d: want %d..%d", o.tokens, perCall+1, maxTokens)
	case o.limit < perCall || o.limit >= int64(o.tokens):
		return o, fmt.Errorf("-limit %d: want %d..%d, so that there is something to see", o.limit, perCall,
			o.tokens-1)
	}
	return o, nil
}
