package bounds

import (
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// boundCase puts a flow together and watches the calls that are dear.
type boundCase struct {
	name string
	run  func(b *bench)
}

var cases = []boundCase{
	{"100 members without edges", staged},
	{"flow of 100 in one call", submitted},
	{"1,000 edges into 100 members and into one", edges},
	{"release of 1,000 members", release},
	{"1,000 wait for one", fanOut},
	{"1,000 wait for one that fails", skips},
	{"join of 1,000", join},
	{"100 end, each with a dependant", pairs},
	{"100 end, each with 10 dependants", tens},
	{"1,000 are not needed any more", race},
	{"... and have 100 other dependants", glances},
	{"flow of 1,000 is cancelled", cancelled},
	{"1,000 children", children},
	{"48 members with 1,000 edges", dense},
	{"64 named inputs", inputs},
	{"retention", retention},
}

// staged: the members and the edges of a call at their most.
func staged(b *bench) {
	g := b.flow()
	g.many("a", b.n, nil)
	g.create()
	b.watch("", func() { g.stage(g.nodes) })
}

// submitted: a flow that is made and released in one call, of as many members as fit, and of as many edges.
func submitted(b *bench) {
	g := b.flow()
	g.many("a", 100, nil)
	b.watch("without edges", func() { g.make(engine.SealClosed) })
	g = b.flow()
	ups := g.many("a", 30, nil)
	g.many("b", 20, ups, named)
	b.watch("600 edges", func() { g.make(engine.SealClosed) })
}

func edges(b *bench) {
	g := b.flow()
	ups := g.many("a", b.n, nil)
	g.create()
	g.stage(g.nodes)
	first := len(g.nodes)
	for i := range 100 {
		g.node(fmt.Sprint("ten", i), ups[i*b.n/100:(i+1)*b.n/100], named)
	}
	b.watch("ten each", func() { g.stage(g.nodes[first:]) })
	first = len(g.nodes)
	g.node("one", ups, named)
	b.watch("all of one", func() { g.stage(g.nodes[first:]) })
	b.watch("", func() {
		for next := int64(0); next >= 0; {
			page, err := b.e.FlowMembers(b.ctx, g.id, next, 100, true)
			b.no(err)
			next = page.Next
		}
	})
}

func release(b *bench) {
	g := b.flow()
	g.many("a", b.n, nil)
	g.create()
	g.stage(g.nodes)
	b.watch("", func() {
		g.seal(engine.SealClosed)
		g.drain()
	})
}

func fanOut(b *bench) {
	g := b.flow()
	g.node("a", nil)
	g.many("b", b.n, []string{"a"}, named)
	g.submit()
	all := b.take(1)
	b.watch("", func() {
		b.completeAll(all, 1)
		b.drain()
	})
	b.watch("100 of them are claimed with an input", func() { b.take(b.n) })
}

func skips(b *bench) {
	g := b.flow()
	g.node("a", nil)
	g.many("b", b.n, []string{"a"})
	g.submit()
	all := b.take(1)
	b.watch("", func() {
		b.fail(all[0])
		b.drain()
	})
}

func join(b *bench) {
	g := b.flow()
	g.node("end", g.many("a", b.n, nil), named)
	g.submit()
	all := b.take(b.n)
	b.watch("one a call", func() { b.completeAll(all[:b.n/2], 1) })
	b.watch("100 a call", func() {
		b.completeAll(all[b.n/2:], 100)
		b.drain()
	})
	b.watch("its claim", func() { all = b.take(1) })
	b.watch("its inputs", func() { b.claimInputs(all[0]) })
}

// claimInputs repeats the claim, which reads anew what was too much to come along.
func (b *bench) claimInputs(flowfabric.ExecutionID) {
	q := b.claim
	q.Number--
	_, err := b.e.ClaimNext(b.ctx, q)
	b.no(err)
}

// pairs: a full settle whose dependants all come free, with a full claim of them in the same call.
func pairs(b *bench) {
	g := b.flow()
	for i := range b.n / 2 {
		g.node(fmt.Sprint("a", i), nil)
	}
	for i := range b.n / 2 {
		g.node(fmt.Sprint("b", i), []string{fmt.Sprint("a", i)}, named)
	}
	g.submit()
	all := b.take(b.n / 2)
	b.watch("100 are claimed in the same call", func() {
		for first := 0; first+100 <= len(all); first += 100 {
			b.complete(all[first:first+100], true)
		}
	})
}

func tens(b *bench) {
	g := b.flow()
	g.many("a", 100, nil)
	for i := range b.n {
		g.node(fmt.Sprint("b", i), []string{fmt.Sprint("a", i%100)})
	}
	g.submit()
	all := b.take(100)
	b.watch("", func() {
		b.completeAll(all, 100)
		b.drain()
	})
}

// race: any of many, of which a tenth is held by a worker; the rest waits.
func race(b *bench) {
	g := b.flow()
	g.node("end", g.many("a", b.n, nil), anyOf, cancelRest)
	g.submit()
	all := b.take(b.n / 10)
	b.watch("", func() {
		b.completeAll(all[:1], 1)
		b.drain()
	})
}

// glances: before one is cancelled, all its other dependants must be asked whether they need it; none does.
func glances(b *bench) {
	g := b.flow()
	g.node("z", nil)
	ups := g.many("a", 64, nil)
	g.many("d", 100, append([]string{"z"}, ups...), anyOf)
	g.node("end", ups, anyOf, cancelRest)
	g.submit()
	all := b.take(65)
	b.completeAll([]flowfabric.ExecutionID{g.id.Member("z")}, 1)
	b.drain()
	for i, id := range all {
		if id == g.id.Member("z") {
			all = append(all[:i:i], all[i+1:]...)
			break
		}
	}
	b.watch("", func() {
		b.completeAll(all[:1], 1)
		b.drain()
	})
}

func cancelled(b *bench) {
	g := b.flow()
	ups := g.many("a", b.n/2, nil)
	for i := range b.n / 2 {
		g.node(fmt.Sprint("b", i), ups[i:i+1])
	}
	g.submit()
	b.take(100)
	b.watch("", func() {
		_, err := b.e.CancelFlow(b.ctx, g.id, flowfabric.CancelAll)
		b.no(err)
		b.drain()
	})
}

func (b *bench) children(parent flowfabric.ExecutionID, park bool, first, n int) childtest.Waited {
	q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll}
	for i := first; i < first+n; i++ {
		name := fmt.Sprint("child", i)
		q.Children = append(q.Children, engine.FlowMember{NewExecution: b.item(parent.Child("wait", name)), Node: name})
	}
	do := childtest.Make
	if park {
		do = childtest.Wait
	}
	out, err := do(b.ctx, b.e, b.fences[parent], q)
	b.no(err)
	return out
}

