package river_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/river"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var systems = []driver.System{river.System{}, river.System{Tuned: true}}

func installed(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDelivery(t *testing.T) {
	for _, system := range systems {
		server, err := system.Serve(t.Context())
		installed(t, err)
		server.Stop() // every part has one of its own
		drivertest.Delivery(t, system, 1)
	}
	drivertest.Scenarios(t, river.System{Tuned: true}, 1)
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

// A worker whose context ends lets go of its handlers, and stop still waits for it.
func TestEndOfContext(t *testing.T) {
	system := river.System{Tuned: true}
	server, err := system.Serve(t.Context())
	installed(t, err)
	defer server.Stop()
	store := opened(t, system, server)
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
