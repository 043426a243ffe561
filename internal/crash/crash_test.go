//go:build unix

package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// kill is one SIGKILL and what its victim held.
type kill struct {
	worker string
	at     time.Time
	held   []flowfabric.ExecutionID
}

// Workers are killed with SIGKILL in the middle of streaming. Nothing is lost, nothing is settled twice, the frames
// of every attempt are gapless, the recorded step is never run again, and what a victim held is claimed again
// within ttl + tick + 1 s, and the pause of work that has lost workers before.
func TestKill(t *testing.T) {
	const executions, kills = 60, 6
	url := testserver.Redis(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	c, e := connect(t, ctx, url)

	began, ran := time.Now(), testwait.Running(t)
	workers := make([]*process, 3)
	for i := range workers {
		workers[i] = start(t, url, fmt.Sprintf("w%d", i))
	}
	var submitted []*client.Execution[answer]
	submit := func(n int) {
		inputs := make([]job, n)
		for i := range inputs {
			inputs[i].Index = len(submitted) + i
		}
		more, err := client.SubmitMany(ctx, c, streaming, inputs)
		must.No(t, err)
		submitted = append(submitted, more...)
	}
	submit(executions)

	var done []kill
	for n := range kills {
		i := 0
		victim := waitHolding(t, ctx, e, submitted, workers, &i)
		for victim == nil { // a busy machine: all of it ended before somebody was found
			submit(executions / kills)
			victim = waitHolding(t, ctx, e, submitted, workers, &i)
		}
		at := time.Now()
		must.No(t, victim.cmd.Process.Kill())
		<-victim.done
		k := kill{worker: victim.name, at: at}
		for _, x := range submitted {
			if s := read(t, ctx, e, x.ID()); s.Phase().LifecyclePhase == "active" &&
				ids.Worker(s.Session) == victim.name {
				k.held = append(k.held, x.ID())
			}
		}
		done = append(done, k)
		workers[i] = start(t, url, fmt.Sprintf("w%d", len(workers)+n))
	}

	reused := 0
	for _, x := range submitted {
		got, err := x.Result(ctx)
		if err != nil {
			t.Fatalf("%s: %v", x.ID(), err)
		}
		s := read(t, ctx, e, x.ID())
		if s.Code != codes.Completed || s.Retries != 0 {
			t.Errorf("%s: code %s, %d retries, want T1 and none: a crash consumes no retry", x.ID(), s.Code,
				s.Retries)
		}
		if int(s.Attempts) != s.Reclaims+1 || len(s.AttemptLog) != s.Reclaims {
			t.Errorf("%s: %d attempts, %d reclaims, %d folded: every attempt but the last was interrupted", x.ID(),
				s.Attempts, s.Reclaims, len(s.AttemptLog))
		}
		for a := uint32(1); a <= s.Attempts; a++ {
			if _, ok, err := e.ReadResult(ctx, x.ID(), a); err != nil || ok != (a == s.Attempts) {
				t.Errorf("%s attempt %d: result stored %v (%v): exactly the last attempt settles", x.ID(), a, ok, err)
			}
			gapless(t, ctx, e, x.ID(), a, a == s.Attempts)
		}
		if made := strings.Split(got.Pass, "/"); len(made) != 3 {
			t.Errorf("%s: step value %q", x.ID(), got.Pass)
		} else if attempt, _ := strconv.Atoi(made[1]); attempt < int(s.Attempts) {
			reused++ // a later attempt reused the value: it was not run again
		}
	}
	for _, k := range done {
		for _, id := range k.held {
			recovered(t, ctx, e, id, k, time.Since(began)-ran())
		}
		t.Logf("%s was killed with %d executions in hand", k.worker, len(k.held))
	}
	t.Logf("%d of %d executions reused a step of a dead attempt", reused, len(submitted))
}

// connect opens a producer and a direct view of the store; both end with the test.
func connect(t *testing.T, ctx context.Context, url string) (*client.Client, *engine.Engine) {
	t.Helper()
	c, err := client.Connect(ctx, client.Config{URL: url})
	must.No(t, err)
	t.Cleanup(c.Close)
	e, err := engine.Open(ctx, engine.Config{URL: url})
	must.No(t, err)
	t.Cleanup(e.Close)
	return c, e
}

// waitHolding waits until some worker holds something that is a random way through its frames, and returns it. It
// returns nil once everything is completed.
func waitHolding(t *testing.T, ctx context.Context, e *engine.Engine, xs []*client.Execution[answer],
	workers []*process, i *int) *process {
	t.Helper()
	progress := uint64(3 + rand.IntN(tokens-20))
	for ended := 0; ctx.Err() == nil && ended < len(xs); {
		ended = 0
		for _, x := range xs {
			s := read(t, ctx, e, x.ID())
			if s.Code == codes.Completed {
				ended++
			}
			if s.Code != codes.Active {
				continue
			}
			m, err := e.ReadAttemptStream(ctx, x.ID(), s.Attempts)
			if err != nil || m.Count < progress {
				continue
			}
			for n, w := range workers {
				if w.name == ids.Worker(s.Session) {
					*i = n
					return w
				}
			}
		}
	}
	must.No(t, ctx.Err())
	return nil
}

func read(t *testing.T, ctx context.Context, e *engine.Engine, id flowfabric.ExecutionID) engine.Snapshot {
	t.Helper()
	s, err := e.ReadExecution(ctx, id)
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	return s
}

// gapless checks that the producer sequence of an attempt has no hole and that payloads are in order.
func gapless(t *testing.T, ctx context.Context, e *engine.Engine, id flowfabric.ExecutionID, attempt uint32,
	whole bool) {
	t.Helper()
	frames, err := e.ReadFrames(ctx, id, attempt, stream.Cursor{}, 1000)
	must.No(t, err)
	for i, f := range frames {
		if f.Sequence != uint64(i+1) || string(f.Payload) != strconv.Itoa(i) {
			t.Errorf("%s attempt %d: frame %d has sequence %d and payload %q", id, attempt, i, f.Sequence, f.Payload)
			return
		}
	}
	if whole && len(frames) != tokens {
		t.Errorf("%s attempt %d completed with %d frames, want %d", id, attempt, len(frames), tokens)
	}
	m, err := e.ReadAttemptStream(ctx, id, attempt)
	if err != nil || !m.Closed {
		t.Errorf("%s attempt %d: closed %v (%v)", id, attempt, m.Closed, err)
	}
	if want := map[bool]string{true: "attempt_success", false: "lease_expired"}[whole]; m.Exists &&
		m.ClosedReason != want {
		t.Errorf("%s attempt %d: closed reason %q, want %q", id, attempt, m.ClosedReason, want)
	}
}

// pause is what reclaim n of an execution waits, counted from 0: nothing at first, since a worker may die of anything.
func pause(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Minute, time.Second<<min(n-1, 6))
}

