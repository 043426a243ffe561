package client

import (
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What reads of the client return.
type (
	Snapshot         = engine.Snapshot
	AttemptRecord    = engine.AttemptRecord
	SuspensionRecord = suspend.Record
	NewSignal        = suspend.SentSignal
	Delivered        = suspend.Delivered
)
