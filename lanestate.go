package flowfabric

// LaneState says whether a lane accepts and dispatches work.
type LaneState string

// The states of a lane.
const (
	LaneActive   LaneState = "active"   // accepts and dispatches
	LanePaused   LaneState = "paused"   // accepts work but dispatches none
	LaneDraining LaneState = "draining" // dispatches, accepts nothing
	LaneDisabled LaneState = "disabled" // neither
)