// recovered checks that the attempt after the killed one was claimed within ttl + tick + 1 s, its pause, and how long
// the machine stood.
func recovered(t *testing.T, ctx context.Context, e *engine.Engine, id flowfabric.ExecutionID, k kill,
	stood time.Duration) {
	t.Helper()
	s := read(t, ctx, e, id)
	claimed := append([]engine.AttemptRecord(nil), s.AttemptLog...)
	claimed = append(claimed, engine.AttemptRecord{Index: s.Attempts - 1, ClaimedAt: s.ClaimedAt})
	for i, a := range claimed {
		if a.Worker != k.worker || i+1 >= len(claimed) {
			continue
		}
		bound := ttl + time.Second + time.Second + pause(i) + stood
		if took := claimed[i+1].ClaimedAt.Sub(k.at); took > bound {
			t.Errorf("%s: claimed again %v after %s was killed, want at most %v", id, took, k.worker, bound)
		}
		return
	}
	t.Errorf("%s: no attempt of %s was interrupted: %+v", id, k.worker, claimed)
}

// A worker is stopped past its ttl and continued: its context ends with ErrLeaseLost, every write it still makes is
// refused, and the execution belongs to the other worker.
func TestPause(t *testing.T) {
	url := testserver.Redis(t)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	c, e := connect(t, ctx, url)

	first := start(t, url, "first")
	x, err := client.Submit(ctx, c, hold, job{})
	must.No(t, err)
	first.expect(t, "holding ")
	second := start(t, url, "second")
	must.No(t, first.cmd.Process.Signal(syscall.SIGSTOP))
	if got := second.expect(t, "holding "); got != x.ID().String()+" 2" {
		t.Fatalf("the second worker holds %q, want attempt 2 of %s", got, x.ID())
	}
	must.No(t, first.cmd.Process.Signal(syscall.SIGCONT))
	if cause := first.expect(t, "lost "); !strings.Contains(cause, "lease_lost") {
		t.Errorf("the stopped worker's context ended with %q, want ErrLeaseLost", cause)
	}
	for _, write := range []string{"frame ", "step "} {
		if got := first.expect(t, write); got == "<nil>" {
			t.Errorf("a late %swas accepted", write)
		}
	}
	s := read(t, ctx, e, x.ID())
	if s.Code != codes.Active || ids.Worker(s.Session) != "second" || s.Attempts != 2 {
		t.Errorf("code %s held by %q, %d attempts: want A1 by second, 2", s.Code, s.Session, s.Attempts)
	}
	if frames, err := e.ReadFrames(ctx, x.ID(), 2, stream.Cursor{}, 10); err != nil || len(frames) != 0 {
		t.Errorf("the new attempt has %d frames of the old holder (%v)", len(frames), err)
	}
	if m, err := e.ReadAttemptStream(ctx, x.ID(), 1); err != nil || m.Count != 0 || !m.Closed {
		t.Errorf("attempt 1: %+v (%v): want closed and empty", m, err)
	}
	must.No(t, x.Cancel(ctx, flowfabric.Reason("test over")))
	if cause := second.expect(t, "lost "); !strings.Contains(cause, "cancelled") {
		t.Errorf("the second worker's context ended with %q, want ErrCancelled", cause)
	}
}
