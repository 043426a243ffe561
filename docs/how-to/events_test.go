package howto_test

import (
	"context"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
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

// Invoice is sent to a customer, and Payment is what comes back.
type Invoice struct{ ID string }

type Payment struct {
	Invoice string `json:"invoice"`
	Amount  int    `json:"amount"`
}

var sent = make(chan Invoice, 10)

func send(_ context.Context, in Invoice) error {
	sent <- in
	return nil
}

// invoice sends an invoice and waits until it is paid.
func invoice(ctx context.Context, t *handler.Task, in Invoice) (Payment, error) {
	err := t.Expect(ctx, "paid", "invoice.paid", map[string]any{"invoice": in.ID})
	if err != nil {
		return Payment{}, err
	}
	if _, err = handler.Step(ctx, t, "send", func(ctx context.Context) (bool, error) {
		return true, send(ctx, in)
	}); err != nil {
		return Payment{}, err
	}
	return handler.Await[Payment](ctx, t, "paid", suspend.Within(30*24*time.Hour))
}

func TestEventsResumeWork(t *testing.T) {
	Bill := handler.Define[Invoice, Payment]("bill")
	ctx, c := start(t, runtime.Config{}, handler.Bind(Bill, invoice))
	exec, err := client.Submit(ctx, c, Bill, Invoice{ID: "i7"})
	must(t, err)
	<-sent
	for id, resumes := range map[string]int{"i8": 0, "i7": 1} {
		p, err := c.Publish(ctx, client.Event{Subject: "invoice.paid", Data: Payment{Invoice: id, Amount: 12}})
		if err != nil || p.Resumes != resumes || p.Starts != 0 {
			t.Errorf("%s: %+v, %v", id, p, err)
		}
	}
	if paid, err := exec.Result(ctx); err != nil || paid != (Payment{"i7", 12}) || len(sent) != 0 {
		t.Errorf("%+v, %v, %d sent again", paid, err, len(sent))
	}
	p, err := c.Publish(ctx, client.Event{Subject: "invoice.paid", Data: Payment{Invoice: "i7"}})
	if err != nil || p.Resumes != 0 {
		t.Errorf("it waits no more: %+v, %v", p, err)
	}
}

func TestHandlersThatExpectEvents(t *testing.T) {
	Bill := handler.Define[Invoice, Payment]("bill")
	r := fftest.Run(t, Bill, fftest.Answered(invoice, fftest.Publish(client.Event{Subject: "invoice.paid",
		Data: Payment{Invoice: "i7", Amount: 12}}).After(24*time.Hour)), Invoice{ID: "i7"})
	r.WantResult(Payment{Invoice: "i7", Amount: 12})
	r.Want(fftest.Want{Steps: []string{"send"}, Waits: []string{"paid: signal"}, Least: 24 * time.Hour})
	<-sent
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
