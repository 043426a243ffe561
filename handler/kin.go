package handler

import (
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Kin is what package agent asks of a task when it makes children, has been rewound, or begins a turn; others have no
// use for it.
func (t *Task) Kin() tasks.Kin {
	k := tasks.Kin{Gates: t.named(), SetAside: t.setAside, Edited: t.ownWaits().Edited, Turn: t.turns}
	k.Depth, _ = strconv.Atoi(t.cfg.Claim.Tags[limits.DepthTag]) // who was made by no agent has none
	if t.cfg.Results != nil {
		k.Read = t.cfg.Results.ReadExecution
	}
	return k
}

// named are the gates that the execution asks by name.
func (t *Task) named() (names []string) {
	for _, g := range t.cfg.Route.Gates {
		if _, _, limit := g.Limit(); !limit {
			names = append(names, g.Name())
		}
	}
	return names
}

// within bounds a child by the deadline of the execution that makes it. A time from the child's creation is compared by
// this machine's clock.
func (t *Task) within(child *flowfabric.Start) {
	c := t.cfg.Claim
	if c.DeadlineIn <= 0 || c.ClaimedAt.IsZero() {
		return
	}
	end := c.ClaimedAt.Add(c.DeadlineIn)
	own := child.DeadlineAt
	if child.Deadline != 0 {
		own = time.Now().Add(time.Duration(child.Deadline))
	}
	if own.IsZero() || own.After(end) {
		child.Deadline, child.DeadlineAt = 0, end
	}
}
