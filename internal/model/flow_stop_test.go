package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// shape is a flow and the call whose work does not fit into it.
type shape struct {
	name string
	make func(*shaped)
	call func(*shaped)
	ends map[string]int // members by code when all work is done
}

// shaped is a flow that is put together for a shape.
type shaped struct {
	*flows
	id      flowfabric.FlowID
	members []engine.FlowMember
	claims  map[string]engine.Claim
}

func (x *shaped) node(name string, after ...string) *engine.FlowMember {
	e := engine.FlowMember{Node: name, NewExecution: engine.NewExecution{ID: x.id.Member(name),
		Start: flowfabric.Start{Namespace: "default",
			Lane: "default", Kind: "k"}}}
	for _, up := range after {
		e.Edges = append(e.Edges, engine.FlowEdge{From: x.id.Member(up), Input: "of " + up})
	}
	x.members = append(x.members, e)
	return &x.members[len(x.members)-1]
}

// many are n nodes with numbered names.
func (x *shaped) many(prefix string, n int, after ...string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
		x.node(all[i], after...)
	}
	return all
}

// release stages and releases the flow, and claims what it can.
func (x *shaped) release() {
	x.t.Helper()
	x.staged()
	_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealClosed, 0, 0)
	x.no(err)
	for more := true; more; {
		more, err = x.s.e.DrainFlows(x.ctx, partition)
		x.no(err)
	}
	x.take()
}

func (x *shaped) staged() {
	x.t.Helper()
	_, err := x.s.e.CreateFlow(x.ctx, engine.NewFlow{ID: x.id, Namespace: "default", Kind: "shape"})
	x.no(err)
	for first, n := 0, 0; first < len(x.members); first += n {
		edges := 0
		for n = 0; n < 100 && first+n < len(x.members) && edges+len(x.members[first+n].Edges) <= 1000; n++ {
			edges += len(x.members[first+n].Edges)
		}
		_, err := x.s.e.StageFlow(x.ctx, x.id, nil, x.members[first:first+n])
		x.no(err)
	}
}

// take claims up to 100 that can be claimed.
func (x *shaped) take() {
	x.t.Helper()
	h := x.holders[0]
	digest, err := x.s.e.SetSubscription(x.ctx, partition, engine.Subscription{Classes: []uint64{1}})
	x.no(err)
	out, err := x.s.e.ClaimNext(x.ctx,
		engine.ClaimRequest{Partition: partition, Session: h.session, Number: h.number + 1, TTL: time.Hour, Max: 100,
			Subscription: digest})
	x.no(err)
	h.number++
	for _, c := range out.Claims {
		x.claims[c.Node] = c
	}
}

func (x *shaped) complete(node string) {
	x.t.Helper()
	out, _, err := x.s.e.CompleteExecutions(x.ctx, partition,
		[]engine.Completion{{Fence: x.claims[node].Fence, Result: []byte("r")}}, nil)
	x.no(err)
	x.no(out[0].Err)
}

func (x *shaped) fail(node string) {
	x.t.Helper()
	_, err := x.s.e.FailExecution(x.ctx, x.claims[node].Fence, engine.Failure{Category: "broken", Permanent: true})
	x.no(err)
}

var shapes = []shape{
	{"a fan-out of 200", func(x *shaped) {
		x.node("root")
		x.many("leaf", 200, "root")
		x.release()
	}, func(x *shaped) { x.complete("root") }, map[string]int{"T1": 1, "R1f": 200}},
	{"a failure skips a chain of 150", func(x *shaped) {
		x.node("n0")
		for i := 1; i < 150; i++ {
			x.node(fmt.Sprint("n", i), fmt.Sprint("n", i-1))
		}
		x.release()
	}, func(x *shaped) { x.fail("n0") }, map[string]int{"T2": 1, "T5n": 149}},
	{"any of 100 cancels the other 99", func(x *shaped) {
		e := x.node("end", x.many("r", 100)...)
		e.Policy, e.CancelRest = codes.AnyOf, true
		x.release()
	}, func(x *shaped) { x.complete("r7") }, map[string]int{"T1": 1, "T3": 99, "R1f": 1}},
	{"any of 150, a hundred active, spares those that others need", func(x *shaped) {
		all := x.many("r", 150)
		e := x.node("end", all...)
		e.Policy, e.CancelRest = codes.AnyOf, true
		for i := range 50 {
			x.node(fmt.Sprint("needs", i), all[3*i:3*i+2]...)
		}
		x.release()
	}, func(x *shaped) {
		x.complete(slices.Sorted(maps.Keys(x.claims))[0])
	}, nil},
	{"layers of 70 that fail one after the other", func(x *shaped) {
		x.node("root")
		a := x.many("a", 70, "root")
		hub := x.node("hub", a...)
		hub.Policy, hub.K = codes.Quorum, 35
		x.many("b", 70, "hub")
		x.node("sink", "b0", "b69")
		x.release()
	}, func(x *shaped) { x.fail("root") }, map[string]int{"T2": 1, "T5n": 142}},
	{"a flow of 200 is cancelled", func(x *shaped) {
		x.many("r", 100)
		for i := range 100 {
			x.node(fmt.Sprint("s", i), fmt.Sprint("r", i))
		}
		x.release()
	}, func(x *shaped) {
		_, err := x.s.e.CancelFlow(x.ctx, x.id, flowfabric.CancelAll)
		x.no(err)
	}, map[string]int{"T3": 100, "T3n": 100}},
	{"the pending ones of 300 are cancelled", func(x *shaped) {
		x.many("r", 150)
		for i := range 150 {
			x.node(fmt.Sprint("s", i), fmt.Sprint("r", i))
		}
		x.release()
	}, func(x *shaped) {
		_, err := x.s.e.CancelFlow(x.ctx, x.id, flowfabric.CancelPending)
		x.no(err)
	}, map[string]int{"A1": 100, "T3n": 200}},
	{"200 roots are released", func(x *shaped) {
		x.many("r", 200)
		x.staged()
	}, func(x *shaped) {
		_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealClosed, 200, 0)
		x.no(err)
	}, map[string]int{"R1f": 200}},
	{"a parent ends before its 90 children", func(x *shaped) {
		x.node("parent")
		x.staged()
		_, _, err := x.s.e.SealFlow(x.ctx, x.id, engine.SealGrowing, 1, 0)
		x.no(err)
		x.take()
		f := x.claims["parent"].Fence
		q := engine.ChildWait{Name: "w", Mode: engine.WaitAll}
		for i := range 90 {
			q.Children = append(q.Children,
				engine.FlowMember{Node: fmt.Sprint("c", i), NewExecution: engine.NewExecution{
					ID: f.Execution.Child("w", fmt.Sprint(i)), Start: flowfabric.Start{Namespace: "default",
						Lane: "default", Kind: "k"}}})
		}
		_, err = childtest.Wait(x.ctx, x.s.e, f, q)
		x.no(err)
	}, func(x *shaped) {
		_, err := x.s.e.CancelExecution(x.ctx, x.id.Member("parent"),
			engine.Cancellation{Source: engine.CancelOperator})
		x.no(err)
	}, map[string]int{"T3": 1, "T3n": 90}},
}

