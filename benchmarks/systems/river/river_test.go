package river_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/river"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var systems = []driver.System{river.System{}, river.System{Tuned: true}}

var tiny = scenario.Options{Items: 200, Payload: 64, Concurrency: 32, Batch: 8, Partitions: 4, Rounds: 1, Samples: 5,
	Tailers: 3, Held: 50, Members: 128, Workers: 3, Window: 50 * time.Millisecond}

func installed(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestScenarios(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	counts := map[string]map[string]float64{ // exact ones
		"drain":     {measure.Retained: 200},
		"lifecycle": {measure.Retained: 200},
		"latency":   {measure.Items: 5},
		"memory":    {measure.Items: 50, measure.Retained: 54}, // four went before
	}
	positive := map[string][]string{
		"submit":    {measure.Throughput, measure.P50, measure.ServerItem, measure.ClientItem, measure.CmdsItem},
		"drain":     {measure.Throughput, measure.Items, measure.ServerItem, measure.ClientItem},
		"lifecycle": {measure.Throughput, measure.Items, measure.ServerItem, measure.ClientItem, measure.CmdsItem},
		"latency":   {measure.P50, measure.P99, measure.CmdsItem},
		"memory":    {measure.Waiting, measure.Done},
	}
	seen := map[string]bool{} // scenarios of which something was measured
	for _, sc := range scenario.All {
		if positive[sc.Name] == nil {
			continue
		}
		results, err := scenario.Run(ctx, sc, systems, tiny, func(string, int) {})
		installed(t, err)
		for _, r := range results {
			if r.NotAvailable() != "" || !strings.HasPrefix(r.Server, "postgresql ") || len(r.Rounds) != tiny.Rounds {
				t.Errorf("%s %s of %s on %s: %d rounds, %q", sc.Name, r.Variant, r.System, r.Server, len(r.Rounds),
					r.NotAvailable())
			}
			for i, round := range r.Rounds {
				if round.Figures[measure.Items] > 0 {
					seen[sc.Name] = true
				} else { // all were completed before the measurement began: they are few, and the machine may be busy
					t.Logf("%s %s of %s, round %d: nothing was left to measure", sc.Name, r.Variant, r.System, i)
				}
				for _, figure := range positive[sc.Name] {
					if round.Figures[measure.Items] == 0 {
						continue
					}
					if round.Figures[figure] <= 0 {
						t.Errorf("%s %s of %s, round %d: %s is %v", sc.Name, r.Variant, r.System, i, figure,
							round.Figures[figure])
					}
				}
				for figure, want := range counts[sc.Name] {
					if got := round.Figures[figure]; got != want {
						t.Errorf("%s %s of %s, round %d: %s is %v, want %v", sc.Name, r.Variant, r.System, i, figure,
							got, want)
					}
				}
			}
		}
		if !seen[sc.Name] {
			t.Errorf("%s measured nothing in any round", sc.Name)
		}
		delete(positive, sc.Name)
	}
	if len(positive) != 0 {
		t.Errorf("scenarios that are not there: %v", positive)
	}
}

// All of these are of one server: starting servers takes longest.
func TestStore(t *testing.T) {
	server, err := systems[0].Serve(t.Context())
	installed(t, err)
	defer server.Stop()
	for _, system := range systems {
		t.Run("payloads of "+system.Name(), func(t *testing.T) { checkPayloads(t, opened(t, system, server)) })
	}
	t.Run("end of context", func(t *testing.T) { checkEndOfContext(t, opened(t, river.System{Tuned: true}, server)) })
}

// opened is a system on an empty server.
func opened(t *testing.T, system driver.System, server driver.Server) driver.Store {
	t.Helper()
	if err := server.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := system.Open(t.Context(), server, driver.Settings{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// Handlers get the very bytes that were submitted, every job once, and a stopped worker has settled all it handled.
func checkPayloads(t *testing.T, store driver.Store) {
	want := map[string]int{}
	var many [][]byte
	for i := range 256 {
		payload := []byte{byte(i), 0, '"', '\\', 0xff, byte(i)}
		many = append(many, payload)
		want[string(payload)]++
	}
	if err := store.SubmitMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if err := store.Submit(t.Context(), []byte("one")); err != nil {
		t.Fatal(err)
	}
	want["one"]++

	var mu sync.Mutex
	got := map[string]int{}
	handled := make(chan struct{}, 1000)
	stop, err := store.Work(t.Context(),
		driver.Worker{Concurrency: 64, Handle: func(_ context.Context, payload []byte) {
			mu.Lock()
			got[string(payload)]++
			mu.Unlock()
			handled <- struct{}{}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 257 {
		select {
		case <-handled:
		case <-testwait.End(t):
			t.Fatalf("%d of 257 jobs were handled", i)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("handled %d different payloads, want %d, each once", len(got), len(want))
	}
	settler := store.(driver.Settler)
	if n, err := settler.Done(t.Context()); err != nil || n != 257 {
		t.Errorf("%d jobs are completed, %v, want 257", n, err)
	}
	if left, err := settler.Settle(t.Context(), 0); err != nil || left != 0 {
		t.Errorf("%d jobs are left, %v", left, err)
	}
}

// A worker whose context ends lets go of its handlers, and stop still waits for it.
func checkEndOfContext(t *testing.T, store driver.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan struct{})
	stop, err := store.Work(ctx, driver.Worker{Concurrency: 1, Handle: func(ctx context.Context, _ []byte) {
		close(began)
		<-ctx.Done()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Submit(t.Context(), []byte("held")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-began:
	case <-testwait.End(t):
		t.Fatal("the job has not begun")
	}
	// timed: the handler does not return, so that only its context ends the wait
	short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	if left, err := store.(driver.Settler).Settle(short, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("settled while a handler runs: %d jobs are left, %v", left, err)
	}
	if left, err := store.(driver.Settler).Settle(t.Context(), 1); err != nil || left != 1 {
		t.Errorf("%d jobs are left, %v, want the one that runs", left, err)
	}
	cancel()
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestNames(t *testing.T) {
	if a, b := systems[0].Name(), systems[1].Name(); a != "river" || b != "river-tuned" {
		t.Errorf("%s and %s", a, b)
	}
	if v := systems[1].Version(); !strings.Contains(v, "MaxWorkers 2000, FetchCooldown 2ms") ||
		!strings.Contains(v, "shared_buffers=1GB") {
		t.Errorf("version %q does not tell what was tuned", v)
	}
}
