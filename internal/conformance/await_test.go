package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// neighbour is another partition, empty and booted; in a cluster of several primaries it is on another one.
func (w *env) neighbour() *env {
	w.Helper()
	p, raw := (w.p+partitions/2)%partitions, w.raw
	if w.srv.Node != nil {
		for w.srv.Node(p) == w.srv.Node(w.p) {
			p = (p + 1) % partitions
		}
		raw = lookers(w.T, *w.srv)(p)
	}
	return newEnv(w.T, w.srv, w.e, raw, p)
}

// waiter is an execution that waits for others, and its holder.
type waiter struct {
	*env
	by    *worker
	id    flowfabric.ExecutionID
	fence flowfabric.Fence
	name  int // of waits after the first
}

// wait is the name of its wait.
func (x *waiter) wait() string {
	if x.name == 0 {
		return "wait"
	}
	return fmt.Sprint("wait ", x.name)
}

// mine is a new worker that takes the waiter alone.
func (x *waiter) mine() *worker {
	own := x.read(x.id).Route.Lane
	x.by = x.worker("waiter")
	x.by.can = func(r engine.Route) bool { return r.Lane == own }
	return x.by
}

// waiter is an execution that is held.
func (w *env) waiter(opts ...option) *waiter {
	w.Helper()
	x := &waiter{env: w, id: w.create(append([]option{lane("waiter")}, opts...)...)}
	x.fence = x.mine().one(x.id).Fence
	return x
}

// lists puts executions on the list of the wait, by name, as they are when they are looked at.
func (x *waiter) lists(mode engine.WaitMode, others map[string]flowfabric.ExecutionID) {
	x.Helper()
	q := engine.ChildWait{Name: x.wait(), Mode: mode}
	names := slices.Sorted(maps.Keys(others))
	var made []flowfabric.ExecutionID
	for _, name := range names {
		made = append(made, others[name])
	}
	var err error
	q.Others, err = x.e.CheckOthers(x.ctx, x.id, made)
	x.no(err)
	for i, name := range names {
		q.Others[i].Node = name
	}
	x.no(x.e.WaitForOthers(x.ctx, x.fence, q))
	x.check()
}

// sleeps suspends the waiter until enough of them have ended.
func (x *waiter) sleeps(opts ...suspending) engine.Suspended {
	x.Helper()
	q := suspension(append([]suspending{waitFor("K"), because("waiting_for_children"), awaiting(x.wait())}, opts...)...)
	s, err := x.e.SuspendExecution(x.ctx, x.fence, q)
	x.no(err)
	x.check()
	return s
}

// waits is both.
func (x *waiter) waits(mode engine.WaitMode, others map[string]flowfabric.ExecutionID, opts ...suspending) {
	x.Helper()
	x.lists(mode, others)
	same(x.env, "satisfied", x.sleeps(opts...).Satisfied, false)
}

// told claims the waiter and tells what ended its wait, and how the others were then.
func (x *waiter) told() string {
	x.Helper()
	c := x.mine().one(x.id)
	x.fence = c.Fence
	kids, err := engine.DecodeChildren(x.p, c.Steps[engine.StepChildren+"wait"])
	x.no(err)
	cause := ""
	if c.Resume != nil {
		cause = string(c.Resume.Cause)
	}
	return fmt.Sprint(cause, " ", outcomeWords(kids))
}

func outcomeWords(kids []engine.ChildOutcome) map[string]string {
	got := map[string]string{}
	for _, o := range kids {
		got[o.Node] = string(o.Outcome)
		if o.Gone {
			got[o.Node] = "gone"
		}
	}
	return got
}

// elsewhere is an execution of another partition, as functions name it.
func elsewhere(id flowfabric.ExecutionID, name string) string {
	return fmt.Sprintf("%d.%s", (id.Partition()+1)%partitions, ids.UUID(id.Child("elsewhere", name)))
}