// TestFlowStops stops everybody between the call that has too much to do and any of the calls that go on with it. A
// new owner's ticks alone bring every one of them to the same end.
func TestFlowStops(t *testing.T) {
	t.Parallel()
	s := redisServer(t)
	for _, sh := range shapes {
		t.Run(sh.name, func(t *testing.T) {
			first, calls := "", 0
			for stop := 0; ; stop++ {
				end, left := stopped(t, s, sh, stop)
				if stop == 0 {
					first = end
				}
				if end != first {
					t.Fatalf("stopped after %d calls it ends so:\n%s\nand after none so:\n%s", stop, end, first)
				}
				calls = stop
				if !left {
					break
				}
			}
			if calls == 0 {
				t.Error("everything fitted into one call")
			}
		})
	}
}

// stopped makes the call and some that go on with it, then leaves the rest to a new owner. It tells the end, and
// whether anything was left when it stopped.
func stopped(t *testing.T, s *server, sh shape, stop int) (end string, left bool) {
	t.Helper()
	x := &shaped{flows: newFlows(t, s, 1), claims: map[string]engine.Claim{}}
	x.id = flowfabric.FlowID(mint.Join(partition, x.uuid()))
	sh.make(x)
	if _, err := s.e.Tick(x.ctx, partition, "ticker", false); err != nil {
		t.Fatal(err)
	}
	sh.call(x)
	for n := range stop {
		var err error
		if n%2 == 0 {
			_, err = s.e.DrainFlows(x.ctx, partition)
		} else {
			_, err = s.e.Tick(x.ctx, partition, "ticker", false)
		}
		x.no(err)
		x.sound()
	}
	x.sound()
	left = len(x.dump.ZSets[":backlog"]) > 0
	x.o.now += 13_000 // a tick looks every ten seconds, and is overdue two later
	x.no(s.setClock(x.ctx, s.raw, x.o.now))
	for more := true; more; {
		out, err := s.e.Tick(x.ctx, partition, "another", false)
		x.no(err)
		if !out.Owner {
			x.fatal("the dead owner is still the owner")
		}
		more = out.More
		x.sound()
	}
	if n := len(x.dump.ZSets[":backlog"]); n > 0 {
		x.fatal("%d pieces of work are left, and the tick is idle", n)
	}
	return x.picture(sh), left
}

// sound holds the keyspace against the invariants.
func (x *shaped) sound() {
	x.t.Helper()
	x.look()
	if bad := x.checker.Violations(x.dump); len(bad) > 0 {
		x.fatal("not sound: %q", bad[:min(3, len(bad))])
	}
}

// picture is what must not depend on where it stopped: every member with its group, and the header's counters.
func (x *shaped) picture(sh shape) string {
	x.t.Helper()
	counts, lines := map[string]int{}, []string{}
	for member := range x.dump.ZSets[":fx:"+ids.UUID(x.id).String()] {
		core := x.dump.Hashes[":x:"+member]
		counts[core["s"]]++
		lines = append(lines, strings.Join([]string{core["nd"], core["s"], x.dump.Texts[":m:"+member], core["wt"],
			core["fc"], core["cb"], core["cs"]}, " "))
	}
	if sh.ends != nil && fmt.Sprint(counts) != fmt.Sprint(sh.ends) {
		x.fatal("it ends with %v, want %v", counts, sh.ends)
	}
	slices.Sort(lines)
	h := x.dump.Hashes[":fw:"+ids.UUID(x.id).String()]
	for _, field := range []string{"st", "lv", "bl", "mb", "mw", "md", "ma", "mu", "ms", "mf", "mc", "me", "mk", "xc",
		"xt", "xn", "xs"} {
		lines = append(lines, field+" "+h[field])
	}
	return strings.Join(lines, "\n")
}
