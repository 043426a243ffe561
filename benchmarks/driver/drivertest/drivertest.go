// Package drivertest holds what the tests of drivers share: that every job reaches a handler once, byte by byte, and
// that the scenarios every system can run do run and count right.
package drivertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// NotRetained is for systems that cannot count completed jobs.
const NotRetained = -1

// Needs skips the test when a program is not installed, or fails it where CI is set.
func Needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed (CI is set, so this is a failure)", program)
	}
	t.Skipf("%s is not installed; see make bench-deps", program)
}

// Delivery submits one job and then many, works, and checks that each was handled once with its payload. share is the
// part of them that the server then retains: 1, 0, or [NotRetained].
func Delivery(t *testing.T, system driver.System, share int) {
	t.Helper()
	const jobs = 251
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	s, err := system.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	store, err := system.Open(ctx, s, driver.Settings{Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	retains(t, store, share, 0)

	payloads := make([][]byte, jobs)
	for i := range payloads { // not UTF-8, not JSON, with bytes that mean something to protocols
		payloads[i] = fmt.Appendf(nil, "%d\x00\xff\r\n\"", i)
	}
	if err := store.Submit(ctx, payloads[0]); err != nil {
		t.Fatal(err)
	}
	if err := store.SubmitMany(ctx, payloads[1:]); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	handled := map[string]int{}
	total := 0
	done := make(chan struct{})
	stop, err := store.Work(ctx, driver.Worker{Concurrency: 8, Handle: func(_ context.Context, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		handled[string(payload)]++
		if total++; total == jobs {
			close(done)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-ctx.Done():
		t.Error(context.Cause(ctx))
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, payload := range payloads {
		if n := handled[string(payload)]; n != 1 {
			t.Errorf("job %d was handled %d times with its payload", i, n)
		}
	}
	if total != jobs {
		t.Errorf("%d jobs were handled, want %d", total, jobs)
	}
	retains(t, store, share, jobs)
}

// retains checks the count of completed jobs after so many.
func retains(t *testing.T, store driver.Store, share, jobs int) {
	t.Helper()
	counter, ok := store.(driver.Counter)
	if ok != (share != NotRetained) {
		t.Fatalf("the store counts completed jobs: %v", ok)
	}
	if !ok {
		return
	}
	if n, err := counter.Done(t.Context()); err != nil || n != share*jobs {
		t.Errorf("after %d jobs %d are retained, want %d: %v", jobs, n, share*jobs, err)
	}
}

// Scenarios runs those that every system can run, small, and checks their counts. share is as in [Delivery].
func Scenarios(t *testing.T, system driver.System, share int) {
	t.Helper()
	o := scenario.Options{Items: 200, Payload: 32, Concurrency: 4, Batch: 8, Partitions: 2, Rounds: 1, Samples: 5,
		Tailers: 1, Held: 20, Workers: 2, Members: 128, Window: 200 * time.Millisecond,
		Settle: 10 * time.Millisecond}
	jobs := map[string]int{"submit": 0, "drain": o.Items, "lifecycle": o.Items, "latency": 0, "idle": 0,
		"memory": o.Held + o.Partitions}
	positive := map[string][]string{
		"submit": {measure.Throughput, measure.P50, measure.CmdsItem}, "drain": {measure.Throughput, measure.CmdsItem},
		"lifecycle": {measure.Throughput, measure.CmdsItem}, "latency": {measure.P50, measure.Items},
		"idle":   {measure.Workers},
		"memory": {measure.Items},
	}
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	for _, sc := range scenario.All {
		if _, ok := jobs[sc.Name]; !ok {
			continue
		}
		results, err := scenario.Run(ctx, sc, []driver.System{system}, o, func(string, int) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			f := r.Rounds[0].Figures
			for _, figure := range positive[sc.Name] {
				if f[figure] <= 0 {
					t.Errorf("%s %s: %s is %v", sc.Name, r.Variant, figure, f[figure])
				}
			}
			if n, ok := f[measure.Retained]; jobs[sc.Name] > 0 && (ok != (share != NotRetained) ||
				ok && int(n) != share*jobs[sc.Name]) {
				t.Errorf("%s %s: %v jobs are retained of %d, counted: %v", sc.Name, r.Variant, n, jobs[sc.Name], ok)
			}
		}
	}
}
