package client

import "github.com/flowfabric/flowfabric-go/internal/engine"

// What calls about waitpoints take and return.
type (
	SuspensionRecord = engine.SuspensionRecord
	NewSignal        = engine.NewSignal
	Delivered        = engine.Delivered
)
