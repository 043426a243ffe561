package flowfabric_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

type Draft struct{ Topic string }
type Article struct{ Text string }

// A definition is shared by producers and workers: name, types, default policy.
var Write = handler.Define[Draft, Article]("write-article",
	handler.Retry(5, time.Second, time.Minute), flowfabric.Timeout(10*time.Minute))

// Writer is a handler with a dependency.
type Writer struct{ llm LLM }

func (w *Writer) Handle(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	// A step runs once: after a crash or a retry its recorded value is used.
	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
		return w.llm.Generate(in.Topic, func(token string) error { return t.Frame(ctx, "token", token) })
	})
	return Article{Text: text}, err // an error is retried; handler.Permanent(err) would not be
}

// LLM stands for a model.
type LLM struct{}

func (LLM) Generate(topic string, emit func(token string) error) (string, error) {
	tokens := []string{"the ", topic, " rise"}
	for _, t := range tokens {
		if err := emit(t); err != nil {
			return "", err
		}
	}
	return strings.Join(tokens, ""), nil
}

func Example() {
	const url = "embedded://" // a development server in this process; redis://host:6379 in production
	ctx, stop := context.WithCancel(context.Background())
	var worker conc.WaitGroup
	defer worker.Wait()
	defer stop()

	// The worker: dependencies come from fx.
	worker.Go(func() {
		err := runtime.Run(ctx, runtime.Config{URL: url, Concurrency: 64, Logger: slog.New(slog.DiscardHandler)},
			runtime.Provide(Write, func(llm LLM) *Writer { return &Writer{llm} }),
			fx.Supply(LLM{}))
		if err != nil {
			fmt.Println("worker:", err)
		}
	})

	// The producer, here or anywhere else.
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, Write, Draft{"tides"}, flowfabric.IdempotencyKey("tides-1"),
		flowfabric.Priority(5))
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range exec.Tail(ctx) { // live, resumable at any event
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Kind == stream.TailFrame {
			fmt.Printf("%q\n", event.Frame.Payload)
		}
	}
	article, err := exec.Result(ctx) // typed
	fmt.Println(article.Text, err)
	// Output:
	// "the "
	// "tides"
	// " rise"
	// the tides rise <nil>
}

// What is submitted may be read from a file or a request: its members are those of the HTTP API.
func ExampleStartWith() {
	var s flowfabric.Start
	err := json.Unmarshal([]byte(`{"lane": "batch", "delay_ms": 60000, "retries": 0, "tags": {"app.team": "data"},
		"limits": [{"key": "tenant-7", "concurrency": 2}]}`), &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	report := handler.Define[string, string]("report", flowfabric.Retries(5))
	f := flow.New("monthly")
	flow.Add(f, "report", report, "June", flowfabric.StartWith(s)) // client.Submit takes it as well
	fmt.Println(s.Lane, s.Delay, *s.Retries, s.Gates(), f.Err())
	// Output: batch 1m0s 0 [limit tenant-7 (2 at once)] <nil>
}
