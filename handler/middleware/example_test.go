package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/handler/middleware"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var Mail = handler.Define[string, string]("mail", handler.Retry(5, 0, 0))

// A worker that starts at most 100 mails a second, and none for a while once two in a row have failed.
func Example() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	var calls atomic.Int64
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet, Middleware: []handler.Middleware{
		middleware.CircuitBreaker(middleware.Breaker{Failures: 2, Open: 20 * time.Millisecond, Logger: quiet,
			OnState: func(kind, state string) { fmt.Println(kind, state) }}),
		middleware.RateLimit(middleware.Rate{Starts: 100}),
	}}, handler.Bind(Mail, func(_ context.Context, _ *handler.Task, to string) (string, error) {
		if calls.Add(1) <= 2 {
			return "", errors.New("connection refused")
		}
		return "mailed to " + to, nil
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
	exec, err := client.Submit(ctx, c, Mail, "ada@example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(exec.Result(ctx))
	// Output:
	// mail open
	// mail half-open
	// mail closed
	// mailed to ada@example.com <nil>
}
