package engine

import (
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// fences creates and claims n executions whose attempts keep so many frames.
func fences(t testing.TB, e *Engine, n, keep int) []flowfabric.Fence {
	t.Helper()
	items := make([]NewExecution, n)
	for i := range items {
		items[i] = NewExecution{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "default", Lane: "default",
			Kind: "frames", Policy: flowfabric.Policy{StreamFrames: keep}}}
	}
	if _, err := e.CreateExecutions(t.Context(), 0, items); err != nil {
		t.Fatal(err)
	}
	claim := ClaimRequest{Session: NewSessionID("frames"), Number: 1, TTL: time.Hour, Max: n}
	r, err := e.ClaimNext(t.Context(), claim) // which tells of the routes
	must.No(t, err)
	claim.Table = r.Table
	var routes []uint64
	for _, row := range r.Routes {
		routes = append(routes, row.ID)
	}
	claim.Subscription, err = e.SetSubscription(t.Context(), 0, Subscription{Classes: routes})
	must.No(t, err)
	r, err = e.ClaimNext(t.Context(), claim)
	must.No(t, err)
	if len(r.Claims) != n {
		t.Fatalf("%d claims of %d", len(r.Claims), n)
	}
	out := make([]flowfabric.Fence, n)
	for i, c := range r.Claims {
		out[i] = c.Fence
	}
	return out
}
