package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestSellAndShip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &Shop{Charge: func(context.Context, string, int) (string, error) { return "paid", nil }}
		yes := fftest.Approve("approval", suspend.Answer{Choice: "approve"})
		w := fftest.New(t, runtime.Config{}, handler.Bind(Sell, fftest.Answered(shop.Handle, yes)),
			handler.Bind(Ship, ship))
		got, err := sellAndShip(t.Context(), w.Client(), Order{Item: "tea", Cents: 300})
		if err != nil || got != "paid, sent to Main Street 1" {
			t.Errorf("%q, %v", got, err)
		}
	})
}
