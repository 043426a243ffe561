// Command map-reduce shows a flow that needs most of what it asks for: 50 nodes count the words of a part of some old
// books each, and one that adds them up runs as soon as 48 are counted; one of them fails, one hangs, and some are
// retried. It needs nothing installed and ends by itself; see README.md.
//
//	go run ./examples/map-reduce
//	go run ./examples/map-reduce -letters 8 -text
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
	url           string
	pace          time.Duration
	top, letters  int
	text, mermaid bool
	log           *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "map-reduce:", err)
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
	f := flag.NewFlagSet("map-reduce", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.IntVar(&o.top, "top", 10, "how many words to show")
	f.IntVar(&o.letters, "letters", 5, "how many letters they have at least")
	f.DurationVar(&o.pace, "pace", 300*time.Millisecond, "how long the tokenizer takes for a part")
	f.BoolVar(&o.text, "text", false, "print the flow with all of its nodes too")
	f.BoolVar(&o.mermaid, "mermaid", false, "print the flow as a Mermaid diagram too")
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
		return o, fmt.Errorf("%q: there are flags only", f.Arg(0))
	case o.top < 1 || o.letters < 1:
		return o, fmt.Errorf("-top %d -letters %d: want at least 1", o.top, o.letters)
	}
	return o, nil
}