// spread delivers the outboxes of partitions, as the owners of their ticks do, until all are empty.
func spread(ws ...*env) {
	for again := true; again; {
		again = false
		for _, w := range ws {
			w.Helper()
			n, err := admit.Deliver(w.ctx, w.e, w.p)
			w.no(err)
			again = again || n > 0
			w.check()
		}
	}
}

// noticed is how many notices are in the outbox.
func (w *env) noticed() int {
	w.Helper()
	entries, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
	w.no(err)
	n := 0
	for _, x := range entries {
		n += len(x.Awaiting) + len(x.Ends)
	}
	return n
}

// ended ends an execution that waits to be claimed: + with success, - for good, x cancelled, e expired.
func (w *env) ended(id flowfabric.ExecutionID, how byte) {
	w.Helper()
	switch how {
	case 'x':
		w.cancel(id)
		return
	case 'e':
		w.advance(time.Hour + time.Second)
		w.tick()
		return
	}
	k, own := w.worker("ender"), w.read(id).Route.Lane
	k.can = func(r engine.Route) bool { return r.Lane == own }
	c := k.one(id)
	if how == '+' {
		w.no(w.complete(c.Fence, "done").Err)
	} else {
		w.fail(c.Fence, "permanent")
	}
	w.check()
}

// halfway is a store in which waiters cannot be told.
type halfway struct{ *engine.Engine }

func (halfway) TellWaiters(context.Context, uint16, []engine.AwaitedEnd) (int, error) {
	return 0, flowfabric.ErrTransport
}

// randomWaits lets executions of two partitions wait for each other's, and does in a random order what ends them,
// replays them, ends their waits and delivers the outboxes, some of it twice. In the end every execution that was
// waited for has ended: then nobody waits, and nobody is registered.
func randomWaits(w, other *env, r *rand.Rand) {
	w.Helper()
	w.reset()
	other.reset()
	at := []*env{w, other}
	var all []flowfabric.ExecutionID
	home := map[flowfabric.ExecutionID]*env{}
	for i := range 4 {
		e := at[i%2]
		id := e.create(lane("a"+strconv.Itoa(i)), retries(0))
		all, home[id] = append(all, id), e
	}
	var waiters []*waiter
	for i := range 3 {
		x := pick(r, at).waiter(lane(fmt.Sprint("w", i)))
		waiters = append(waiters, x)
	}
	asleep := map[*waiter]bool{}
	held := map[*waiter]bool{}
	for _, x := range waiters {
		held[x] = true
	}
	begin := func(x *waiter) {
		others := map[string]flowfabric.ExecutionID{}
		for i, id := range all {
			if i == 0 || r.IntN(2) == 0 {
				others[string("abcd"[i])] = id
			}
		}
		x.name++
		x.lists(pick(r, []engine.WaitMode{engine.WaitAll, engine.WaitFirst, engine.WaitFirstSuccess,
			engine.WaitFailFast}), others)
		if r.IntN(4) == 0 { // its worker dies before it suspends
			return
		}
		if s := x.sleeps(); !s.Satisfied {
			asleep[x], held[x] = true, false
		}
	}
	claim := func(x *waiter) {
		if code := x.core(x.id)["s"]; asleep[x] && code == "R1i" {
			x.fence = x.mine().one(x.id).Fence
			asleep[x], held[x] = false, true
		}
	}
	var late [][]engine.AwaitedEnd
	step := func() {
		x, id := pick(r, waiters), pick(r, all)
		e := home[id]
		state := e.core(id)["s"]
		switch r.IntN(8) {
		case 0, 1:
			if held[x] {
				begin(x)
			}
		case 2:
			if state[0] == 'R' {
				e.ended(id, "+-x"[r.IntN(3)])
			}
		case 3:
			if state == "T2" || state == "T3" || state == "T3n" {
				e.replay(id, engine.Replay{})
			}
		case 4:
			if asleep[x] && x.core(x.id)["s"] == "S8" && r.IntN(3) == 0 {
				x.resume(x.id)
			}
		case 5:
			claim(x)
		case 6:
			d := pick(r, at)
			entries, _, err := d.e.ReadOutbox(d.ctx, d.p, "")
			d.no(err)
			for _, entry := range entries { // they come again later
				late = append(late, entry.Ends)
			}
			_, err = admit.Deliver(d.ctx, d.e, d.p)
			d.no(err)
		case 7:
			if len(late) > 0 {
				for _, end := range pick(r, late) {
					_, err := w.e.TellWaiters(w.ctx, end.Waiter.Partition(), []engine.AwaitedEnd{end})
					w.no(err)
				}
			}
		}
		w.check()
		other.check()
	}
	for range 40 {
		step()
	}
	for _, id := range all {
		if home[id].core(id)["s"][0] != 'T' {
			home[id].ended(id, '+')
		}
	}
	spread(w, other)
	for _, x := range waiters {
		claim(x)
		if asleep[x] {
			x.Fatalf("%s waits for ever, in %s: %v", x.id, x.core(x.id)["s"], x.hash(x.k.Children(ids.UUID(x.id))))
		}
		x.no(x.complete(x.fence, "").Err)
	}
	spread(w, other)
	for _, id := range all {
		same(w, "left behind", len(home[id].hash(home[id].k.Awaiting(ids.UUID(id)))), 0)
	}
}

