//go:build unix

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A worker of [New] handles no signals. Its program ends the context.
func ExampleNew() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal has its usual effect: it ends the process at once

	greet := handler.Define[string, string]("example-greet")
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet}, handler.Bind(greet,
		func(_ context.Context, _ *handler.Task, name string) (string, error) {
			fmt.Println("Hello", name)
			return "", syscall.Kill(os.Getpid(), syscall.SIGTERM) // as Kubernetes and systemd do
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := client.Submit(ctx, c, greet, "Ada"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("drained:", worker.Run(ctx))
	// Output:
	// Hello Ada
	// drained: <nil>
}
