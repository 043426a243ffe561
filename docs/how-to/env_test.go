// Package howto_test is the code of the pages beside it.
package howto_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var quiet = slog.New(slog.DiscardHandler)

// start runs a worker on the embedded server and connects a client, until the test ends.
func start(t *testing.T, cfg runtime.Config, bindings ...handler.Binding) (context.Context, *client.Client) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	cfg.URL, cfg.Logger = "embedded://", quiet
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: cfg.URL,
		Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var running conc.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		c.Close()
	})
	if len(bindings) == 0 {
		return ctx, c
	}
	worker, err := runtime.New(cfg, bindings...)
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = worker.Run(ctx) })
	return ctx, c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Draft and Article are what most pages submit and get.
type Draft struct{ Topic string }
type Article struct{ Text string }
