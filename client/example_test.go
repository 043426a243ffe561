package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var Render = handler.Define[int, string]("render", handler.NoRetry())

// What an operator does with an execution: look, mend, run it again, read what happened.
func Example_operating() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	var ink atomic.Bool
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Render,
		func(ctx context.Context, t *handler.Task, pages int) (string, error) {
			if err := t.Progress(ctx, 40, "page 4 of 10"); err != nil {
				return "", err
			}
			if !ink.Load() {
				return "", errors.New("no ink")
			}
			return fmt.Sprint(pages, " pages"), t.Progress(ctx, 100, "")
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })

	c, err := client.Connect(ctx, client.Config{URL: url, Creator: "print-shop", Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, Render, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = exec.Result(ctx)
	fmt.Println("failed:", errors.Is(err, flowfabric.ErrFailed))
	seen, err := exec.Get(ctx)
	fmt.Printf("got to %d %%: %s (%v)\n", seen.Progress.Percent, seen.Progress.Message, err)

	err = exec.SetTags(ctx, map[string]string{"print.ink": "refilled"}, "print.waiting")
	fmt.Println("tagged:", err)
	ink.Store(true)
	err = exec.Replay(ctx, client.By("anna"), client.Reason("ink refilled"))
	fmt.Println("replayed:", err)
	text, err := exec.Result(ctx) // of the replay
	fmt.Println(text, err)

	events, err := exec.History(ctx)
	for _, e := range events { // e prints as one line: time, kind, attempt, worker, details
		fmt.Printf("- %s %q %q\n", e.Kind, e.By, e.Reason)
	}
	fmt.Println(err)
	// Output:
	// failed: true
	// got to 40 %: page 4 of 10 (<nil>)
	// tagged: <nil>
	// replayed: <nil>
	// 10 pages <nil>
	// - created "print-shop" ""
	// - claimed "" ""
	// - attempt_ended "" "no ink"
	// - replayed "anna" "ink refilled"
	// - claimed "" ""
	// - ended "" ""
	// <nil>
}

var Index = handler.Define[int, int]("index", handler.NoRetry())

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
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
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
