package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The worker and the producer of the skill do what it says, on a server of this test.
func TestRun(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	t.Setenv("FLOWFABRIC_TOKEN_KEYS", "k1:"+strings.Repeat("07", 32))
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	defer server.Close()
	c, err := client.Connect(ctx, client.Config{URL: server.URL(), Logger: quiet})
	must.No(t, err)
	defer c.Close()
	working, stop := context.WithCancel(ctx)
	var worker, producer conc.WaitGroup
	defer worker.Wait()
	defer stop()
	worker.Go(func() {
		if err := work(working, server.URL()); err != nil {
			t.Error(err)
		}
	})
	order := Order{Item: "coffee", Cents: 500}
	producer.Go(func() {
		if err := sell(ctx, server.URL(), order); err != nil {
			t.Error(err)
		}
	})
	// The key leads to the execution of the producer, or the producer to this one.
	exec, err := client.Submit(ctx, c, Sell, order, flowfabric.IdempotencyKey("sell coffee"))
	must.No(t, err)
	for event, err := range exec.Tail(ctx) {
		must.No(t, err)
		if event.Suspension == nil || !event.Suspension.ClosedAt.IsZero() {
			continue
		}
		_, err := c.Execution(exec.ID()).Approve(ctx, "approval", suspend.Answer{Choice: "approve"},
			flowfabric.By("ada"))
		must.No(t, err)
	}
	if receipt, err := exec.Result(ctx); err != nil || receipt != (Receipt{"paid 500", "ada"}) {
		t.Errorf("%+v, %v", receipt, err)
	}
	producer.Wait()
}
