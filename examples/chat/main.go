// Command chat is a conversation with an agent in the browser: an answer streams in token by token, tools run, a
// person approves what is published, a budget stops it, and a worker that is killed in the middle of a word costs
// nothing that was recorded. It needs nothing installed and no key; see README.md.
//
//	go run -tags no_openai,no_anthropic .
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// options are the flags and what the environment adds to them.
type options struct {
	url, keys, addr string
	limit           int64
	pace, lease     time.Duration
	worker, verbose bool
	name, published string
	react           string // the folder of a built page of examples/chat-react
	onlyWeb         bool
	log             *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, env, stderr)
	if err != nil {
		return err
	}
	if o.worker {
		return runWorker(ctx, o, stdin)
	}
	return serve(ctx, o, env, stdout)
}

func parse(args []string, env func(string) string, stderr io.Writer) (o options, err error) {
	o.log, o.keys = slog.New(slog.DiscardHandler), env(suspend.EnvTokenKeys)
	f := flag.NewFlagSet("chat", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.addr, "addr", "127.0.0.1:7790", "where to listen: a loopback address, port 0 takes a free one")
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.Int64Var(&o.limit, "limit", 8000, "tokens that a conversation may use, and how many more one click allows")
	f.DurationVar(&o.pace, "pace", 70*time.Millisecond, "how long the built-in model takes for a word")
	f.DurationVar(&o.lease, "lease", 3*time.Second, "how long the work of a dead worker stays with it")
	f.BoolVar(&o.verbose, "v", false, "log to stderr")
	f.StringVar(&o.react, "react", "", "serve the built page of examples/chat-react from this folder, at /react/")
	f.BoolVar(&o.onlyWeb, "only-web", false, "start no worker process: they run elsewhere, on the same -url")
	f.BoolVar(&o.worker, "worker", false, "internal: be a worker process until stdin closes")
	f.StringVar(&o.name, "name", "", "internal: instance of the worker process")
	f.StringVar(&o.published, "published", "",
		"folder of what is published and of the files of messages, which workers elsewhere need, too (default a new one)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.url = cmp.Or(o.url, env("FLOWFABRIC_URL"), embedded.URL)
	if o.verbose {
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	host, _, bad := net.SplitHostPort(o.addr)
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q: there are flags only", f.Arg(0))
	case bad != nil || host != "localhost" && !net.ParseIP(host).IsLoopback():
		return o, fmt.Errorf(
			"-addr %s: want a loopback address and a port, for everybody who reaches the page may use it", o.addr)
	case o.onlyWeb && o.url == embedded.URL:
		return o, fmt.Errorf("-only-web: no worker elsewhere reaches the embedded store; give -url")
	case o.limit < 1:
		return o, fmt.Errorf("-limit %d: want at least 1", o.limit)
	case o.keys == "" && o.url != embedded.URL:
		return o, fmt.Errorf(
			"%[1]s is not set, and approvals need a key to be signed with; for a try:\n  export %[1]s=demo:$(openssl rand -hex 32)",
			suspend.EnvTokenKeys)
	}
	return o, nil
}
