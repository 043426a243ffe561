package flowfabric

// LaneState says whether a lane accepts work and hands it out.
type LaneState string

// The states of a lane.
const (
	LaneActive   LaneState = "active"   // accepts and hands out
	LanePaused   LaneState = "paused"   // accepts work but dispatches none
	LaneDraining LaneState = "draining" // hands out, accepts nothing
	LaneDisabled LaneState = "disabled" // neither
)
