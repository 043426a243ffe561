package main

import (
	"context"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestSell(t *testing.T) {
	failures := 1
	shop := &Shop{Charge: func(context.Context, string, int) (string, error) {
		if failures--; failures >= 0 {
			return "", errors.New("bank is busy")
		}
		return "paid", nil
	}}
	yes := fftest.Approve("approval", suspend.Answer{Choice: "approve"}, flowfabric.By("ada")).After(24 * time.Hour)
	r := fftest.Run(t, Sell, fftest.Answered(shop.Handle, yes), Order{Item: "tea", Cents: 300}) // virtual time
	r.WantResult(Receipt{Payment: "paid", By: "ada"})
	r.Want(fftest.Want{Steps: []string{"charge"}, Waits: []string{"approval"}, Least: 24 * time.Hour})
}

func TestRejected(t *testing.T) {
	no := fftest.Approve("approval", suspend.Answer{Choice: "reject"}, flowfabric.By("bob"))
	r := fftest.Run(t, Sell, fftest.Answered((&Shop{}).Handle, no), Order{Item: "tea", Cents: 300})
	r.Want(fftest.Want{State: flowfabric.Cancelled, Steps: []string{}, Waits: []string{"approval"}})
}

// The worker dies at every write; an effect inside a step must not be repeated once it is recorded.
func TestSellCrashes(t *testing.T) {
	fftest.Crashes(t, Sell, func(fx *fftest.Effects) func(context.Context, *handler.Task, Order) (Receipt, error) {
		shop := &Shop{Charge: func(context.Context, string, int) (string, error) {
			fx.Did("charge")
			return "paid", nil
		}}
		return fftest.Answered(shop.Handle, fftest.Approve("approval", suspend.Answer{Choice: "approve"}))
	}, Order{Item: "tea", Cents: 300}, nil)
}
