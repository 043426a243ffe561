package main

import (
	"context"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Ship is a node that runs after another one, whose result it needs.
var (
	Ship = handler.Define[string, string]("ship")
	Sold = flow.Input[Receipt]{Name: "sold"}
)

func ship(_ context.Context, t *handler.Task, address string) (string, error) {
	receipt, err := handler.Need(t, Sold)
	return receipt.Payment + ", sent to " + address, err
}

// sellAndShip waits for the flow and returns the result of its last node.
func sellAndShip(ctx context.Context, c *client.Client, order Order) (string, error) {
	f := flow.New("sale")
	sold := flow.Add(f, "sell", Sell, order)
	sent := flow.Add(f, "ship", Ship, "Main Street 1", Sold.From(sold)) // runs when sell has succeeded
	submitted, err := client.SubmitFlow(ctx, c, f)
	if err != nil {
		return "", err
	}
	if _, err := submitted.Wait(ctx); err != nil {
		return "", err
	}
	return client.NodeResult(ctx, submitted, sent)
}
