package client

import "github.com/flowfabric/flowfabric-go/suspend"

// What calls about waitpoints take and return.
type (
	SuspensionRecord = suspend.Record
	NewSignal        = suspend.SentSignal
	Delivered        = suspend.Delivered
)
