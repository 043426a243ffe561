package bullmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server, if the machine has what is needed: Node.js is optional everywhere.
func serve(t *testing.T) (System, driver.Server) {
	t.Helper()
	system := System{Program: "redis-server", Cold: true}
	srv, err := system.Serve(t.Context())
	if errors.Is(err, driver.ErrNotInstalled) {
		if _, missing := exec.LookPath("redis-server"); missing != nil && os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed (CI is set, so this is a failure)")
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	return system, srv
}

func open(t *testing.T) *store {
	t.Helper()
	system, srv := serve(t)
	s, err := system.Open(t.Context(), srv, driver.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.(*store)
}

func TestDelivery(t *testing.T) {
	system, srv := serve(t)
	srv.Stop() // every part has one of its own
	drivertest.Delivery(t, system, 1)
	system.Processes = 2
	drivertest.Delivery(t, system, 1)
	drivertest.Scenarios(t, system, 1) // one process runs the same
}

// Two processes share the handlers of a worker, whatever their number, and both of them work.
func TestProcessesShareAWorker(t *testing.T) {
	system, srv := serve(t)
	system.Processes = 2
	srv.(*served).processes.system = system
	for _, concurrency := range []int{1, 2, 5} {
		opened, err := system.Open(t.Context(), srv, driver.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*store)
		let, began := make(chan struct{}), make(chan struct{}, 20)
		stop, err := s.Work(t.Context(), driver.Worker{Concurrency: concurrency,
			Handle: func(context.Context, []byte) {
				began <- struct{}{}
				<-let
			}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SubmitMany(t.Context(), slicesOf(10)); err != nil {
			t.Fatal(err)
		}
		for range concurrency { // at once, so that no process can have them all
			<-began
		}
		if n := len(s.PIDs()) - 1; n != min(concurrency, 2) {
			t.Errorf("%d processes have workers of %d handlers", n, concurrency)
		}
		if n := len(began); n != 0 {
			t.Errorf("%d handlers more than %d ran at once", n, concurrency)
		}
		close(let)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.Close()
		if err := srv.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A job counts as completed only when its handler here has returned.
func TestHandlersHoldJobs(t *testing.T) {
	s := open(t)
	let, began := make(chan struct{}), make(chan struct{})
	stop, err := s.Work(t.Context(), driver.Worker{Concurrency: 2, Handle: func(context.Context, []byte) {
		close(began)
		<-let
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Submit(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-began
	if n, err := s.Done(t.Context()); n != 0 || err != nil {
		t.Errorf("%d jobs done while the handler runs, %v", n, err)
	}
	close(let)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n, err := s.Done(t.Context()); n != 1 || err != nil {
		t.Errorf("%d jobs done, %v, want 1", n, err)
	}
}

// Counting workers tell every job, and that it began after it was submitted, by the same clock.
func TestCountsAndClock(t *testing.T) {
	s := open(t)
	var handled atomic.Int64
	began := make(chan time.Time, 100)
	stop, err := s.Work(t.Context(),
		driver.Worker{Concurrency: 8, Counts: true, Handle: func(ctx context.Context, _ []byte) {
			handled.Add(1)
			began <- driver.Began(ctx)
		}})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	at, err := s.SubmitAt(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if took := (<-began).Sub(at); took <= 0 || took > time.Since(before) {
		t.Errorf("began %v after it was submitted; %v have passed here", took, time.Since(before))
	}
	if err := s.SubmitMany(t.Context(), slicesOf(99)); err != nil {
		t.Fatal(err)
	}
	for range 99 {
		<-began
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if n := handled.Load(); n != 100 {
		t.Errorf("%d jobs, want 100", n)
	}
}

func slicesOf(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = []byte{byte(i)}
	}
	return out
}

// What goes wrong in the other processes is reported, and nobody waits for a dead one.
func TestTroubles(t *testing.T) {
	s := open(t)
	stop, err := s.Work(t.Context(), driver.Worker{Concurrency: 0, Handle: func(context.Context, []byte) {}})
	if err == nil || !strings.Contains(err.Error(), "concurrency") || stop != nil {
		t.Errorf("a worker without concurrency: %v", err)
	}
	if err := s.producer.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Submit(t.Context(), nil); err == nil {
			t.Error("submitting by a dead process succeeds")
		}
	}
	s.producer.reader.Wait()
	if err := s.Submit(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "producer.js has ended: signal: killed") {
		t.Errorf("submitting by a dead process: %v", err)
	}
	dir := t.TempDir()
	for script, text := range map[string]string{"mad.js": "console.log('hello')",
		"dead.js": "throw new Error('cannot go on')"} {
		if err := os.WriteFile(filepath.Join(dir, script), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := System{Dir: dir}.start(t.Context(), s.processes.url, script)
		if want := map[string]string{"mad.js": "invalid character", "dead.js": "cannot go on"}[script]; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	if _, err := (System{}).start(t.Context(), "postgres://x", "worker.js"); err == nil ||
		!strings.Contains(err.Error(), "postgres://x") {
		t.Errorf("%v, want an error about the server", err)
	}
}

// The next store has the same processes, unless they are dead, and nothing of the last one.
func TestProcessesLiveOn(t *testing.T) {
	system, srv := serve(t)
	var before []int
	for round := range 3 {
		opened, err := system.Open(t.Context(), srv, driver.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*store)
		if err := s.Submit(t.Context(), []byte{byte(round)}); err != nil {
			t.Fatal(err)
		}
		got := make(chan []byte, 10)
		stop, err := s.Work(t.Context(),
			driver.Worker{Concurrency: 1, Handle: func(_ context.Context, payload []byte) { got <- payload }})
		if err != nil {
			t.Fatal(err)
		}
		if payload := <-got; !bytes.Equal(payload, []byte{byte(round)}) {
			t.Errorf("round %d: payload %x", round, payload)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		pids := s.PIDs()
		if round > 0 && (pids[0] == before[0]) != (round == 1) || round > 0 && pids[1] != before[1] {
			t.Errorf("round %d: processes %v after %v", round, pids, before)
		}
		if before = pids; round == 1 {
			_ = s.producer.cmd.Process.Kill()
		}
		s.Close()
	}
}

func TestWarming(t *testing.T) {
	_, cold := serve(t)
	if n := len(cold.(*served).processes.free); n != 0 {
		t.Errorf("%d processes before anything was opened", n)
	}
	system := System{Program: "redis-server", Processes: 2}
	srv, err := system.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	if n := len(srv.(*served).processes.free); n != 3 {
		t.Errorf("%d processes are free after warming up, want the producer's and two of workers", n)
	}
	sample, err := srv.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := sample.Commands["evalsha"].Calls; n < float64(system.warming()) {
		t.Errorf("%v script calls, want one or more for each of %d jobs", n, system.warming())
	}
}

func TestNotInstalled(t *testing.T) {
	serve(t)
	for _, system := range []System{{Program: "redis-server", Node: "/nowhere/node"},
		{Program: "redis-server", Dir: "/nowhere"}} {
		_, err := system.Serve(t.Context())
		if !errors.Is(err, driver.ErrNotInstalled) || !strings.Contains(err.Error(), "make bench-deps") {
			t.Errorf("%+v: %v, want an error that says how to install it", system, err)
		}
		if system.Dir != "" && strings.Contains(err.Error(), system.Dir) {
			t.Errorf("%v names a path of this machine, and goes into reports", err)
		}
		if v := system.Version(); v != "(not installed)" {
			t.Errorf("version %q", v)
		}
	}
	for name, system := range map[string]System{"bullmq": {}, "bullmq-2": {Processes: 2}} {
		if v := system.Version(); system.Name() != name || !strings.Contains(v, "6.7.0, ioredis 5.") ||
			!strings.HasSuffix(v, fmt.Sprint("; worker processes: ", system.working())) {
			t.Errorf("%s has version %q", system.Name(), v)
		}
	}
}
