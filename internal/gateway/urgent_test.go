package gateway

import (
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// What all workers are told comes first, wherever it is, and so does what is behind it.
func TestUrgentWorkIsClaimedNext(t *testing.T) {
	w := start(t)
	submit := func(partition uint16, priority, n int) (ids []flowfabric.ExecutionID) {
		w.Helper()
		var items []engine.NewExecution
		for range n {
			items = append(items, engine.NewExecution{ID: mint.ID(partition),
				Start: flowfabric.Start{Namespace: "n",
					Lane: "l", Kind: "k", Priority: priority}})
			ids = append(ids, items[len(items)-1].ID)
		}
		if _, err := w.e.CreateExecutions(w.ctx, partition, items); err != nil {
			w.Fatal(err)
		}
		return ids
	}
	for p := range uint16(4) {
		submit(p, 0, 5)
	}
	next := func() flowfabric.ExecutionID {
		w.Helper()
		got := w.claim(asking("w", 1, time.Minute, "k"))
		if len(got) != 1 {
			w.Fatalf("claimed %d", len(got))
		}
		return got[0].Fence.Execution
	}
	for range 4 {
		next()
	}
	partition := uint16(0)
	for range 3 { // whichever is in turn
		partition = (partition + 3) % 4
		told := w.urgent.Load()
		ids := submit(partition, 9, 2)
		testwait.Until(w.T, "it is told of urgent work", func() bool { return w.urgent.Load() > told })
		for range ids {
			if id := next(); !slices.Contains(ids, id) {
				t.Errorf("claimed %s of partition %d, not what is urgent in %d", id, id.Partition(), partition)
			}
		}
		next() // nothing else is urgent there
	}
}

// A ring for urgent work wakes like any other.
func TestUrgentRing(t *testing.T) {
	w := start(t)
	w.submit(1, "k")
	w.claim(asking("w", 1, time.Minute, "k"))
	var waiting conc.WaitGroup
	var got []Claim
	waiting.Go(func() { got = w.claim(asking("w", 1, time.Minute, "k")) })
	w.waits(1)
	x := engine.NewExecution{ID: mint.ID(1), Start: flowfabric.Start{Namespace: "n", Lane: "l",
		Kind: "k", Priority: 9}}
	if _, err := w.e.CreateExecutions(w.ctx, 1, []engine.NewExecution{x}); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if len(got) != 1 || got[0].Fence.Execution != x.ID {
		t.Errorf("claimed %+v", got)
	}
}
