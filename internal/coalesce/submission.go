package coalesce

import (
	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// Submission is one input on its way to the server.
type Submission struct {
	Item engine.NewExecution
	Size int // bytes it adds to a create call, roughly
}

// Measure fills in the size; the item is complete.
func (s *Submission) Measure() {
	item := &s.Item
	s.Size = 256 + len(item.Payload)
	for _, c := range item.Capabilities {
		s.Size += len(c) + 1
	}
	for _, g := range item.Gates() {
		s.Size += len(g) + 1
	}
	for k, v := range item.Tags {
		s.Size += len(k) + len(v) + 16
	}
}

// Entry is one submit; everything but Sub is guarded by Coalescer.mu until it is answered. Created or Err is its
// answer.
type Entry struct {
	Sub     *Submission
	self    [1]*Entry // a list of itself alone
	sent    bool      // its id is final and its call may have been made
	gone    bool      // the caller left before it was sent, or while it was certain that nothing had been
	try     *try      // of its batch; nil before it is sent
	done    chan struct{}
	Created engine.Created
	Err     error
}

// identify mints the UUID of a submission that has none, outside any lock. With a key its partition is known, too.
func (c *Coalescer) identify(sub *Submission) {
	x, partition := &sub.Item, uint16(0)
	if x.Key != nil {
		named := ids.Keyed
		if x.Key.Debounce > 0 {
			named = ids.Debounced
		}
		partition, x.KeyID = named(c.cfg.Partitions, x.Namespace, x.Kind, x.Key.Text)
	}
	id := ids.UUID(x.ID)
	if id == uuid.Nil {
		id = uuid.Must(uuid.NewV7())
	}
	x.ID = mint.Join(partition, id)
}
