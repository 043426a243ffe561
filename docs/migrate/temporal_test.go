package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Order is the input of what was a workflow.
type Order struct {
	Number int
	Cents  int
}

// Packed is what was a signal.
type Packed struct{ Parcel string }

var FulfilOrder = handler.Define[Order, string]("order:fulfil")

// Shop is what the activities were.
type Shop struct {
	Charge func(ctx context.Context, key string, cents int) (payment string, err error)
	Refund func(ctx context.Context, key, payment string) error
	Ship   func(ctx context.Context, key, parcel string) (tracking string, err error)
}

// Fulfil charges, waits for the warehouse for three days at most, and ships.
func (s *Shop) Fulfil(ctx context.Context, t *handler.Task, in Order) (string, error) {
	key := t.ID().String() // by which the services know a repeat
	payment, err := handler.Step(ctx, t, "charge", func(ctx context.Context) (string, error) {
		return s.Charge(ctx, key, in.Cents)
	})
	if err != nil {
		return "", err // retried by the policy; a step that is recorded is not run again
	}
	packed, err := handler.Receive[Packed](ctx, t, "packed", suspend.Within(72*time.Hour),
		suspend.OnTimeout(suspend.Resume))
	if errors.Is(err, flowfabric.ErrWaitTimeout) {
		_, err = handler.Step(ctx, t, "refund", func(ctx context.Context) (bool, error) {
			return true, s.Refund(ctx, key, payment)
		})
		return "refunded", err
	}
	if err != nil {
		return "", err // also how the handler gives its slot up while it waits
	}
	return handler.Step(ctx, t, "ship", func(ctx context.Context) (string, error) {
		return s.Ship(ctx, key, packed.Parcel)
	})
}

// A workflow of the page of Temporal charges once, whatever comes, ships what was packed, and refunds what was not.
func TestFulfilOrder(t *testing.T) {
	for _, packed := range []bool{true, false} {
		did := []string{}
		shop := &Shop{
			Charge: func(_ context.Context, _ string, cents int) (string, error) {
				did = append(did, fmt.Sprint("charge ", cents))
				return "p-1", nil
			},
			Refund: func(_ context.Context, _, payment string) error {
				did = append(did, "refund "+payment)
				return nil
			},
			Ship: func(_ context.Context, _, parcel string) (string, error) {
				did = append(did, "ship "+parcel)
				return "t-1", nil
			},
		}
		fn, want := shop.Fulfil, "[charge 500 refund p-1] refunded"
		if packed {
			fn, want = fftest.Answered(shop.Fulfil, fftest.Send("packed", Packed{"box"})), "[charge 500 ship box] t-1"
		}
		r := fftest.Run(t, FulfilOrder, fn, Order{17, 500})
		if got := fmt.Sprint(did, " ", r.Result); r.Err != nil || got != want {
			t.Errorf("packed %t: %s, %v, want %s", packed, got, r.Err, want)
		}
	}
}
