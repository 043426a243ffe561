package raw_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/raw"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const program = "redis-server"

func TestRaw(t *testing.T) {
	drivertest.Needs(t, program)
	system := raw.System{Program: program}
	drivertest.Delivery(t, system, drivertest.NotRetained)
	drivertest.Scenarios(t, system, drivertest.NotRetained)
}

// A worker never takes more than it has slots for, and leaves the rest to others.
func TestTakesNoMoreThanItsSlots(t *testing.T) {
	drivertest.Needs(t, program)
	system := raw.System{Program: program}
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
	if err := store.SubmitMany(t.Context(),
		[][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("e")}); err != nil {
		t.Fatal(err)
	}
	began, letGo := make(chan string, 5), make(chan struct{})
	work := func(concurrency int) func() error {
		stop, err := store.Work(t.Context(),
			driver.Worker{Concurrency: concurrency, Handle: func(_ context.Context, payload []byte) {
				began <- string(payload)
				<-letGo
			}})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	await := func(n int) (seen string) {
		for range n {
			select {
			case payload := <-began:
				seen += payload
			case <-testwait.End(t):
				t.Fatalf("only %q have begun", seen)
			}
		}
		return seen
	}
	stopFirst := work(2)
	if first := await(2); first != "ab" && first != "ba" {
		t.Errorf("the first worker began with %q, want the two oldest", first)
	}
	stopSecond := work(3)
	await(3)
	close(letGo)
	for _, stop := range []func() error{stopFirst, stopSecond} {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}
