package main

import (
	"math"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// The throughput of a picture: what ended in the window before it, by route and in sum, failures apart.
func TestTopRates(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	id, err := flowfabric.ParseExecutionID(w.names["failed"])
	must.No(t, err)
	last, err := w.client.Execution(id).Get(w.ctx)
	must.No(t, err)
	same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	rates, err := recent(w.ctx, admin.New(w.client), last.EndedAt.Add(rateWindow))
	failed := rates[routeOf("default", "default", "broken")]
	if err != nil || !same(failed.ended, 0.1) || !same(failed.failed, 0.1) || !same(rates[""].failed, 0.1) {
		t.Errorf("the failed one is just within the window: %+v, %v", rates, err)
	}
	rates, err = recent(w.ctx, admin.New(w.client), last.EndedAt.Add(rateWindow+time.Millisecond))
	if err != nil || len(rates) != 0 {
		t.Errorf("all of it is too old: %+v, %v", rates, err)
	}
}
