package handler_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// serve runs a worker until stop is called, and connects a client.
func serve(bindings ...handler.Binding) (ctx context.Context, c *client.Client, stop func()) {
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet}, bindings...)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	if c, err = client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet}); err != nil {
		panic(err)
	}
	return ctx, c, func() { c.Close(); cancel(); running.Wait() }
}

// A handler waits for an operator, who needs no token.
func ExampleAwait() {
	publish := handler.Define[string, string]("publish")
	ctx, c, stop := serve(handler.Bind(publish,
		func(ctx context.Context, t *handler.Task, title string) (string, error) {
			ok, err := handler.Await[bool](ctx, t, "editor", suspend.Within(48*time.Hour),
				suspend.Because(suspend.ReasonApproval))
			if err != nil {
				return "", err // the first run ends here, and holds nothing while it waits
			}
			return fmt.Sprintf("%s: published %t", title, ok), nil
		}))
	defer stop()
	exec, err := client.Submit(ctx, c, publish, "Tides")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := waitFor(ctx, exec); err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Execution(exec.ID()).Approve(ctx, "editor", true, flowfabric.By("anna"))
	fmt.Println("approved:", err)
	fmt.Println(exec.Result(ctx))
	// Output:
	// approved: <nil>
	// Tides: published true <nil>
}

// waitFor returns when an execution is suspended.
func waitFor[T any](ctx context.Context, exec *client.Execution[T]) error {
	for {
		s, err := exec.Get(ctx)
		if err != nil || s.State.Public == flowfabric.Suspended {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// A token is handed out before the handler waits, once, and whoever has it may answer, also at once.
func ExampleTask_Pending() {
	type receipt struct{ Cents int }
	charge := handler.Define[int, string]("charge")
	sent := make(chan string, 1) // to the payment provider
	ctx, c, stop := serve(handler.Bind(charge, func(ctx context.Context, t *handler.Task, cents int) (string, error) {
		token, err := t.Pending(ctx, "payment", time.Hour)
		if err != nil {
			return "", err
		}
		if _, err := handler.Step(ctx, t, "request",
			func(context.Context) (bool, error) { sent <- token.Reveal(); return true, nil }); err != nil {
			return "", err
		}
		paid, err := handler.Await[receipt](ctx, t, "payment", suspend.Named("paid"), suspend.Within(time.Hour),
			suspend.OnTimeout(suspend.Resume))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("paid %d cents", paid.Cents), nil
	}))
	defer stop()
	exec, err := client.Submit(ctx, c, charge, 500)
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := suspend.ParseToken(<-sent)
	fmt.Println(err)
	_, err = c.Signal(ctx, token, receipt{500}, client.SignalName("paid"), flowfabric.IdempotencyKey("payment-77"))
	fmt.Println(err)
	fmt.Println(exec.Result(ctx))
	// Output:
	// <nil>
	// <nil>
	// paid 500 cents <nil>
}
