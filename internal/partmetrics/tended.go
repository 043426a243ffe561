package partmetrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// tended is what the ticks of one loop said last of each partition.
type tended struct {
	mu      sync.Mutex
	replies map[uint16]engine.TickReply // of owned partitions
	since   map[uint16]time.Time        // when an outbox was first seen with entries, and not empty after that
}

// told remembers an answered tick.
func (t *tended) told(partition uint16, reply engine.TickReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !reply.Owner {
		delete(t.replies, partition)
		delete(t.since, partition)
		return
	}
	if t.replies == nil {
		t.replies, t.since = map[uint16]engine.TickReply{}, map[uint16]time.Time{}
	}
	t.replies[partition] = reply
	t.noted(partition, reply.Outbox)
}

// tendedSum is what all owned partitions have in sum.
type tendedSum struct{ owned, schedules, outbox int }

func (t *tended) sum() (s tendedSum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.owned = len(t.replies)
	for _, reply := range t.replies {
		s.schedules += reply.Schedules
		s.outbox += reply.Outbox
	}
	return s
}

// noted remembers since when an outbox has had entries. Called with mu held.
func (t *tended) noted(partition uint16, entries int) {
	if entries == 0 {
		delete(t.since, partition)
	} else if _, ok := t.since[partition]; !ok {
		t.since[partition] = time.Now()
	}
}

// delivered records a delivery of a partition's outbox.
func (t *tended) delivered(partition uint16, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reply, ok := t.replies[partition]
	if !ok {
		return
	}
	reply.Outbox = max(0, reply.Outbox-n)
	t.replies[partition] = reply
	t.noted(partition, reply.Outbox)
}

// undelivered is for how long the outbox that waits longest has had entries.
func (t *tended) undelivered(now time.Time) (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, since := range t.since {
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// owns tells whether the last tick of a partition was answered as its owner's.
func (t *tended) owns(partition uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.replies[partition]
	return ok
}

// partitions lists those that are owned, in order.
func (t *tended) partitions() []uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.replies))
}
