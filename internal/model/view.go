package model

import (
	"maps"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// View is what reading an execution shows.
type View struct {
	Code                             Code // A2 for an active one whose session is dead
	Route                            Route
	Priority                         int
	Creator                          string
	Input                            int
	Attempts                         int
	Type                             flowfabric.AttemptType
	Epoch                            uint64
	Session                          string
	LeaseExpires                     int64 // while A1 or A2
	Retries, Reclaims, Replays       int
	Created, Started, Claimed, Ended int64
	DelayUntil, Deadline             int64
	Category, Reason                 string
	CancelledBy, CancelReason        string
	CancelSource                     string
	Steps                            int
	Tags                             map[string]string
	Log                              []Record
	Progress                         Progress
	Streams                          []Stream
}

// Record is a kept record of an ended attempt: all of them, but for a success that was not replayed.
type Record struct {
	Index                   int
	Type                    flowfabric.AttemptType
	State, Category, Reason string
	Claimed, Ended          int64
	Held                    Fence
}

// Stream is the stream of one attempt, with or without frames.
type Stream struct {
	Frames, Sequence uint64
	Version, Live    uint64
	Runs, Recorded   uint64
	Closed           bool
	Reason           string
}

// View reads an execution. code is what reading answers instead: "" , execution_not_found or result_purged.
func (p *Partition) View(id string) (v View, code string) {
	x := p.Executions[id]
	if x == nil {
		if _, ok := p.Tombstones[id]; ok {
			return View{}, "result_purged"
		}
		return View{}, "execution_not_found"
	}
	v = View{Code: x.Code, Route: p.Routes[x.Route].Route, Priority: x.Priority, Creator: x.Creator, Input: x.Input,
		Attempts: len(x.Attempts), Epoch: x.Held.Epoch, Session: x.Held.Session, Retries: x.Retries,
		Reclaims: x.Reclaims, Replays: x.Replays, Created: x.Created, Started: x.Started, Claimed: x.Claimed,
		Ended: x.Ended, DelayUntil: x.DelayUntil, Deadline: x.Deadline,
		Category:    x.Category,
		CancelledBy: x.CancelledBy, CancelSource: x.CancelSource,
		CancelReason: x.CancelReason, Steps: len(x.Steps), Tags: maps.Clone(x.Tags)}
	if x.Code == "A1" {
		v.LeaseExpires = p.Sessions[x.Held.Session].Expires
		if !p.alive(x.Held.Session) {
			v.Code = codes.LeaseExpired
		}
	}
	for i, a := range x.Attempts {
		v.Streams = append(v.Streams, Stream{Frames: a.Frames, Sequence: a.Sequence, Version: a.Version, Live: a.Live,
			Runs: a.Runs, Recorded: a.Recorded, Closed: a.Closed != "", Reason: a.Closed})
		if a.State == "" || x.Code == "T1" && i == len(x.Attempts)-1 {
			continue
		}
		v.Log = append(v.Log, Record{Index: i + 1, Type: a.Type, State: a.State, Category: a.Category, Reason: a.Reason,
			Claimed: a.Claimed,
			Ended:   a.Ended, Held: a.Held})
		v.Reason = a.Reason
	}
	if x.Code == "T1" || v.Category == "" { // the log tells of the failures before
		v.Category, v.Reason = "", ""
	}
	if a := x.attempt(); a != nil {
		v.Type, v.Progress = a.Type, a.Progress
	}
	return v, ""
}
