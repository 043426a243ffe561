package runtime

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Rows of the route table go when nobody uses them, and nobody tells. A worker asks for all of them before those that went
// crowd out those that are there.
func TestRoutesThatWent(t *testing.T) {
	p := newPartition(0)
	o := newOffer(Config{Namespace: "n", Lanes: []string{"l"}}, []string{"k"})
	row := func(id uint64) engine.Route { return engine.Route{ID: id, Namespace: "n", Lane: "l", Kind: "k"} }
	for id := uint64(1); id <= limits.MaxClasses+1; id++ {
		p.learn(engine.ClaimReply{Table: id, Routes: []engine.Route{row(id)}})
		if list := o.subscription(p.table); list[len(list)-1] != id {
			t.Fatalf("the newest route %d is not in the interest", id)
		}
		if asks := p.version == 0; asks != (id > limits.MaxClasses) {
			t.Fatalf("asks for the whole table after %d routes: %v", id, asks)
		}
	}
	p.learn(engine.ClaimReply{Table: limits.MaxClasses + 1, TableFull: true, Routes: []engine.Route{row(limits.MaxClasses + 1)}})
	if list := o.subscription(p.table); len(list) != 1 || p.version == 0 {
		t.Errorf("knows %v at version %d", list, p.version)
	}
}
