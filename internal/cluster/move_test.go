package cluster_test

import (
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// A frozen partition is moved key by key, under load, and nobody notices but by a pause. The leases outlive
// the freeze, so that each execution needs one attempt.
func TestSlotMove(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	names := []string{"one", "two"}
	for _, name := range names {
		w.start(name, 30*time.Second)
	}
	w.listening(names...)
	l := w.newLoad()
	l.more(3, everywhere()...)
	for _, p := range []uint16{0, 3, 0} {
		w.move(l, p)
		w.listening(names...)
		l.more(3, everywhere()...)
	}
	l.once()
	w.quiesce()
	w.sound()
}

// A server that moves a slot as a whole needs no freeze: a partition moves while its executions run and others are
// submitted, and each needs one attempt.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	nodes := testserver.Cluster(t, testserver.ServerValkey)
	if !nodes.Migrates() {
		t.Skip("this server has no CLUSTER MIGRATESLOTS, which Valkey has from 9.0 on; make servers gets one")
	}
	w := newEnv(t, nodes)
	names := []string{"one", "two"}
	for _, name := range names {
		w.start(name, 30*time.Second)
	}
	w.listening(names...)
	l := w.newLoad()
	l.more(3, everywhere()...)
	for _, p := range []uint16{0, 3, 0} {
		w.busy(l, p)
		from, bell := w.primary(p), engine.BellChannel(p, "one")
		w.nodes.MigrateSlot(w.slot(p), w.elsewhere(p))
		w.until("the doorbell has left the old primary", func() bool { return w.subscribers(from, bell) == 0 })
		l.more(3, everywhere()...)
		w.listening(names...)
	}
	l.once()
	w.quiesce()
	w.sound()
}

// elsewhere is a primary that does not serve a partition.
func (w *env) elsewhere(p uint16) (to *testserver.Server) {
	from := w.primary(p)
	for _, s := range w.nodes.Primaries() {
		if s != from {
			to = s
		}
	}
	return to
}

// move freezes a partition while its work is under way, moves its slot to another primary and thaws it.
func (w *env) move(l *load, p uint16) {
	w.Helper()
	id := w.busy(l, p)
	from := w.primary(p)
	bell := engine.BellChannel(p, "one")
	w.no(w.engine.FreezePartition(trail.As(w.ctx, "", "slot move"), p))
	before, err := invariant.Read(w.ctx, w.raw, p)
	w.no(err)

	to, refused := w.elsewhere(p), 0
	moved := w.nodes.MoveSlot(w.slot(p), to, func() {
		// With the keys on two nodes, whatever is called is refused, wherever the root is.
		for range 3 {
			if _, err := w.engine.ReadExecution(w.ctx, id); errors.Is(err, flowfabric.ErrPartitionFrozen) {
				refused++
			}
		}
	})
	after, err := invariant.Read(w.ctx, w.raw, p)
	w.no(err)
	if a, b := before.Text(), after.Text(); a != b {
		w.Errorf("partition %d was written to while it was frozen:\n%s", p, invariant.Difference(a, b))
	}
	if refused != 3 {
		w.Errorf("%d of 3 calls in the middle of the move were refused as frozen", refused)
	}
	w.no(w.engine.ThawPartition(w.ctx, p))
	w.until("the doorbell has left the old primary", func() bool { return w.subscribers(from, bell) == 0 })
	w.Logf("partition %d: %d keys moved", p, moved)
}

// busy waits until an execution of a partition is being run, and returns it.
func (w *env) busy(l *load, p uint16) (id flowfabric.ExecutionID) {
	w.Helper()
	w.until("an execution of the partition is active", func() bool {
		l.mu.Lock()
		all := l.all[max(0, len(l.all)-cap(l.slots)):]
		l.mu.Unlock()
		for _, f := range all {
			if f.id.Partition() != p {
				continue
			}
			if s, err := w.engine.ReadExecution(w.ctx, f.id); err == nil && s.Code == codes.Active {
				id = f.id
				return true
			}
		}
		return false
	})
	return id
}
