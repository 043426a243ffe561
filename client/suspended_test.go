package client_test

import (
	"errors"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A call that waits for a suspension learns of it whether it came before or comes later, and that it will not come
// any more.
func TestAwaitSuspension(t *testing.T) {
	b := newBooth(t).Seed()
	x, token := b.Park(0)
	s, err := x.AwaitSuspension(b.Ctx)
	if err != nil || s.Name != "release" || s.Reason != "waiting_for_approval" {
		t.Fatalf("suspended before: %+v, %v", s, err)
	}
	must.No(t, b.Signal(token))

	var later conc.WaitGroup
	later.Go(func() {
		s, err := x.AwaitSuspension(b.Ctx)
		if err != nil || s.Name != "again" {
			t.Errorf("suspended later: %+v, %v", s, err)
		}
	})
	held := claim(b.Ctx, t, b.Engine, x.ID())
	q := engine.Suspension{ID: [16]byte{15: 1}, Name: "again", Reason: "manual_pause", Behaviour: "fail",
		Condition: "O"}
	if _, err := b.Engine.SuspendExecution(b.Ctx, held.Fence, q); err != nil {
		t.Fatal(err)
	}
	later.Wait()

	must.No(t, x.Cancel(b.Ctx, flowfabric.Reason("enough")))
	if _, err := x.AwaitSuspension(b.Ctx); !errors.Is(err, flowfabric.ErrTerminal) {
		t.Errorf("of an execution that has ended: %v", err)
	}
	if _, err := client.Attach(b.Client, write, mint.ID(1)).AwaitSuspension(b.Ctx); !errors.Is(err,
		flowfabric.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
}
