package engine

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// What reads answer, as users see it.
type (
	Snapshot       = flowfabric.Snapshot
	AttemptRecord  = flowfabric.AttemptRecord
	Progress       = flowfabric.Progress
	Route          = flowfabric.Route
	FlowRecord     = flowfabric.FlowRecord
	MemberRecord   = flowfabric.MemberRecord
	GroupRecord    = flowfabric.GroupRecord
	EdgeRecord     = flowfabric.EdgeRecord
	WaitRecord     = flowfabric.WaitRecord
	SiblingCancels = flowfabric.SiblingCancels
)

// Instance is the worker instance of a session id.
func Instance(session string) string { return ids.Worker(session) }
