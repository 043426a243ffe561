//go:build unix

package cluster_test

import (
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// A failover on command loses nothing: each primary in turn becomes the replica of its replica under load, and every
// execution still runs once.
func TestFailover(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	names := []string{"one", "two"}
	for _, name := range names {
		w.start(name, 30*time.Second)
	}
	l := w.newLoad()
	l.more(3, everywhere()...)
	for _, p := range w.onEach() {
		w.busy(l, p)
		old := w.primary(p)
		if now := w.nodes.Failover(w.slot(p)); now == old || w.primary(p) != now {
			t.Fatalf("partition %d did not move", p)
		}
		l.more(3, everywhere()...)
	}
	w.listening(names...)
	l.once()
	w.quiesce()
	w.sound()
}

// A primary is killed under load. What it had not yet replicated is lost, so an execution may be gone and one that
// had ended may run again. But what exists afterwards ends, what has ended by then stays as it is, both followers of
// each execution come to an end, and the indexes add up.
func TestCrash(t *testing.T) {
	t.Parallel()
	crash(t, 0, func(w *env, l *load, p uint16) *testserver.Server { return w.nodes.Crash(w.slot(p)) })
}

// The same with a replica that has missed whole lives: executions that were created, and others that were claimed,
// streamed and completed, and seen to be.
func TestCrashLosesWrites(t *testing.T) {
	t.Parallel()
	crash(t, 5, func(w *env, l *load, p uint16) *testserver.Server {
		return w.nodes.CrashBehind(w.slot(p), func() { l.fresh(10, p) })
	})
}

func crash(t *testing.T, losing int, kill func(*env, *load, uint16) *testserver.Server) {
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	names := []string{"one", "two", "three"}
	for _, name := range names {
		w.start(name, 3*time.Second)
	}
	l := w.newLoad()
	l.more(3, everywhere()...)
	p := w.onEach()[0]
	w.busy(l, p)
	w.nodes.Elections(true)
	dead := kill(w, l, p)
	ends := l.ends()
	w.nodes.Elections(false)
	l.more(3, everywhere()...)
	for id, before := range ends {
		if now, err := w.read(id); err != nil || now.Code != before.Code ||
			now.Attempts != before.Attempts || !now.EndedAt.Equal(before.EndedAt) {
			t.Errorf("%s had ended as %s at %v, now %s at %v: %v", id, before.Code, before.EndedAt,
				now.Code, now.EndedAt, err)
		}
	}
	dead.Restart()
	w.nodes.Settled()
	w.listening(names...)
	l.more(3, everywhere()...)
	lost, again := 0, 0
	for _, f := range l.end() {
		s, err := w.read(f.id)
		gone := errors.Is(err, flowfabric.ErrNotFound)
		switch {
		case !gone && (err != nil || s.Code != codes.Completed):
			t.Errorf("%s is %s: %v", f.id, s.Code, err)
		case f.err != nil && !(gone && errors.Is(f.err, flowfabric.ErrNotFound)) ||
			f.err == nil && f.got != answer{f.index, frames}:
			t.Errorf("%s: result %v of %d: %v", f.id, f.got, f.index, f.err)
		case f.broken != nil && !(gone && errors.Is(f.broken, flowfabric.ErrNotFound)) ||
			f.broken == nil && f.state != flowfabric.Completed:
			t.Errorf("%s: the tail ended with %q: %v", f.id, f.state, f.broken)
		case gone:
			lost++
		case w.ran(f.id) > 1:
			again++
		}
	}
	if lost < losing {
		t.Errorf("%d executions are lost, which was to be at least %d", lost, losing)
	}
	t.Logf("%d executions, %d lost with the primary, %d run more than once, %d submits of unknown outcome", len(l.all),
		lost, again, l.unknown)
	w.quiesce()
	w.sound()
}

// ends reads which of the executions followed to their end have ended on the servers, too.
func (l *load) ends() map[flowfabric.ExecutionID]engine.Snapshot {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	ends := map[flowfabric.ExecutionID]engine.Snapshot{}
	for _, f := range all {
		if s, err := l.w.read(f.id); err == nil && s.State.Terminal() {
			ends[f.id] = s
		}
	}
	return ends
}

// onEach names one partition of each primary.
func (w *env) onEach() (list []uint16) {
	seen := map[*testserver.Server]bool{}
	for p := range uint16(partitions) {
		if node := w.primary(p); !seen[node] {
			seen[node] = true
			list = append(list, p)
		}
	}
	return list
}
