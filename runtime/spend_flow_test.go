package runtime

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
)

// Nodes of flows that a full budget refuses call the model no more until there is room, however often their queues are
// opened. Nodes of another budget, which take the same slots, and what depends on them go on meanwhile.
func TestRefusedSpendInFlows(t *testing.T) {
	for name, gate := range map[string]flowfabric.Gate{"with a limit of a key": "@2.0.0@acme",
		"with a gate": flowfabric.Gate("two")} {
		t.Run(name, func(t *testing.T) {
			y := newTreasury(t, tokens("b", 100, admission.HardBlock), tokens("other", 10_000, admission.HardBlock))
			if _, _, _, err := y.engine.PutGate(y.ctx, admission.Gate{Name: "two", Concurrency: 2}, 0); err != nil {
				t.Fatal(err)
			}
			calls := map[string]*atomic.Int64{"b": {}, "other": {}}
			y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				return handler.Step(ctx, task, "model", func(ctx context.Context) (string, error) {
					calls[in].Add(1)
					return "", task.Spend(ctx, "tokens", 70)
				})
			})
			const flows, pairs = 2, 4
			last := []flowfabric.ExecutionID{}
			for p := range uint16(flows) {
				id := flowfabric.FlowID(mint.ID(p))
				node := func(name, budget string) engine.FlowMember {
					return engine.FlowMember{Node: name, NewExecution: engine.NewExecution{ID: id.Member(name),
						Payload: []byte(`"` + budget + `"`), Start: testgate.Asks(flowfabric.Start{Namespace: "acme",
							Lane: "default", Kind: "k"}, flowfabric.Gate(budget), gate)}}
				}
				var members []engine.FlowMember
				for i := range pairs {
					first, then := node(fmt.Sprint("first", i), "other"), node(fmt.Sprint("then", i), "other")
					then.Edges = []engine.FlowEdge{{From: first.ID}}
					members = append(members, node(fmt.Sprint("b", i), "b"), first, then)
					last = append(last, then.ID)
				}
				if _, err := y.engine.CreateFlow(y.ctx, engine.NewFlow{ID: id, Namespace: "acme", Kind: "edition",
					Members: members, Mode: engine.SealClosed}); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range last {
				y.reach(id, "T1")
			}
			closed := y.quiet(flows*pairs - 1)
			n := calls["b"].Load()
			if refused := y.budget("b").Refused["tokens"]; refused != 70*(n-1) {
				t.Errorf("%d calls of the model, %d tokens refused", n, refused)
			}
			for range 5 {
				for partition, route := range closed {
					if _, err := y.engine.OpenRoutes(y.ctx, partition, []uint64{route}); err != nil {
						t.Fatal(err)
					}
				}
				y.quiet(flows*pairs - 1)
			}
			if again := calls["b"].Load(); again != n {
				t.Errorf("%d calls of the model, and %d when the queues had been opened again", n, again)
			}
			if other := calls["other"].Load(); other != 2*flows*pairs {
				t.Errorf("%d calls for the other budget, want one a node: %d", other, 2*flows*pairs)
			}
			y.used("b", 70)
			y.used("other", 70*2*flows*pairs)
		})
	}
}
