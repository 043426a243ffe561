package engine

import (
	"github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Snapshot is what a read of one execution answers: what users see of it, and its code. The public state may say more
// than the code: that a gate has closed the route.
type Snapshot struct {
	flowfabric.Snapshot
	Code    codes.Code
	Rewinds int // how often it was rewound before it ended

	StopBy, StopReason string // of the stop that the run has not heeded yet
}

// Phase is the code in words.
func (s Snapshot) Phase() codes.State {
	state, _ := codes.Project(s.Code)
	return state
}

// What reads answer, as users see it.
type (
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
