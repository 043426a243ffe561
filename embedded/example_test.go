package embedded_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
)

// A server of one's own in this process. Programs that share one need no Start: they say embedded:// as their URL.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	c, err := client.Connect(ctx, client.Config{URL: server.URL(), Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, handler.Define[string, string]("greet"), "Ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := exec.Get(ctx)
	fmt.Println(x.State.Public, err) // until a worker comes
	// Output: waiting <nil>
}
