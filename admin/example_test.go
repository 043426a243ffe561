package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var Render = handler.Define[int, string]("render", flowfabric.Retries(0))

// What an operator does with an execution: look, correct, run it again, read what happened.
func Example() {
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
	ctx, stop := context.WithCancel(context.Background())
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
	a := admin.New(c)
	exec, err := client.Submit(ctx, c, Render, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = exec.Result(ctx)
	fmt.Println("failed:", errors.Is(err, flowfabric.ErrFailed))
	seen, err := exec.Get(ctx)
	fmt.Printf("got to %d %%: %s (%v)\n", *seen.Progress.Percent, seen.Progress.Message, err)

	err = a.SetTags(ctx, exec.ID(), map[string]string{"print.ink": "refilled"}, []string{"print.waiting"})
	fmt.Println("tagged:", err)
	ink.Store(true)
	err = a.Replay(ctx, exec.ID(), admin.Replay{}, flowfabric.By("anna"), flowfabric.Reason("ink refilled"))
	fmt.Println("replayed:", err)
	text, err := exec.Result(ctx) // of the replay
	fmt.Println(text, err)

	events, err := a.History(ctx, exec.ID())
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
	// - tagged "print-shop" ""
	// - replayed "anna" "ink refilled"
	// - claimed "" ""
	// - ended "" ""
	// <nil>
}
