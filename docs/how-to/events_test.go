package howto_test

import (
	"context"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// OrderChange is what happened to an order.
type OrderChange struct {
	ID    string `json:"id"`
	Order struct {
		ID    int    `json:"id"`
		State string `json:"state"`
	} `json:"order"`
}

var Ship = handler.Define[OrderChange, string]("ship")

// listen starts a shipment for each paid order. It may run at every start of every process.
func listen(ctx context.Context, c *client.Client) error {
	_, err := c.PutTrigger(ctx, client.Trigger{Name: "ship-paid", Subject: "order.changed",
		Where: map[string]any{"order.state": "paid"}, Start: flowfabric.Start{Kind: "ship", Lane: "default"}})
	return err
}

// changed tells that an order has changed. The id makes a repeat harmless.
func changed(ctx context.Context, c *client.Client, change OrderChange) error {
	_, err := c.Publish(ctx, client.Event{Subject: "order.changed", ID: change.ID, Data: change})
	return err
}

func TestEventsStartWork(t *testing.T) {
	shipped := make(chan OrderChange, 10)
	tagged := make(chan map[string]string, 10)
	ctx, c := start(t, runtime.Config{}, handler.Bind(Ship,
		func(_ context.Context, task *handler.Task, in OrderChange) (string, error) {
			shipped <- in
			tagged <- task.Tags()
			return "", nil
		}))
	must(t, listen(ctx, c))
	must(t, listen(ctx, c))
	var change OrderChange
	for i, state := range []string{"open", "paid", "paid", "sent"} {
		change.ID, change.Order.ID, change.Order.State = state, 7, state
		must(t, changed(ctx, c, change))
		if i > 0 {
			continue
		}
		if p, err := c.Publish(ctx, client.Event{Subject: "order.changed", ID: "open", Data: change}); err != nil ||
			!p.Duplicate || p.Starts != 0 {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if in, tags := <-shipped, <-tagged; in.Order.State != "paid" || in.Order.ID != 7 || tags["event.id"] != "paid" ||
		tags["event.subject"] != "order.changed" {
		t.Errorf("%+v %v", in, tags)
	}
	removed, err := c.RemoveTrigger(ctx, client.Trigger{Name: "ship-paid", Subject: "order.changed"})
	if err != nil || !removed || len(shipped) != 0 {
		t.Errorf("%t, %v, and %d more shipped", removed, err, len(shipped))
	}
}