// children: a handler makes as many as it may, waits for them, and is told how they ended; another one ends before
// they do.
func children(b *bench) {
	ids := []flowfabric.ExecutionID{mint.ID(0), mint.ID(0)}
	_, err := b.e.CreateExecutions(b.ctx, 0, []engine.NewExecution{b.item(ids[0]), b.item(ids[1])})
	b.no(err)
	b.take(2)
	b.watch("100 a call", func() {
		for first := 0; first < b.n; first += 100 {
			b.children(ids[0], first+100 >= b.n, first, min(100, b.n-first))
		}
	})
	all := b.take(b.n)
	b.watch("one of them ends", func() { b.completeAll(all[:100], 1) })
	b.watch("100 of them end", func() {
		b.completeAll(all[100:], 100)
		b.drain()
	})
	b.take(1)
	b.watch("the parent is told", func() { b.children(ids[0], true, 0, 0) })
	for first := 0; first < b.n; first += 100 {
		b.children(ids[1], first+100 >= b.n, first, min(100, b.n-first))
	}
	b.watch("the parent ends first", func() {
		_, err := b.e.CancelExecution(b.ctx, ids[1], engine.Cancellation{Source: engine.CancelOperator})
		b.no(err)
		b.drain()
	})
}

// dense: as many edges as a flow may have.
func dense(b *bench) {
	g := b.flow()
	ups := g.many("a", b.n, nil)
	ends := g.many("b", 48, ups)
	g.submit()
	all := b.take(b.n)
	b.completeAll(all[:b.n/2], 1)
	b.drain()
	most := min(b.n/2+100, b.n-1)
	b.watch("100 upstreams end", func() {
		b.completeAll(all[b.n/2:most], 100)
		b.drain()
	})
	for _, id := range all[most : b.n-1] {
		b.complete([]flowfabric.ExecutionID{id}, false)
		b.drain()
	}
	b.watch("the last fails", func() {
		b.fail(all[b.n-1])
		b.drain()
	})
	b.watch("", func() {
		for left := append(g.members(ends), all[b.n-1]); len(left) > 0; b.drain() {
			answers, err := b.e.ReplayFlow(b.ctx, g.id, engine.Replay{}, left)
			b.no(err)
			var again []flowfabric.ExecutionID
			for i, a := range answers {
				if errors.Is(a.Err, flowfabric.ErrState) {
					again = append(again, left[i])
				} else {
					b.no(a.Err)
				}
			}
			left = again
		}
	})
	b.take(1)
	b.completeAll(b.everyone(), 1)
	b.drain()
	ready := b.take(48)
	if len(ready) != 48 {
		b.no(fmt.Errorf("%d of 48 members can be claimed", len(ready)))
	}
	b.completeAll(ready, 48)
	b.watch("purge", func() {
		for _, id := range g.members(ends) {
			_, err := b.e.PurgeExecution(b.ctx, id, 0)
			b.no(err)
		}
	})
}

// inputs: claims that bring as many inputs as they can.
func inputs(b *bench) {
	g := b.flow()
	ups := g.many("a", 64, nil)
	g.many("b", 100, ups, named)
	g.submit()
	b.completeAll(b.take(64), 64)
	b.drain()
	b.watch("100 are claimed", func() { b.take(100) })
}

// retention: everything of a large flow is purged by ticks.
func retention(b *bench) {
	g := b.flow()
	ups := g.many("a", b.n/2, nil)
	for i := range b.n / 2 {
		g.node(fmt.Sprint("b", i), ups[i:i+1])
	}
	g.submit()
	for len(b.take(100)) > 0 {
		b.completeAll(b.everyone(), 100)
		b.drain()
	}
	b.advance("90000000")
	b.watch("", func() { b.tick(b.n/50 + 5) })
}
