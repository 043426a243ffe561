package scale

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// The partitions lie on the primaries of a real cluster as the model says, and so do their calls.
func TestPartitionsLieWhereAClusterPutsThem(t *testing.T) {
	for _, partitions := range []int{64, 256} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s, err := server.StartCluster(t.Context(), "redis-server", 3)
			if errors.Is(err, driver.ErrNotInstalled) || errors.Is(err, exec.ErrNotFound) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			nodes := s.Nodes()
			for p := range partitions {
				if slot, err := nodes[0].Do(t.Context(), "CLUSTER", "KEYSLOT",
					keys.Root(uint16(p))).ToInt64(); err != nil || int(slot) != Slot(p) {
					t.Fatalf("partition %d is in slot %d, the model says %d: %v", p, slot, Slot(p), err)
				}
			}
			e, err := engine.Open(t.Context(),
				engine.Config{URL: s.URL(), Partitions: uint16(partitions), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			calls := func() (out []float64) {
				for _, n := range nodes {
					sample, err := n.Sample(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, sample.Commands["fcall"].Calls)
				}
				return out
			}
			before := calls()
			for p := range partitions {
				if _, err := e.CreateExecutions(t.Context(), uint16(p),
					[]engine.NewExecution{{ID: mint.ID(uint16(p)),
						Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "bench",
							Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}}}); err != nil {
					t.Fatal(err)
				}
			}
			for i, after := range calls() {
				if want := Spread(partitions, len(nodes))[i]; int(after-before[i]) != want {
					t.Errorf("primary %d had %g calls, it has %d partitions", i, after-before[i], want)
				}
			}
		})
	}
}

// What the constants are measured by goes through, and all of them are there.
func TestConstants(t *testing.T) {
	c, err := Constants(t.Context(), "redis-server", 0, Costs{})
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := c.Bytes
	for name, v := range map[string]float64{"poll": c.Poll.Fixed, "empty claim": c.Empty, "fan-out": c.Fanout,
		"connection": b.Connection, "channel": b.Subscription, "subscriber": b.Shared, "waiter": b.Waiter,
		"session": b.Session, "registration": b.Registration} {
		if v <= 0 {
			t.Errorf("%s: %g", name, v)
		}
	}
	if b.Connection < b.Registration || b.Registration < b.Waiter {
		t.Errorf("a connection has %g bytes, a registered worker %g, a waiter %g", b.Connection, b.Registration,
			b.Waiter)
	}
}
