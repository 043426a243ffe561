package client

import "github.com/flowfabric/flowfabric-go/internal/engine"

// What reads of the client return.
type (
	Snapshot         = engine.Snapshot
	AttemptRecord    = engine.AttemptRecord
	SuspensionRecord = engine.SuspensionRecord
	NewSignal        = engine.NewSignal
	Delivered        = engine.Delivered
)
