package offer

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

func TestOffer(t *testing.T) {
	o := New([]string{"n"}, []string{"a", "b"}, []string{"k"}, []string{"x", "y"})
	var table Table
	table.Learn(engine.ClaimReply{Table: 1, TableFull: true, Routes: []engine.Route{
		{ID: 9, Namespace: "n", Lane: "a", Kind: "k"},
		{ID: 2, Namespace: "n", Lane: "b", Kind: "k", Capabilities: []string{"y"}},
		{ID: 3, Namespace: "m", Lane: "a", Kind: "k"}, {ID: 4, Namespace: "n", Lane: "c", Kind: "k"},
		{ID: 5, Namespace: "n", Lane: "a", Kind: "j"},
		{ID: 6, Namespace: "n", Lane: "a", Kind: "k", Capabilities: []string{"x", "z"}},
	}})
	if got := o.Subscription(&table); !slices.Equal(got, []uint64{2, 3, 9}) {
		// of a class, whatever its own namespace is
		t.Errorf("subscription %v, want [2 3 9]", got)
	}
	for id, serves := range map[uint64]bool{9: true, 2: true, 3: false, 4: false, 5: false, 6: false} {
		if r, known := table.Route(id); !known || o.Serves(r) != serves {
			t.Errorf("route %d: known %v, serves %v", id, known, o.Serves(r))
		}
	}
	if got := New([]string{"n", "*"}, nil, nil, nil).Spaces(); got != nil {
		t.Errorf("all namespaces are %v", got)
	}
	if got := o.Spaces(); !slices.Equal(got, []string{"n"}) {
		t.Errorf("namespaces %v", got)
	}
}

func TestTableLearns(t *testing.T) {
	var table Table
	table.Learn(engine.ClaimReply{Table: 9, TableFull: true, Routes: []engine.Route{{ID: 9}},
		Others: []engine.Route{{ID: 8}}})
	if lost := table.Learn(engine.ClaimReply{Table: 10, Routes: []engine.Route{{ID: 10}}}); lost ||
		table.Classes() != 2 || table.Version != 10 {
		t.Errorf("after a delta: lost %v, %d classes, version %d", lost, table.Classes(), table.Version)
	}
	if _, known := table.Route(8); !known {
		t.Error("the route of a claim is forgotten")
	}
	if lost := table.Learn(engine.ClaimReply{Table: 4}); !lost || table.Classes() != 0 || table.Version != 0 {
		t.Errorf("after a failover: lost %v, %d classes, version %d", lost, table.Classes(), table.Version)
	}
	if _, known := table.Route(8); known {
		t.Error("a route from before the failover is known")
	}
}

// Rows of the route table go when nobody uses them, and nobody tells. A worker asks for all of them before those that
// went crowd out those that are there.
func TestRoutesThatWent(t *testing.T) {
	var table Table
	o := New([]string{"n"}, []string{"l"}, []string{"k"}, nil)
	row := func(id uint64) engine.Route { return engine.Route{ID: id, Namespace: "n", Lane: "l", Kind: "k"} }
	learn := func(whole bool, first, last uint64) {
		reply := engine.ClaimReply{Table: last, TableFull: whole}
		for id := first; id <= last; id++ {
			reply.Routes = append(reply.Routes, row(id))
		}
		table.Learn(reply)
		if list := o.Subscription(&table); list[len(list)-1] != last {
			t.Fatalf("the newest route %d is not in the subscription", last)
		}
	}
	learn(true, 1, 100)
	for id := uint64(101); id <= 217; id++ { // nobody tells how many of them went
		learn(false, id, id)
		if asks := table.Version == 0; asks != (id > 2*100+maxGone) {
			t.Fatalf("asks for the whole table after %d routes: %v", id, asks)
		}
	}
	learn(true, 217, 217)
	if list := o.Subscription(&table); len(list) != 1 || table.Version == 0 {
		t.Errorf("knows %v at version %d", list, table.Version)
	}
	learn(true, 1000, 1000+limits.MaxClasses-2)
	for id := uint64(1000 + limits.MaxClasses - 1); id <= 1000+limits.MaxClasses; id++ {
		// a subscription has no room for more
		learn(false, id, id)
		if asks := table.Version == 0; asks != (table.Classes() > limits.MaxClasses) {
			t.Fatalf("asks for the whole table with %d routes: %v", table.Classes(), asks)
		}
	}
}
