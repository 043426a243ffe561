package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// lines keeps what was logged, for tests that ask whether somebody was told, and how often.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(level, part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// member is a worker on a silent store whose log is kept.
type member struct {
	*testing.T
	*silent
	*Worker
	log  *lines
	stop context.CancelFunc
	run  conc.WaitGroup
	err  error
	over bool
}

const ttl = 30 * time.Second

// join starts the worker "w"; others may have its name in the store already.
func join(t *testing.T, s *silent, handle func(ctx context.Context) error) *member {
	t.Helper()
	m := &member{T: t, silent: s, log: &lines{}}
	m.Worker = s.worker(Config{Instance: "w", LeaseTTL: ttl, Logger: slog.New(slog.NewTextHandler(m.log, nil)),
		AppVersion: "v7",
		Labels:     map[string]string{"zone": "b"}, Worker: "pool"}, handle)
	var ctx context.Context
	ctx, m.stop = context.WithCancel(t.Context())
	m.run.Go(func() { m.err = m.Worker.Run(ctx); m.over = true })
	synctest.Wait()
	return m
}

func (m *member) leave() {
	m.Helper()
	m.stop()
	m.run.Wait()
	if m.err != nil {
		m.Error(m.err)
	}
}

func (m *member) serves() bool {
	select {
	case <-m.serving:
		return true
	default:
		return false
	}
}

func idle(context.Context) error { return nil }

// elapse lets virtual time pass, and whatever happens in it.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A worker registers before it takes work, says what it is, renews three times in a ttl with what it holds,
// and leaves when it has drained.
func TestWorkerRegistersRenewsAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 1)
		hold := make(chan struct{})
		m := join(t, s, func(context.Context) error { <-hold; return nil })
		q := s.called()
		if i := q.Info; q.Instance != "w" || q.TTL != ttl || q.InFlight != 0 || i.Pool != "pool" || i.Version != "v7" ||
			i.Labels["zone"] != "b" || strings.Join(i.Kinds, " ") != "k" || strings.Join(i.Lanes, " ") != "default" ||
			strings.Join(i.Namespaces, " ") != "default" ||
			i.Concurrency != 64 || i.PID == 0 || i.StartedAt.IsZero() {
			t.Errorf("registered as %+v", q)
		}
		for n := range 5 {
			elapse(ttl / 3)
			if again := s.called(); again.Token != q.Token || again.InFlight != 1 {
				t.Errorf("renewal %d: %+v", n, again)
			}
		}
		if len(s.enrolled) != 0 {
			t.Errorf("%d calls too many", len(s.enrolled))
		}
		close(hold)
		m.leave()
		if s.owner("w") != "" || m.log.count("WARN", "")+m.log.count("ERROR", "") != 0 {
			t.Errorf("the name is still %q's; %s", s.owner("w"), m.log.all.String())
		}
	})
}

// A process that crashed left its name behind. Its successor waits until the registration runs out, says so
// once, and is not ready meanwhile.
func TestCrashedPredecessorIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		s.enrol("w", "crashed", ttl)
		began := time.Now()
		m := join(t, s, idle)
		elapse(ttl - time.Second)
		if m.serves() || m.Ready() == nil || m.over {
			t.Error("it works under a name that is another's")
		}
		if n := m.log.count("WARN", "remaining=30s"); n != 1 {
			t.Errorf("told %d times that it waits: %s", n, m.log.all.String())
		}
		<-m.serving
		if waited := time.Since(began); waited > ttl+time.Second {
			t.Errorf("waited %v", waited)
		}
		m.leave()
	})
}

// A predecessor that ends in good order while it is waited for makes room at once, also with an hour of lease left.
func TestLeavingPredecessorMakesRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		s.enrol("w", "draining", time.Hour)
		m := join(t, s, idle)
		elapse(time.Minute)
		if m.serves() {
			t.Error("it works under a name that is another's")
		}
		if _, err := s.LeaveWorker(t.Context(), "w", "draining"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-m.serving
		if waited := time.Since(began); waited > lookAgain {
			t.Errorf("waited %v more", waited)
		}
		m.leave()
	})
}

// The duplicate of a live worker is refused once that has shown that it lives.
func TestDuplicateInstanceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		first := join(t, s, idle)
		second := join(t, s, idle)
		elapse(ttl/3 + ttl/6 + time.Second)
		if !second.over || !errors.Is(second.err, denied.InstanceInUse) || second.serves() {
			t.Fatalf("over %v: %v", second.over, second.err)
		}
		for _, part := range []string{`"w"`, "Config.Instance"} {
			if !strings.Contains(second.err.Error(), part) {
				t.Errorf("error %q does not name %s", second.err, part)
			}
		}
		first.leave()
		if n := first.log.count("ERROR", ""); n != 0 {
			t.Errorf("the first was disturbed: %s", first.log.all.String())
		}
		second.stop()
	})
}

// A worker that waits for its name can be asked to stop.
func TestStoppedWhileWaitingForTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		s.enrol("w", "another", time.Hour)
		m := join(t, s, idle)
		elapse(time.Minute)
		began := time.Now()
		m.leave()
		if took := time.Since(began); took > time.Second {
			t.Errorf("stopped after %v", took)
		}
		if s.owner("w") != "another" {
			t.Error("it ended the registration of another process")
		}
	})
}

// Registry trouble stops nothing: a worker that cannot register works all the same, and does register when it can.
func TestRegistryTroubleStopsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 1)
		s.note(fmt.Errorf("%w: not today", flowfabric.ErrOutOfMemory))
		worked := make(chan struct{})
		m := join(t, s, func(context.Context) error { close(worked); return nil })
		<-worked
		elapse(time.Hour)
		if n := m.log.count("WARN", "could not register"); n != 1 {
			t.Errorf("told %d times: %s", n, m.log.all.String())
		}
		if m.Ready() != nil {
			t.Errorf("not ready: %v", m.Ready())
		}
		s.note(nil)
		elapse(ttl / 3)
		if s.owner("w") == "" || m.log.count("INFO", "registered again") != 1 {
			t.Errorf("not registered: %s", m.log.all.String())
		}
		m.leave()
	})
}

// A worker that loses its name while it is cut off goes on working, says so once, and gets the name back when it is
// free.
func TestNameLostWhileCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		m := join(t, s, idle)
		s.enrol("w", "another", 2*ttl)
		elapse(ttl)
		if m.over || m.Ready() != nil {
			t.Errorf("over: %v, ready: %v", m.err, m.Ready())
		}
		if n := m.log.count("ERROR", "Config.Instance"); n != 1 {
			t.Errorf("told %d times: %s", n, m.log.all.String())
		}
		elapse(2 * ttl)
		if owner := s.owner("w"); owner == "" || owner == "another" {
			t.Errorf("the name is %q's", owner)
		}
		m.leave()
	})
}

// A predecessor is waited for although the server is away for a while; if the server stays away, the worker does not.
func TestServerAwayWhileWaitingForTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 0)
		s.enrol("w", "crashed", ttl)
		m := join(t, s, idle)
		elapse(ttl / 2)
		s.note(fmt.Errorf("%w: away", flowfabric.ErrTransport))
		elapse(ttl / 4)
		if m.serves() {
			t.Error("it works under a name that is another's")
		}
		elapse(ttl/4 + lookAgain + time.Second)
		if !m.serves() {
			t.Error("it waits for a registry that does not answer")
		}
		m.leave()
	})
}
