// Command skill is the service of the skill for coding agents: its worker, and what submits to it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Order is the input and Receipt the result. They are stored as JSON, so fields are exported.
type Order struct {
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}
type Receipt struct {
	Payment string `json:"payment"`
	By      string `json:"by"`
}

// Sell is the kind of work: its name, its types, its defaults. Workers and producers both use it.
var Sell = handler.Define[Order, Receipt]("sell",
	handler.Retry(5, time.Second, time.Minute), flowfabric.Timeout(10*time.Minute))

// Shop has what the handler needs. key is the same each time, so that the bank knows a repeated charge.
type Shop struct {
	Charge func(ctx context.Context, key string, cents int) (string, error)
}

// Handle runs from the top each time that it goes on: after a crash, a retry, and the answer to its question.
func (s *Shop) Handle(ctx context.Context, t *handler.Task, in Order) (Receipt, error) {
	if in.Cents <= 0 {
		return Receipt{}, handler.Permanent(errors.New("cents must be positive")) // failed, not retried
	}
	answer, err := t.Ask(ctx, "approval", suspend.Question{Title: fmt.Sprintf("Sell %s for %d cents?", in.Item,
		in.Cents)}, suspend.Within(48*time.Hour)) // nobody in time: failed, suspension_timeout
	if err != nil {
		return Receipt{}, err // while nobody has answered, returning this suspends the execution
	}
	if answer.Choice != "approve" {
		return Receipt{}, handler.Cancel("rejected by " + answer.By) // ends as cancelled
	}
	payment, err := handler.Step(ctx, t, "charge", func(ctx context.Context) (string, error) {
		if err := t.Frame(ctx, "line", "charging\n"); err != nil { // readers see it at once
			return "", err
		}
		return s.Charge(ctx, t.ID().String()+" charge", in.Cents)
	})
	if err != nil {
		return Receipt{}, err // retried
	}
	return Receipt{Payment: payment, By: answer.By}, nil
}

func work(ctx context.Context, url string) error {
	shop := &Shop{Charge: func(_ context.Context, key string, cents int) (string, error) {
		return fmt.Sprintf("paid %d", cents), nil
	}}
	return runtime.Run(ctx, runtime.Config{URL: url, // until SIGINT or SIGTERM
		LeaseTTL: 10 * time.Second, // how soon the work of a dead worker is taken over; default 30 s
	}, runtime.Handle(Sell, shop.Handle))
}

func sell(ctx context.Context, url string, order Order) error {
	c, err := client.Connect(ctx, client.Config{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	key := flowfabric.IdempotencyKey("sell " + order.Item) // the same key again leads to the same execution
	exec, err := client.Submit(ctx, c, Sell, order, key)
	if err != nil {
		return err
	}
	fmt.Println("submitted", exec.ID())
	for event, err := range exec.Tail(ctx) { // what is stored, then what is new, until it ends
		if err != nil {
			return err
		}
		switch event.Kind {
		case stream.TailAttempt: // what no step had recorded comes again; stream.Transcript tells it apart
			fmt.Println("attempt", event.Attempt)
		case stream.TailFrame:
			fmt.Printf("%s", event.Frame.Payload)
		}
	}
	receipt, err := exec.Result(ctx)
	if errors.Is(err, flowfabric.ErrCancelled) || errors.Is(err, flowfabric.ErrFailed) {
		fmt.Println("not sold:", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s, approved by %s\n", receipt.Payment, receipt.By)
	return nil
}

func main() {
	ctx, url := context.Background(), os.Getenv("FLOWFABRIC_URL")
	err := errors.New("say worker or producer")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "worker":
		err = work(ctx, url)
	case len(os.Args) > 1 && os.Args[1] == "producer":
		err = sell(ctx, url, Order{Item: "tea", Cents: 300})
	}
	if err != nil {
		log.Fatal(err)
	}
}
