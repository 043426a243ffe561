package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var Train = handler.Define[string, string]("train")

// A handler whose execution is taken away hears of it: its context ends and says why. The work is queued again, and
// the next attempt does it.
func Example() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	began := make(chan struct{}, 1)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Train,
		func(ctx context.Context, t *handler.Task, model string) (string, error) {
			if t.Attempt() > 1 {
				return model + " is trained", nil
			}
			began <- struct{}{}
			<-ctx.Done()
			cause := context.Cause(ctx)
			fmt.Println("stopped:", errors.Is(cause, flowfabric.ErrLeaseLost), "holds it:", t.LeaseHealthy())
			return "", cause
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
	exec, err := client.Submit(ctx, c, Train, "a model")
	if err != nil {
		fmt.Println(err)
		return
	}
	<-began
	if err := admin.New(c).Revoke(ctx, exec.ID(), flowfabric.Reason("the machine is needed")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(exec.Result(ctx))
	// Output:
	// stopped: true holds it: false
	// a model is trained <nil>
}
