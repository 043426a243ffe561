package coalesce

import (
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Submission is one input on its way to the server.
type Submission struct {
	Item  engine.NewExecution
	Keyed bool
	Key   string // its id is derived from it, if Keyed
	Size  int    // bytes it adds to a create call, roughly
}

// NewSubmission makes a submission; key counts if it is keyed.
func NewSubmission(item engine.NewExecution, keyed bool, key string) *Submission {
	s := &Submission{Item: item, Keyed: keyed, Key: key, Size: 256 + len(item.Payload)}
	for _, c := range item.Capabilities {
		s.Size += len(c) + 1
	}
	for _, g := range item.Gates {
		s.Size += len(g) + 1
	}
	for k, v := range item.Tags {
		s.Size += len(k) + len(v) + 16
	}
	return s
}

// Entry is one submit; everything but Sub is guarded by Coalescer.mu until it is answered. Created or Err is its answer.
type Entry struct {
	Sub     *Submission
	sent    bool // its id is final and its call may have been made
	gone    bool // the caller left before it was sent, or while it was certain that nothing had been
	try     *try // of its batch; nil before it is sent
	done    chan struct{}
	Created engine.Created
	Err     error
}

// identify derives the id of a keyed Submission and mints the UUID of a plain one, outside any lock.
func (c *Coalescer) identify(sub *Submission) {
	x := &sub.Item
	if sub.Keyed {
		x.ID = flowfabric.MakeExecutionID(ids.Keyed(c.cfg.Partitions, x.Namespace, x.Kind, sub.Key))
	} else {
		x.ID = flowfabric.MakeExecutionID(0, uuid.Must(uuid.NewV7()))
	}
}
