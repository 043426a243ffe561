package admin_test

import "github.com/flowfabric/flowfabric-go/internal/clienttest"

// What these tests share with those of the package beside it.
type (
	draft   = clienttest.Draft
	verdict = clienttest.Verdict
	booth   = clienttest.Booth
)

var (
	write      = clienttest.Write
	open       = clienttest.Open
	openRedis  = clienttest.OpenRedis
	onRedis    = clienttest.OnRedis
	claim      = clienttest.Claim
	onServers  = clienttest.OnServers
	submit     = clienttest.Submit
	finish     = clienttest.Finish
	newHands   = clienttest.NewHands
	diamond    = clienttest.Diamond
	chain      = clienttest.Chain
	submitFlow = clienttest.SubmitFlow
	snapshot   = clienttest.Snapshot
	states     = clienttest.States
	newBooth   = clienttest.NewBooth
	secret     = clienttest.Secret
	flip       = clienttest.Flip
)
