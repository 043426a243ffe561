package client_test

import "github.com/flowfabric/flowfabric-go/internal/clienttest"

// What these tests share with those of the package beside it.
type (
	draft = clienttest.Draft
)

var (
	write      = clienttest.Write
	open       = clienttest.Open
	claim      = clienttest.Claim
	onServers  = clienttest.OnServers
	submit     = clienttest.Submit
	newHands   = clienttest.NewHands
	diamond    = clienttest.Diamond
	chain      = clienttest.Chain
	submitFlow = clienttest.SubmitFlow
	snapshot   = clienttest.Snapshot
	states     = clienttest.States
	newBooth   = clienttest.NewBooth
	flip       = clienttest.Flip
)
