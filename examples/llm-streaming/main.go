// Command llm-streaming shows token streaming: workers answer several prompts at once and put out every token as a
// frame while a producer tails all answers live. It needs nothing installed and ends by itself; see README.md.
//
//	go run ./examples/llm-streaming            # worker and producer in this process
//	go run ./examples/llm-streaming -crash     # worker processes, one of them killed halfway
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
)

var defaultPrompts = []string{"The White Rabbit", "I went to the woods", "Call me Ishmael", "It was the best of times"}

// options are the flags and what the environment adds to them.
type options struct {
	url, name              string
	prompts                []string
	tokens, slots          int
	pace                   time.Duration
	crash, worker, verbose bool
	env                    func(string) string
	log                    *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "llm-streaming:", err)
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
	return demo(ctx, o, stdout)
}

func parse(args []string, env func(string) string, stderr io.Writer) (o options, err error) {
	o.env, o.log = env, slog.New(slog.DiscardHandler)
	f := flag.NewFlagSet("llm-streaming", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.url, "url", "",
		"server, for example redis://localhost:6379 (default FLOWFABRIC_URL, or else embedded://)")
	f.BoolVar(&o.crash, "crash", false, "run workers as processes and kill one of them halfway")
	f.IntVar(&o.tokens, "tokens", 150, "length of an answer")
	f.DurationVar(&o.pace, "pace", 33*time.Millisecond, "mean pause between two tokens of the built-in model")
	f.BoolVar(&o.verbose, "v", false, "log to stderr, without the live view")
	f.Func("prompts", "a prompt; may be repeated, and prompts may also be arguments", func(p string) error {
		o.prompts = append(o.prompts, p)
		return nil
	})
	f.BoolVar(&o.worker, "worker", false, "internal: be a worker process until stdin closes")
	f.StringVar(&o.name, "name", "", "internal: instance of the worker process")
	f.IntVar(&o.slots, "slots", 0, "internal: concurrency of the worker process")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.url = cmp.Or(o.url, env("FLOWFABRIC_URL"), embedded.URL)
	if o.verbose {
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	if o.prompts = append(o.prompts, f.Args()...); len(o.prompts) == 0 {
		o.prompts = defaultPrompts
	}
	if o.tokens < 1 || o.tokens > maxTokens {
		return o, fmt.Errorf("-tokens %d: want 1..%d", o.tokens, maxTokens)
	}
	return o, nil
}

// newModel takes the API the environment names, and the built-in model otherwise.
func newModel(o options) (LLM, error) {
	if base, key := o.env("OPENAI_BASE_URL"), o.env("OPENAI_API_KEY"); base != "" && key != "" {
		return NewOpenAI(base, key, o.env("OPENAI_MODEL")), nil
	}
	return NewMarkov(o.pace)
}

// serve is a worker: it runs until ctx ends.
func serve(ctx context.Context, o options, cfg runtime.Config) error {
	cfg.URL, cfg.Logger, cfg.DrainTimeout = o.url, o.log, cmp.Or(cfg.DrainTimeout, 3*time.Second)
	return runtime.Run(ctx, cfg, runtime.Provide(Generate, NewGenerator), fx.Supply(o), fx.Provide(newModel))
}
