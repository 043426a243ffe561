package httpapi

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/busy"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Gates and limits of keys that hold work back are told with who holds them, the one that holds back most in front.
func TestBusyGates(t *testing.T) {
	a := newAPI(t)
	a.as("operator", "PUT", "/v1/gates/one", `{"concurrency":1}`, 200)
	a.as("operator", "PUT", "/v1/gates/calm", `{"concurrency":1}`, 200)
	const gated = `{"kind":"stuck","gates":["one"]}`
	const keyed = `{"kind":"stuck","limits":[{"key":"tenant","concurrency":1}]}`
	holds := map[string]string{}
	for body, n := range map[string]int{gated: 3, keyed: 2} {
		holds[body] = a.submit(body)
		a.until(holds[body], "active")
		for range n {
			a.until(a.submit(body), "waiting_gate")
		}
	}
	var all []busy.Gate
	testwait.Progress(t, "all queues are closed at a time", func() (bool, any) {
		all = into[gatedAnswer](t, a.as("viewer", "GET", "/v1/gated?busy=true", "", 200)).Busy
		n := 0
		for _, g := range all {
			n += g.Waiting
		}
		return len(all) == 2 && n == 5, n
	})
	if g := all[0]; g.Gate != "one" || g.Waiting != 3 || g.Queues < 1 || g.Held != 1 || len(g.Holders) != 1 ||
		!strings.HasSuffix(holds[gated], "/"+g.Holders[0].Execution) || g.NextAt.IsZero() || g.Why == "" {
		t.Errorf("%+v, held by %s", g, holds[gated])
	}
	if g := all[1]; g.Key != "tenant" || g.PerKey != "1 at once" || g.Waiting != 2 || g.Held != 1 ||
		!strings.HasSuffix(holds[keyed], "/"+g.Holders[0].Execution) {
		t.Errorf("%+v, held by %s", g, holds[keyed])
	}
	close(a.release)
}
