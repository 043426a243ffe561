// Command polyglot is the Go part of an example in three languages: a store, the HTTP API, a producer, and a worker of
// the kind "publish". worker.py does the research, and page/page.ts shows it in a browser. See README.md.
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
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Topic is the input of a research.
type Topic struct {
	Question string `json:"question"`
}

// Report is its result. PublishedBy is empty if it was not published.
type Report struct {
	Answer      string `json:"answer"`
	PublishedBy string `json:"published_by"`
}

var (
	research = handler.Define[Topic, Report]("research") // worker.py has its handler
	publish  = handler.Define[string, bool]("publish")   // worker.py starts it as a child
)

const buildPage = `  npm --prefix clients/typescript ci
  clients/typescript/node_modules/.bin/esbuild examples/polyglot/page/page.ts \
      --bundle --format=esm --outfile=examples/polyglot/page/page.js`

type options struct{ url, page, question string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{url: cmp.Or(os.Getenv("FLOWFABRIC_URL"), embedded.URL)}
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` of the page and the API, open to all who reach it")
	flag.StringVar(&o.page, "page", "examples/polyglot/page", "`folder` of the page")
	flag.StringVar(&o.question, "question", "Why do cats purr?", "what to research")
	flag.Parse()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		err = run(ctx, o, listener, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "polyglot:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. Meanwhile it asks the question and prints the answer.
func run(ctx context.Context, o options, listener net.Listener, out io.Writer) error {
	defer listener.Close()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: o.url, Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	worker, err := runtime.New(runtime.Config{URL: o.url, Logger: quiet}, // it also keeps time: leases, timeouts
		handler.Bind(publish, func(_ context.Context, t *handler.Task, answer string) (bool, error) {
			_, err := fmt.Fprintf(out, "\n\nPublished: %d bytes.", len(answer))
			return err == nil, err
		}))
	if err != nil {
		return err
	}
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: everybody, Logger: quiet})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.Handle("/", http.FileServer(http.Dir(o.page)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ctx, cancel := context.WithCancelCause(ctx) // what fails beside the question ends all
	var tasks conc.WaitGroup
	defer tasks.Wait()
	defer cancel(nil)
	tasks.Go(func() { cancel(worker.Run(ctx)) })
	tasks.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	})
	defer api.Close()
	defer server.Close()

	fmt.Fprintf(out, "Open http://%s/ in a browser.\n", listener.Addr())
	if _, err := os.Stat(filepath.Join(o.page, "page.js")); err != nil {
		fmt.Fprintf(out, "The page is not built yet. Build it in the root of the repository:\n%s\n", buildPage)
	}
	if err := ask(ctx, c, o.question, out); err != nil {
		return err
	}
	<-ctx.Done() // the page still shows the answer
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// everybody who reaches the loopback address may do everything here. A service checks in this function who asks.
func everybody(*http.Request) (httpapi.Principal, error) {
	return httpapi.Principal{Name: "local", Role: httpapi.Admin}, nil
}

// ask submits the question, prints what is written, and then the result. The same question twice is one execution, so
// a second run of this program on the same store follows the first one's.
func ask(ctx context.Context, c *client.Client, question string, out io.Writer) error {
	x, err := client.Submit(ctx, c, research, Topic{Question: question}, flowfabric.IdempotencyKey(question))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\nWaiting for worker.py.\n\n", question)
	var shown stream.Transcript
	for event, err := range x.Tail(ctx, client.WithoutChildren()) {
		if err != nil {
			return stopped(ctx, err)
		}
		switch dropped := shown.Add(event); {
		case dropped: // a worker died; the next one repeats what was not recorded
			fmt.Fprintf(out, "\n[attempt %d goes on after what was recorded]\n%s", event.Attempt, shown.Text())
		case event.Kind == stream.TailFrame:
			fmt.Fprintf(out, "%s", event.Frame.Payload)
		case event.Kind == stream.TailSuspended && event.Suspension.Question != nil:
			fmt.Fprintf(out, "\n%s Answer in the page.", event.Suspension.Question.Title)
		}
	}
	report, err := x.Result(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	_, err = fmt.Fprintf(out, "\nPublished by: %s\n", cmp.Or(report.PublishedBy, "nobody"))
	return err
}

// stopped is no error if ctx was ended by a signal.
func stopped(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return err
}
