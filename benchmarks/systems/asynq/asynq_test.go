package asynq_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/asynq"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const program = "redis-server"

var configurations = []struct {
	system   driver.System
	retained int
	settings string
}{
	{asynq.Default(program), 1,
		fmt.Sprintf("Retention 1h0m0s, TaskCheckInterval 1s, PoolSize %d", 10*runtime.GOMAXPROCS(0))},
	{asynq.Delete(program), 0,
		fmt.Sprintf("Retention 0s, TaskCheckInterval 1s, PoolSize %d", 10*runtime.GOMAXPROCS(0))},
	{asynq.Tuned(program), 1, "Retention 1h0m0s, TaskCheckInterval 5ms, PoolSize 100"},
}

func TestConfigurations(t *testing.T) {
	drivertest.Needs(t, program)
	for _, c := range configurations {
		t.Run(c.system.Name(), func(t *testing.T) {
			t.Parallel() // they mostly wait for workers that sleep
			// A test binary does not know the versions of its modules; the command does.
			if v := c.system.Version(); !strings.Contains(v, ", go-redis ") || !strings.HasSuffix(v, "; "+c.settings) {
				t.Errorf("version %q", v)
			}
			drivertest.Delivery(t, c.system, c.retained)
			if c.system.Name() == "asynq-tuned" { // the others would run the same, waiting for seconds
				drivertest.Scenarios(t, c.system, c.retained)
			}
		})
	}
}

// What asynq warns of is an error of the worker: here a task that is gone when it is to be completed.
func TestWorkerTellsItsErrors(t *testing.T) {
	drivertest.Needs(t, program)
	system := asynq.Tuned(program)
	s, err := system.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	store, err := system.Open(t.Context(), s, driver.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	handling := make(chan struct{})
	stop, err := store.Work(t.Context(), driver.Worker{Concurrency: 1, Handle: func(ctx context.Context, _ []byte) {
		if err := s.Reset(ctx); err != nil {
			t.Error(err)
		}
		close(handling)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Submit(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-handling:
	case <-testwait.End(t):
		t.Error("the job was not handled")
	}
	if err := stop(); err == nil || !strings.Contains(err.Error(), "NOT FOUND") {
		t.Errorf("the worker that lost its task ended with %v", err)
	}
}
