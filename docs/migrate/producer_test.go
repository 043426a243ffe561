package migrate_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Submitted is what was submitted of a kind, for the test of a producer.
func Submitted[In, Out any](ctx context.Context, c *client.Client,
	def *handler.Definition[In, Out]) (inputs []In, err error) {
	for x, err := range admin.New(c).List(ctx, admin.Filter{Kind: def.Kind()}) {
		if err != nil {
			return nil, err
		}
		raw, err := c.Execution(x.ID).Input(ctx)
		if err != nil {
			return nil, err
		}
		var in In
		if err := def.Codec().Decode(raw, &in); err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

func TestProducer(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	// no worker
	c, err := client.Connect(t.Context(), client.Config{URL: "embedded://", Namespace: t.Name(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := SubmitInvoice(t.Context(), c, Invoice{17, "anna@example.com"}); err != nil { // what is tested
		t.Fatal(err)
	}
	got, err := Submitted(t.Context(), c, SendInvoice)
	if want := []Invoice{{17, "anna@example.com"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("submitted %v, %v", got, err)
	}
}

// PayAndSend charges, and sends the invoice once that has succeeded.
func PayAndSend(ctx context.Context, c *client.Client, in Invoice) (*client.Flow, error) {
	f := flow.New("order")
	paid := flow.Add(f, "pay", Charge, in.To, flowfabric.Retries(10))
	flow.Add(f, "send", SendInvoice, in, flow.After(paid))
	return client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey(fmt.Sprintf("order-%d", in.Number)))
}

func TestPayAndSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		mailer := &Mailer{Send: func(context.Context, string,
			Invoice) (string, error) {
			order = append(order, "send")
			return "m", nil
		}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(SendInvoice, mailer.Handle),
			handler.Bind(Charge, func(context.Context, *handler.Task,
				string) (int, error) {
				order = append(order, "pay")
				return 1, nil
			}))
		fl, err := PayAndSend(t.Context(), w.Client(), Invoice{17, "anna@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := PayAndSend(t.Context(), w.Client(), Invoice{17, "anna@example.com"})
		if err != nil || !again.Duplicate() || again.ID() != fl.ID() {
			t.Errorf("again: %v", err)
		}
		w.Sleep(time.Minute)
		if end, err := fl.Snapshot(t.Context()); err != nil || end.State != flowfabric.FlowCompleted ||
			!slices.Equal(order, []string{"pay", "send"}) {
			t.Errorf("%s, %q, %v", end.State, order, err)
		}
	})
}
