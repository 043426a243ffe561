package engine

import flowfabric "github.com/flowfabric/flowfabric-go"

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