// await: an execution waits for others that it did not make, in its partition and in another one.
var awaitScenarios = []scenario{
	{name: "a wait for executions that the waiter did not make ends with theirs, in the same partition and in another one", run: func(w *env) {
		other := w.neighbour()
		for _, c := range []struct {
			mode  engine.WaitMode
			ends  string
			wants string
		}{
			{engine.WaitAll, "+-x", "children map[a:completed b:failed c:cancelled]"},
			{engine.WaitAll, "e++", "children map[a:expired b:completed c:completed]"},
			{engine.WaitFirst, "-", "children map[a:failed b: c:]"},
			{engine.WaitFirstSuccess, "-+", "children map[a:failed b:completed c:]"},
			{engine.WaitFailFast, "+-", "children map[a:completed b:failed c:]"},
		} {
			for _, there := range []*env{w, other} {
				w.reset()
				other.reset()
				made := map[string]flowfabric.ExecutionID{"a": there.create(lane("a"), deadline(time.Hour)),
					"b": there.create(lane("b")), "c": there.create(lane("c"))}
				x := w.waiter(timeout(24 * time.Hour))
				x.waits(c.mode, made)
				w.code(x.id, "S8")
				spread(w, there)
				for _, id := range made {
					same(w, "knows", there.core(id)["aw"], "1")
				}
				for i := range c.ends {
					w.code(x.id, "S8")
					there.ended(made[string("abc"[i])], c.ends[i])
					spread(w, there)
				}
				w.code(x.id, "R1i")
				same(w, c.ends, x.told(), c.wants)
				spread(w, there)
				for name, id := range made { // nobody is left on a list
					same(w, "list of "+name, len(there.hash(there.k.Awaiting(ids.UUID(id)))), 0)
				}
			}
		}
	}},
	{name: "those that had ended before a wait count at once", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(), w.create(lane("b"))
		other.ended(a, '+')
		w.ended(b, '-')
		x := w.waiter()
		x.lists(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a, "b": b})
		same(w, "nobody is asked", w.noticed(), 0)
		s := x.sleeps()
		same(w, "satisfied", s.Satisfied, true)
		w.code(x.id, "A1")
		r, err := childtest.Wait(w.ctx, w.e, x.fence, engine.ChildWait{Name: "wait", Mode: engine.WaitAll})
		w.no(err)
		w.all("outcomes", eq(r.Satisfied, true),
			eqDeep(outcomeWords(r.Outcomes), map[string]string{"a": "completed", "b": "failed"}))
		w.unchanged("listed again when it is over", func() {
			w.no(w.e.WaitForOthers(w.ctx, x.fence,
				engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Others: r.Outcomes}))
		})
	}},
	{name: "one that ends between the look and the suspension is told", run: func(w *env) {
		other := w.neighbour()
		for _, when := range []string{"before it is listed", "before the suspension", "before it is asked",
			"after it is asked"} {
			w.reset()
			other.reset()
			a, x := other.create(), w.waiter()
			looked, err := w.e.CheckOthers(w.ctx, x.id, []flowfabric.ExecutionID{a})
			w.no(err)
			looked[0].Node = "a"
			steps := map[string]func(){
				"before it is listed": func() {
					w.no(w.e.WaitForOthers(w.ctx, x.fence,
						engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Others: looked}))
				},
				"before the suspension": func() { x.sleeps() },
				"before it is asked":    func() { spread(w) },
				"after it is asked":     func() { spread(other, w) },
			}
			for _, step := range []string{"before it is listed", "before the suspension", "before it is asked",
				"after it is asked"} {
				if step == when {
					other.ended(a, '+')
				}
				steps[step]()
			}
			spread(w, other)
			same(w, when, x.told(), "children map[a:completed]")
		}
	}},
	{name: "telling twice, late, or about an earlier wait changes nothing", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(lane("a")), other.create(lane("b"))
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a, "b": b})
		asked, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
		w.no(err)
		spread(w)
		other.unchanged("asked again", func() {
			for _, entry := range asked {
				_, err := w.e.NoteWaiters(w.ctx, other.p, entry.Awaiting, false)
				w.no(err)
			}
		})
		other.ended(a, '-')
		ends, _, err := w.e.ReadOutbox(w.ctx, other.p, "")
		w.no(err)
		tell := func() int {
			n, err := w.e.TellWaiters(w.ctx, w.p, ends[0].Ends)
			w.no(err)
			return n
		}
		same(w, "told", tell(), 1)
		w.unchanged("told again", func() { same(w, "told again", tell(), 0) })
		other.replay(a, engine.Replay{})
		spread(w, other)
		w.code(x.id, "S8")
		w.resume(x.id)
		same(w, "resumed", x.told(), "operator map[a:failed b:]")
		spread(w, other)
		same(w, "b is forgotten", other.core(b)["aw"], "")
		q := engine.ChildWait{Name: "again", Mode: engine.WaitAll}
		q.Others, err = w.e.CheckOthers(w.ctx, x.id, []flowfabric.ExecutionID{a})
		w.no(err)
		q.Others[0].Node = "a"
		w.no(w.e.WaitForOthers(w.ctx, x.fence, q))
		_, err = w.e.SuspendExecution(w.ctx, x.fence,
			suspension(waitFor("K"), because("waiting_for_children"), awaiting("again")))
		w.no(err)
		w.unchanged("told of the earlier wait", func() { same(w, "late", tell(), 0) })
		same(w, "withdrawn late", func() int { // that the first wait is over comes again, after the second has begun
			spread(w, other)
			over := slices.Clone(asked[0].Awaiting)
			for i := range over {
				over[i].Over = true
			}
			_, err := w.e.NoteWaiters(w.ctx, other.p, over, false)
			w.no(err)
			return len(other.hash(other.k.Awaiting(ids.UUID(a))))
		}(), 1)
		other.ended(a, '+')
		spread(w, other)
		c := x.by.one(x.id)
		kids, err := engine.DecodeChildren(w.p, c.Steps[engine.StepChildren+"again"])
		w.no(err)
		sameDeep(w, "the second wait", outcomeWords(kids), map[string]string{"a": "completed"})
	}},
	{name: "a waiter that ends, or waits for something else, leaves nothing behind", run: func(w *env) {
		other := w.neighbour()
		for how, end := range map[string]func(*waiter){
			"cancelled":     func(x *waiter) { w.cancel(x.id) },
			"timed out":     func(*waiter) { w.advance(2 * time.Minute); w.tick() },
			"resumed":       func(x *waiter) { w.resume(x.id) },
			"other wait":    nil,
			"completed":     nil,
			"continued":     nil,
			"failed":        nil,
			"retried twice": nil,
		} {
			w.reset()
			other.reset()
			a := other.create()
			x := w.waiter()
			if end != nil {
				x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a}, within(time.Minute, "fail"))
			} else {
				x.lists(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
			}
			spread(w, other)
			same(w, how+": it is awaited", len(other.hash(other.k.Awaiting(ids.UUID(a)))), 1)
			switch how {
			case "other wait":
				_, err := childtest.Wait(w.ctx, w.e, x.fence, engine.ChildWait{Name: "second", Mode: engine.WaitAll,
					Children: []engine.FlowMember{w.child(x.id, "second", "k")}})
				w.no(err)
			case "completed":
				w.no(w.complete(x.fence, "").Err)
			case "continued":
				w.goOn(x.fence, "more")
			case "failed":
				w.fail(x.fence, "permanent")
			case "retried twice":
				w.no(w.e.WaitForOthers(w.ctx, x.fence, engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
					Others: []engine.ChildOutcome{{ID: a, Node: "a"}}}))
				same(w, "asked once", w.noticed(), 0)
				w.no(w.complete(x.fence, "").Err)
			default:
				end(x)
			}
			w.check()
			spread(w, other)
			w.all(how+": it is awaited", eq(other.core(a)["aw"], ""),
				eq(len(other.hash(other.k.Awaiting(ids.UUID(a)))), 0))
			other.ended(a, '+')
			same(w, how+": nobody is told", other.noticed(), 0)
		}
	}},
	{name: "an audit keeps the mark of what is awaited, and removes it when nobody waits", run: func(w *env) {
		other := w.neighbour()
		a := other.create()
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		w.all("awaited", eq(found(other.audit(true)), ""), eq(other.core(a)["aw"], "1"))
		other.set("DEL", other.k.Awaiting(ids.UUID(a)))
		same(w, "found", strings.Contains(found(other.audit(true)), "awaited, and by nobody"), true)
		same(w, "mark", other.core(a)["aw"], "")
		w.cancel(x.id)
		spread(w, other)
	}},
	{name: "a waiter that was replayed or lost its lease asks again", run: func(w *env) {
		other := w.neighbour()
		a := other.create()
		x := w.waiter()
		x.lists(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		w.advance(ttl + time.Second)
		w.tick()
		w.advance(time.Hour)
		w.tick()
		x.by = w.worker("second")
		x.fence = x.by.one(x.id).Fence
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		other.ended(a, '-')
		spread(w, other)
		same(w, "told", x.told(), "children map[a:failed]")
		w.fail(x.fence, "permanent")
		other.replay(a, engine.Replay{})
		w.replay(x.id, engine.Replay{})
		x.fence = x.by.one(x.id).Fence
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		other.ended(a, '+')
		spread(w, other)
		same(w, "told again", x.told(), "children map[a:completed]")
	}},
	{name: "one that continues, is tried again or is moved has not ended", run: func(w *env) {
		other := w.neighbour()
		a := other.create(retries(3))
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		k := other.worker("k")
		other.goOn(k.one(a).Fence, "next")
		spread(w, other)
		w.code(x.id, "S8")
		_, err := other.e.FailExecution(other.ctx, k.one(a).Fence, engine.Failure{Category: "io", Reason: "again"})
		w.no(err)
		spread(w, other)
		w.code(x.id, "S8")
		other.advance(time.Hour)
		other.tick()
		k = other.worker("k2")
		w.no(other.complete(k.one(a).Fence, "").Err)
		spread(w, other)
		same(w, "told", x.told(), "children map[a:completed]")
	}},
	{name: "a wait for a member of the own flow that cannot run before the waiter ends is refused", run: func(w *env) {
		g := w.flow().node("a", nil).node("side", nil).node("b", []string{"a"}).node("c", []string{"b"}).
			node("both", []string{"a", "side"}).node("either", []string{"a", "side"}, anyOf).
			node("behind", []string{"a", "b", "side"}, quorum(2)).node("watch", []string{"c"}, allEnded).
			node("far", []string{"either"}).submit(engine.SealClosed)
		check := func(waiter, name string) error {
			_, err := w.e.CheckOthers(w.ctx, g.id.Member(waiter), []flowfabric.ExecutionID{g.id.Member(name)})
			return err
		}
		for _, name := range []string{"b", "c", "both", "behind", "watch"} {
			w.refuses(name, denied.Cycle, ids.UUID(g.id.Member(name)).String()+" it depends on the waiter",
				func() error { return check("a", name) })
		}
		for _, name := range []string{"side", "either", "far"} {
			w.no(check("a", name))
		}
		for _, name := range []string{"a", "b", "both", "either"} {
			w.no(check("c", name))
		}
		w.is(check("side", "both"), denied.Cycle)
		w.no(check("side", "behind"))
		roots := g.claim()
		g.complete(roots["side"], "")
		w.is(check("a", "both"), denied.Cycle)
		w.is(check("a", "behind"), denied.Cycle)
		g.complete(roots["a"], "")
		w.no(check("side", "both"))
	}},
	{name: "what cannot be waited for is refused before the wait", run: func(w *env) {
		other := w.neighbour()
		x := w.waiter()
		check := func(made ...flowfabric.ExecutionID) error {
			_, err := w.e.CheckOthers(w.ctx, x.id, made)
			return err
		}
		nobody := mint.Join(other.p, ids.UUID(mint.ID(1)))
		w.refuses("nobody", flowfabric.ErrNotFound, ids.UUID(nobody).String(), func() error { return check(nobody) })
		purged := other.create()
		other.cancel(purged)
		_, err := other.e.PurgeExecution(other.ctx, purged, 24*time.Hour)
		w.no(err)
		w.refuses("purged", flowfabric.ErrResultPurged, ids.UUID(purged).String(),
			func() error { return check(purged) })
		w.is(check(x.id), denied.SelfEdge)
		w.is(check(mint.Join(partitions, ids.UUID(nobody))), flowfabric.ErrInvalidInput)
		w.refuses("itself", denied.SelfEdge, "a", func() error {
			return w.e.WaitForOthers(w.ctx, x.fence, engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
				Others: []engine.ChildOutcome{{ID: x.id, Node: "a"}}})
		})
		there := other.waiter()
		there.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"x": x.id})
		w.is(check(there.id), denied.Cycle)
		f := w.family()
		f.wait(engine.WaitAll, true, "kid")
		kid := f.child(f.parent, "wait", "kid").ID
		_, err = w.e.CheckOthers(w.ctx, kid, []flowfabric.ExecutionID{f.parent})
		w.is(err, denied.Cycle)
		var many []engine.ChildOutcome
		for i := range 1001 {
			many = append(many, engine.ChildOutcome{ID: mint.ID(other.p), Node: fmt.Sprint("n", i)})
		}
		w.is(w.e.WaitForOthers(w.ctx, x.fence, engine.ChildWait{Name: "many", Mode: engine.WaitAll, Others: many}),
			denied.FanIn)
		a := other.create(lane("popular"))
		other.editRecord(ids.UUID(a), func(f fields) { f["aw"] = "1" })
		args := []string{"HSET", other.k.Awaiting(ids.UUID(a))}
		for range 1000 {
			args = append(args, "1."+ids.UUID(mint.ID(1)).String(), "1.0")
		}
		other.set(args...)
		w.refuses("1,001 waiters", denied.FanIn, ids.UUID(a).String()+" 1000 executions wait for it", func() error {
			return check(a)
		})
		other.cancel(a)
		same(w, "told all", len(other.hash(other.k.Awaiting(ids.UUID(a)))), 0)
		other.reset()
	}},
	{name: "one that ends while only a signal is missing withdraws its wait", run: func(w *env) {
		w.seed()
		other := w.neighbour()
		x, a, b := w.waiter(), other.create(), other.create()
		m := minted("stop")
		x.waits(engine.WaitFirst, map[string]flowfabric.ExecutionID{"a": a, "b": b},
			waitFor(conditionOf(names(1, 1, ""), "K", group(2, 1, 2)), m))
		spread(w, other)
		other.cancel(a)
		spread(w, other)
		w.code(x.id, "S8")
		w.cancel(x.id)
		spread(w, other)
		same(w, "b is awaited by", len(other.hash(other.k.Awaiting(ids.UUID(b)))), 0)
		same(w, "b", other.core(b)["aw"], "")
	}},
	{name: "what a tick ends is told with the same tick", run: func(w *env) {
		other := w.neighbour()
		x, a := w.waiter(), other.create(deadline(time.Second))
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		other.tick() // there is nothing to deliver
		other.advance(time.Second)
		same(w, "outbox", other.tick().Outbox, 1)
		other.check()
		spread(w, other)
		same(w, "told", x.told(), "children map[a:expired]")
	}},
	{name: "what ended while something was attached is told after it was detached", run: func(w *env) {
		other := w.neighbour()
		attach := func(gates string) { other.must("ff_attach", proto, "n\x1felsewhere", gates, "set") }
		attach("some")
		x, a := w.waiter(), other.create()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		other.cancel(a)
		attach("")
		other.check()
		same(w, "outbox", other.tick().Outbox, 1)
		spread(w, other)
		other.tick()
		same(w, "told", x.told(), "children map[a:cancelled]")
	}},
	{name: "one that ended while it waited for the waiter is no cycle", run: func(w *env) {
		other := w.neighbour()
		x, there := w.waiter(), other.waiter()
		there.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"x": x.id})
		other.cancel(there.id)
		look, err := w.e.CheckOthers(w.ctx, x.id, []flowfabric.ExecutionID{there.id})
		w.no(err)
		same(w, "outcome", look[0].Outcome, flowfabric.Cancelled)
	}},
	{name: "one that is purged before it was asked is told from its tombstone, or as gone", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(), other.create()
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a, "b": b})
		for id, keep := range map[flowfabric.ExecutionID]time.Duration{a: 48 * time.Hour, b: 24 * time.Hour} {
			other.cancel(id)
			_, err := other.e.PurgeExecution(other.ctx, id, keep)
			w.no(err)
		}
		other.advance(25 * time.Hour)
		spread(w, other)
		same(w, "told", x.told(), "children map[a:cancelled b:gone]")
	}},
	{name: "children and others are waited for together, and only children are cancelled", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(lane("a")), other.create(lane("b"))
		f := w.family()
		f.make(firstOf, "kid")
		q := engine.ChildWait{Name: "wait", Mode: engine.WaitFirst, CancelRemaining: true,
			Others: []engine.ChildOutcome{{ID: a, Node: "a"}, {ID: b, Node: "b"}}}
		w.no(w.e.WaitForOthers(w.ctx, f.fence, q))
		w.suspend(f.fence, waitFor("K"), because("waiting_for_children"), awaiting("wait"))
		spread(w, other)
		other.ended(a, '+')
		spread(w, other)
		same(w, "over", f.over(), "wait children map[a:completed b: kid:]")
		f.are(flowfabric.Cancelled, "kid")
		other.code(b, "R1f")
	}},
	{name: "why tells for whom it waits", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(), other.create(lane("b"))
		x := w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a, "b": b})
		spread(w, other)
		other.ended(b, '+')
		spread(w, other)
		w.says(w.why(x.id), explain.WhyAwaitingKids, "suspended to wait for other executions",
			"all executions to end (1 of 2 have, 1 of them with success)",
			fmt.Sprintf(`1 execution is open: "a" (%s) is waiting`, a),
			"when it is told that enough of them have ended")
		other.worker("k").one(a)
		w.says(w.why(x.id), explain.WhyAwaitingKids, "is active")
	}},
	{name: "a partition that does not answer keeps no other waiting, and is told later", run: func(w *env) {
		other := w.neighbour()
		a, b := other.create(), w.create(lane("b"))
		x := w.waiter()
		x.waits(engine.WaitFirst, map[string]flowfabric.ExecutionID{"a": a, "b": b})
		other.must("ff_freeze_partition", proto, "1")
		n, err := admit.Deliver(w.ctx, w.e, w.p)
		w.is(err, flowfabric.ErrPartitionFrozen)
		same(w, "left", n > 0 || w.noticed() > 0, true)
		other.must("ff_freeze_partition", proto, "0")
		spread(w, other)
		w.ended(b, '+')
		spread(w, other)
		same(w, "told", x.told(), "children map[a: b:completed]")
		spread(w, other)
		same(w, "forgotten", other.core(a)["aw"], "")
	}},
	{name: "waits in two partitions end, whatever comes between two calls, and leave nothing behind",
		run: func(w *env) {
			other := w.neighbour()
			for seed := range uint64(60 / max(1, w.srv.Share)) {
				randomWaits(w, other, rand.New(rand.NewPCG(seed+1, 61)))
			}
		}},
	{name: "an answer that could not be stored is asked for again", run: func(w *env) {
		other := w.neighbour()
		a, x := other.create(), w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		other.ended(a, '+')
		_, err := admit.Deliver(w.ctx, halfway{w.e}, w.p)
		w.is(err, flowfabric.ErrTransport)
		same(w, "it is still to be asked", w.noticed(), 1)
		spread(w, other)
		same(w, "told", x.told(), "children map[a:completed]")
	}},
	{name: "a waiter without a flow is purged with its list", run: func(w *env) {
		other := w.neighbour()
		a, x := other.create(), w.waiter()
		x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a})
		spread(w, other)
		w.cancel(x.id)
		_, err := w.e.PurgeExecution(w.ctx, x.id, 24*time.Hour)
		w.no(err)
		same(w, "its list", len(w.hash(w.k.Children(ids.UUID(x.id)))), 0)
		spread(w, other)
		same(w, "registered", other.core(a)["aw"], "")
	}},
	{name: "an audit finds registrations and ends that were lost, and repairs them",
		damaged: "registrations are removed", run: func(w *env) {
			other := w.neighbour()
			a, b := other.create(), other.create(lane("b"))
			x := w.waiter()
			x.waits(engine.WaitAll, map[string]flowfabric.ExecutionID{"a": a, "b": b})
			same(w, "on their way", found(w.audit(false)), "")
			spread(w, other)
			same(w, "sound", found(w.audit(false)), "")
			other.set("DEL", other.k.Awaiting(ids.UUID(a)))
			other.editRecord(ids.UUID(a), func(f fields) { delete(f, "aw") })
			same(w, "seen", len(w.audit(false).Findings), 1)
			same(w, "repaired", w.audit(true).Repaired, 1)
			same(w, "registered", other.core(a)["aw"], "1")
			other.ended(a, '+')
			other.ended(b, '-')
			same(w, "on their way", found(w.audit(false)), "")
			other.set("DEL", string(other.k)+":outbox")
			same(w, "seen", len(w.audit(false).Findings), 2)
			same(w, "repaired", w.audit(true).Repaired, 2)
			same(w, "told", x.told(), "children map[a:completed b:failed]")
			other.set("HSET", keys.Of(other.p).Awaiting(ids.UUID(a)), "1."+ids.UUID(a).String(), "1.0")
			same(w, "left behind", strings.Contains(found(other.audit(true)), "aw"), true)
		}},
}
