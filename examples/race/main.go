// Command race shows a flow that needs one answer of several: three providers stream an answer at once, the first
// whole one is published, and the others are cancelled in the middle of theirs. It needs nothing installed and ends
// by itself; see README.md.
//
//	go run ./examples/race
//	go run ./examples/race -mermaid "What will the world come to?"
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
	"strings"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric-go/embedded"
)

// options are the flags and what the environment adds to them.
type options struct {
	url, question string
	tokens        int
	pace          time.Duration
	mermaid       bool
	log           *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "race:", err)
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
	f := flag.NewFlagSet("race", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.IntVar(&o.tokens, "tokens", 60, fmt.Sprintf("length of an answer, 1..%d", maxTokens))
	f.DurationVar(&o.pace, "pace", 40*time.Millisecond, "how long the quickest provider takes for a token")
	f.BoolVar(&o.mermaid, "mermaid", false, "print the flow as a Mermaid diagram too")
	f.BoolVar(&verbose, "v", false, "log to stderr")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.url = cmp.Or(o.url, env("FLOWFABRIC_URL"), embedded.URL)
	o.question = cmp.Or(strings.Join(f.Args(), " "), "How should a man live?")
	if verbose {
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	if o.tokens < 1 || o.tokens > maxTokens {
		return o, fmt.Errorf("-tokens %d: want 1..%d", o.tokens, maxTokens)
	}
	return o, nil
}
