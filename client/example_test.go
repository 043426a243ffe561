package client_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

var Index = handler.Define[int, int]("index", flowfabric.Retries(0))

// A handler keeps a summary of how far it got; whoever is interested reads the latest one, at any time.
func ExampleExecution_Summary() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Index,
		func(ctx context.Context, t *handler.Task, documents int) (int, error) {
			if err := t.Summary(ctx, map[string]any{"total": documents, "phase": "reading"}); err != nil {
				return 0, err
			}
			for n := range documents {
				if err := t.Summary(ctx, map[string]any{"done": n + 1}); err != nil {
					return 0, err
				}
			}
			return documents, t.Summary(ctx, map[string]any{"phase": nil}) // deletes it
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })

	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, Index, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = exec.Result(ctx)
	fmt.Println(err)
	summary, err := exec.Summary(ctx) // here of an attempt that has ended, but it need not have
	fmt.Println(string(summary.Document), summary.Version > 0, err)
	// Output:
	// <nil>
	// {"done":1000,"total":1000} true <nil>
}

var Render = handler.Define[int, string]("render", flowfabric.Retries(0))

// A producer submits, follows and waits; a second submit with the same key meets the first.
func Example() {
	const url = "embedded://" // usually from FLOWFABRIC_URL
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Render,
		func(ctx context.Context, t *handler.Task, pages int) (string, error) {
			if err := t.Frame(ctx, "page", "the first of them"); err != nil {
				return "", err
			}
			return fmt.Sprint(pages, " pages"), nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })

	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, Render, 10, flowfabric.IdempotencyKey("order-17"), flowfabric.Priority(5))
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range exec.Tail(ctx) { // live, until the execution has ended
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Kind == stream.TailFrame {
			fmt.Printf("%s: %s\n", event.Frame.Type, event.Frame.Payload)
		}
	}
	fmt.Println(exec.Result(ctx))
	again, err := client.Submit(ctx, c, Render, 10, flowfabric.IdempotencyKey("order-17"))
	fmt.Println(again.Duplicate(), err)
	// Output:
	// page: the first of them
	// 10 pages <nil>
	// true <nil>
}
