package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// served claims up to n and returns the first letters of their namespaces, in the order in which they were handed out.
func (k *worker) served(n int) string {
	k.w.Helper()
	var b strings.Builder
	r := k.poll(n)
	if len(r.Routes) > 0 {
		k.learn(r)
	}
	k.knows(r)
	for _, c := range r.Claims {
		b.WriteByte(k.routes[c.Route].Namespace[0])
	}
	return b.String()
}

// oneByOne is served by n claims of one each.
func (k *worker) oneByOne(n int) string {
	k.w.Helper()
	var b strings.Builder
	for range n {
		b.WriteString(k.served(1))
	}
	return b.String()
}

func (w *env) weight(namespace, lane string, n int) {
	w.Helper()
	w.must("ff_set_share", proto, namespace, lane, strconv.Itoa(n))
	w.check()
}

func (w *env) shares() map[string]string { return w.hash(w.k.Shares()) }

var fairScenarios = []scenario{
	{name: "a flood delays another namespace's first execution by one claim", run: func(w *env) {
		w.createN(300, namespace("flood"))
		k := w.worker("w1")
		same(w, "alone", k.oneByOne(5), "fffff")
		same(w, "nothing is counted for one alone", len(w.shares()), 0)
		w.create(namespace("small"))
		if got := k.oneByOne(3); !strings.Contains(got, "s") { // the first may only tell of the route
			w.Fatalf("served %s after the small one came", got)
		}
		w.createN(5, namespace("small"), priority(0))
		w.createN(20, namespace("flood"), priority(9000)) // priority orders within a namespace
		same(w, "in one claim", strings.Count(k.served(6), "s"), 3)
	}},
	{name: "a flood of 60 kinds delays another namespace's first execution by one claim", run: func(w *env) {
		w.quiet = true
		for i := range 60 {
			w.createN(8, namespace("flood"), kind(fmt.Sprint("k", i)))
		}
		w.quiet = false
		k := w.worker("w1")
		k.served(3)
		for range 3 {
			w.create(namespace("small"))
			if got := k.oneByOne(3); !strings.Contains(got, "s") { // the first may only tell of the route
				w.Fatalf("served %s after the small one came", got)
			}
		}
		w.createN(40, namespace("small"))
		same(w, "half of one claim", strings.Count(k.served(60), "s"), 30)
	}},
	{name: "more ready routes than one claim checks do not hide any namespace", run: func(w *env) {
		w.quiet = true
		for i := range 200 {
			w.create(namespace("flood"), kind(fmt.Sprint("k", i)))
		}
		w.createN(4, namespace("small"))
		w.createN(4, namespace("other"))
		w.quiet = false
		k := w.worker("w1")
		got := ""
		for range 12 {
			r, err := w.e.ClaimNext(w.ctx, k.turning(1))
			w.no(err)
			for len(r.Claims) == 0 && k.learn(r) {
				r, err = w.e.ClaimNext(w.ctx, k.turning(1))
				w.no(err)
			}
			k.number++
			k.knows(r)
			got += k.routes[r.Claims[0].Route].Namespace[:1]
		}
		w.check()
		for _, name := range []string{"f", "s", "o"} {
			if n := strings.Count(got, name); n < 2 || n > 8 {
				// a claim checks 64 of 201 routes, in the order of a set, which is chance: it may miss the same one
				// several times in a row
				w.Fatalf("%s of %s, want about a third", name, got)
			}
		}
		seen := map[uint64]bool{}
		for len(seen) < 196 {
			r, err := w.e.ClaimNext(w.ctx, k.turning(20))
			w.no(err)
			k.number++
			for _, c := range r.Claims {
				seen[c.Route] = true
			}
			if len(r.Claims) == 0 {
				break
			}
		}
		same(w, "every route had its turn", len(seen), 196)
	}},
	{name: "weights decide the shares of namespaces, over several claims and within one", run: func(w *env) {
		w.createN(30, namespace("a"))
		w.createN(30, namespace("b"))
		w.weight("a", "default", 3)
		k := w.worker("w1")
		got := k.oneByOne(8)
		w.all("one by one", eq(strings.Count(got, "a"), 6), eq(strings.Count(got, "b"), 2))
		got = k.served(8)
		w.all("in one claim", eq(strings.Count(got, "a"), 6), eq(strings.Count(got, "b"), 2))
		w.weight("a", "default", 0) // as usual again
		got = k.oneByOne(8)
		w.all("alike", eq(strings.Count(got, "a"), 4), eq(strings.Count(got, "b"), 4))
	}},
	{name: "priorities order work within a namespace as if there were no other", run: func(w *env) {
		var mine []flowfabric.ExecutionID
		for i, p := range []int{0, 5, 9, 5} {
			mine = append(mine, w.create(namespace("a"), priority(p), kind("k"+strconv.Itoa(i%2))))
			w.advance(time.Millisecond)
		}
		w.createN(10, namespace("b"), priority(7))
		k := w.worker("w1")
		var got []flowfabric.ExecutionID
		for range 8 {
			for _, c := range k.claim(1) {
				if k.routes[c.Route].Namespace == "a" {
					got = append(got, c.Fence.Execution)
				}
			}
		}
		sameList(w, "order", got, mine[2], mine[1], mine[3], mine[0])
	}},
	{name: "a namespace gains no credit while it has no work", run: func(w *env) {
		w.createN(60, namespace("a"))
		w.createN(2, namespace("b"))
		w.createN(60, namespace("c"))
		k := w.worker("w1")
		same(w, "b is through", strings.Count(k.served(30), "b"), 2)
		w.createN(20, namespace("b"))
		got := k.oneByOne(9)
		w.all("alike", eq(strings.Count(got, "a"), 3), eq(strings.Count(got, "b"), 3), eq(strings.Count(got, "c"), 3))
	}},
	{name: "claims within a completion are shared between namespaces, too", run: func(w *env) {
		w.createN(20, namespace("flood"))
		k := w.worker("w1")
		f := k.claim(1)[0].Fence
		w.createN(20, namespace("small"))
		k.learn(k.poll(1)) // of the new route
		got := ""
		for range 6 {
			q := k.request(1)
			_, r, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, &q)
			w.no(err)
			w.check()
			k.number++
			f = r.Claims[0].Fence
			k.knows(*r)
			got += k.routes[r.Claims[0].Route].Namespace[:1]
		}
		same(w, "served", strings.Count(got, "s"), 3)
	}},
	{name: "claims alternate between work with gates and work without", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 100})
		w.createN(4, asking(flowfabric.Gate(q)))
		w.createN(4)
		k := g.asker("w1")
		k.learn(k.poll(1))
		got := ""
		for range 6 {
			r, err := w.e.ClaimNext(w.ctx, k.turning(1))
			w.no(err)
			k.number++
			got += fmt.Sprint(len(r.Claims), len(r.Grants), " ")
		}
		w.check()
		if got != strings.Repeat("1 0 0 1 ", 3) && got != strings.Repeat("0 1 1 0 ", 3) {
			w.Fatalf("claims and grants: %s", got)
		}
	}},
	{name: "expired executions at the head of a queue use up no share", run: func(w *env) {
		w.createN(3, namespace("a"), deadline(time.Second))
		w.createN(20, namespace("a"))
		w.createN(20, namespace("b"))
		w.advance(time.Minute) // nobody ticked
		k := w.worker("w1")
		got := k.served(6)
		w.all("served", eq(strings.Count(got, "a"), 3), eq(strings.Count(got, "b"), 3))
		w.all("counts", eq(w.shares()["a\x1fdefault"], "3000000"), eq(w.shares()["b\x1fdefault"], "3000000"),
			eq(w.shares()["default"], "3000000"))
	}},
	{name: "a lane waits for no namespace whose queue was read to its end", run: func(w *env) {
		w.createN(9, namespace("a"), deadline(time.Second)) // a claim of five reads nine
		w.createN(20, namespace("b"))
		w.advance(time.Minute) // nobody ticked
		same(w, "served", w.worker("w1").served(5), "bbbbb")
		same(w, "the lane", w.shares()["default"], "4000000")
		w.create(namespace("a"), deadline(time.Second)) // a tenth is not read, so it waits
		w.advance(time.Minute)
		same(w, "served", w.worker("w2").served(5), "bbbbb")
		same(w, "the lane", w.shares()["default"], "6500000")
	}},
	{name: "a lane goes on by what one claim took, divided by all that compete", run: func(w *env) {
		w.createN(5, namespace("a"))
		w.createN(5, namespace("b"))
		w.worker("w1").served(1)
		w.all("counts", eq(w.shares()["a\x1fdefault"], "1000000"), eq(w.shares()["default"], "500000"))
		for _, name := range strings.Split("cdefgh", "") { // a claim of one looks at five, and counts all eight
			w.create(namespace(name))
		}
		w.worker("w1").served(1)
		same(w, "the lane", w.shares()["default"], "625000")
	}},
	{name: "a worker of more namespaces than a claim looks at serves those first that had least", run: func(w *env) {
		k := w.worker("w1")
		for _, name := range strings.Split("hgfedcba", "") {
			k.namespaces = append(k.namespaces, name)
			w.createN(2, namespace(name))
		}
		// five are looked at: of those that had least the first by name, and of them the oldest work is served
		same(w, "served", k.oneByOne(16), "efghdcbaefghdcba")
	}},
	{name: "share counters are lowered before they exceed exact integers", run: func(w *env) {
		w.createN(20, namespace("a"))
		w.createN(20, namespace("b"))
		k := w.worker("w1")
		k.served(2)
		const far = 4503599627370496
		w.set("HSET", w.k.Shares(), "default", strconv.Itoa(far+1), "a\x1fdefault", strconv.Itoa(far+1), "b\x1fdefault",
			strconv.Itoa(far+1))
		w.set("ZADD", w.k.Ring("1"), strconv.Itoa(far+1), "b")
		w.weight("b", "default", 2)
		got := k.served(6)
		w.all("served", eq(strings.Count(got, "a"), 2), eq(strings.Count(got, "b"), 4))
		for name, text := range w.shares() {
			if len(text) > 10 {
				w.Fatalf("%q is still %s", name, text)
			}
		}
		for name, place := range w.dump().ZSets[":ring:1"] {
			if place > 9_999_999_999 {
				w.Fatalf("the place of %q is still %.0f", name, place)
			}
		}
		got = k.oneByOne(6)
		w.all("served then", eq(strings.Count(got, "a"), 2), eq(strings.Count(got, "b"), 4))
	}},
	{name: "at most 4,096 weights are set, and they outlive their routes", run: func(w *env) {
		ids := []flowfabric.ExecutionID{w.create(namespace("a")), w.create(namespace("b")), w.create(namespace("b"))}
		w.weight("b", "default", 2)
		k := w.worker("w1")
		k.served(1)
		w.settle(k, ids)
		same(w, "counted", len(w.shares()) >= 2, true)
		for _, id := range ids {
			_, err := w.e.PurgeExecution(w.ctx, id, 0)
			w.no(err)
		}
		w.check()
		same(w, "b's weight", w.hash(w.k.Weights())["b\x1fdefault"], "2")
		rows := []string{"HSET", w.k.Weights()}
		for i := range 4094 {
			rows = append(rows, "n"+strconv.Itoa(i)+"\x1fl", "2")
		}
		w.set(rows...)
		same(w, "the last", w.fcall("ff_set_share", proto, "new", "l", "3").code, "OK")
		w.unchanged("4,097", func() {
			sameDeep(w, "one more", w.fcall("ff_set_share", proto, "newer", "l", "3"),
				answer{0, "invalid_input", []string{"weight: at most 4096 are set"}})
		})
		same(w, "a known one", w.fcall("ff_set_share", proto, "new", "l", "4").code, "OK")
		same(w, "one less", w.fcall("ff_set_share", proto, "n7", "l", "0").code, "OK")
		same(w, "and another", w.fcall("ff_set_share", proto, "newer", "l", "3").code, "OK")
	}},
	{name: "namespaces and gates use up no classes: thousands of each work in one partition, and leave nothing behind",
		run: func(w *env) {
			w.quiet = true
			n := 1000 / max(1, w.srv.Share/4)
			var ids []flowfabric.ExecutionID
			for first := 0; first < n; first += 50 {
				var items []engine.NewExecution
				for i := first; i < first+50; i++ {
					x := w.item(namespace("tenant"+strconv.Itoa(i)), kind("k"+strconv.Itoa(i%4)))
					if i%10 == 0 {
						asking(flowfabric.Gate("q" + strconv.Itoa(i)))(&x)
					}
					items, ids = append(items, x), append(ids, x.ID)
				}
				out, err := w.e.CreateExecutions(w.ctx, w.p, items)
				w.no(err)
				for _, o := range out {
					w.no(o.Err)
				}
			}
			w.quiet = false
			w.check()
			same(w, "classes", len(w.dump().ZSets[":routelog"]), 4)
			k := w.worker("w1")
			w.quiet = true
			served := map[string]bool{}
			for {
				r := k.poll(100)
				if len(r.Claims) == 0 {
					break
				}
				var done []engine.Completion
				for _, c := range r.Claims {
					served[k.routes[c.Route].Namespace] = true
					done = append(done, engine.Completion{Fence: c.Fence})
				}
				_, _, err := w.e.CompleteExecutions(w.ctx, w.p, done, nil)
				w.no(err)
			}
			same(w, "namespaces served", len(served), n-n/10)
			for _, id := range ids {
				_, err := w.e.CancelExecution(w.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
				if !w.read(id).State.Terminal() {
					w.no(err)
				}
				_, err = w.e.PurgeExecution(w.ctx, id, 0)
				w.no(err)
			}
			w.quiet = false
			w.check()
			d := w.dump()
			w.all("left", eq(len(d.Hashes[":routes"]), 0), eq(len(d.Hashes[":routeids"]), 0),
				eq(len(d.ZSets[":routelog"]), 0), eq(len(d.Sets[":ready"]), 0), eq(len(d.Sets[":gready"]), 0))
		}},
	{name: "a worker of some namespaces is given, and rung for, their work alone", run: func(w *env) {
		for _, name := range []string{"a", "b", "c"} {
			w.createN(3, namespace(name))
		}
		some := func(instance string, namespaces ...string) *worker {
			k := w.worker(instance)
			k.namespaces = namespaces
			return k
		}
		k := some("w1", "b", "nobody")
		same(w, "b", k.served(9), "bbb")
		same(w, "registered", k.nothing().Registered, true)
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.create(namespace("c"))
		ear.silent()
		same(w, "and not given", len(k.nothing().Claims), 0)
		w.create(namespace("b"))
		ear.hears("w")
		same(w, "given", k.served(9), "b")
		first := some("w2", "a")
		same(w, "the first namespace", first.served(2), "aa")
		every := w.worker("w3")
		same(w, "all", len(every.served(9)), 5)
	}},
	{name: "a class of work stays as long as any namespace uses it", run: func(w *env) {
		first, other := w.create(namespace("a")), w.create(namespace("b"))
		end := func(id flowfabric.ExecutionID) {
			w.cancel(id)
			_, err := w.e.PurgeExecution(w.ctx, id, 0)
			w.no(err)
			w.check()
		}
		end(first)
		k := w.worker("w1")
		k.one(other)
		w.create(namespace("a"))
		same(w, "the same class", k.served(3), "a")
		same(w, "classes", len(w.dump().ZSets[":routelog"]), 1)
	}},
	{name: "counts that say nothing are forgotten when there are many", run: func(w *env) {
		w.quiet = true
		rows := []string{"HSET", w.k.Shares(), "default", "5000000"}
		for i := range 3000 {
			rows = append(rows, "gone"+strconv.Itoa(i)+"\x1fdefault", "4000000")
		}
		w.set(rows...)
		k := w.worker("w1")
		for i := range 300 {
			w.create(namespace("n" + strconv.Itoa(i)))
			k.served(1)
			w.create(namespace("n" + strconv.Itoa(i)))
		}
		w.quiet = false
		w.check()
		if n := len(w.shares()); n > 1500 {
			w.Fatalf("%d counts are kept", n)
		}
	}},
	{name: "a partition with one namespace keeps no shares", run: func(w *env) {
		w.create(kind("a"))
		w.create(kind("b"))
		k := w.worker("w1")
		k.oneByOne(2)
		w.all("root", eq(w.root()["space"], "default"), eq(w.root()["spaces"], ""))
		same(w, "shares", len(w.shares()), 0)
		w.create(namespace("other"))
		w.all("root", eq(w.root()["space"], "default"), eq(w.root()["spaces"], "1"))
	}},
	{name: "shares hold for random weights, arrivals and claims", run: func(w *env) {
		for seed := range uint64(number("FLOWFABRIC_SOAK", 40)/10 + 1) {
			w.reset()
			w.quiet = true
			w.randomShares(rand.New(rand.NewPCG(seed, 1)))
			w.quiet = false
			w.check()
		}
	}},
}

// turning is a request of a claim that looks where the last one did not.
func (k *worker) turning(max int) engine.ClaimRequest {
	q := k.request(max)
	q.Rotation = k.number
	return q
}

// settle lets the worker finish what it holds, and claims and finishes the others.
func (w *env) settle(k *worker, ids []flowfabric.ExecutionID) {
	w.Helper()
	held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
	w.no(err)
	for _, h := range held {
		s := w.read(h.Execution)
		w.no(w.complete(flowfabric.Fence{Execution: h.Execution, Session: k.session, Claim: h.Claim, Attempt: 1,
			Epoch: s.Epoch}, "").Err)
	}
	for _, c := range k.claim(len(ids)) {
		w.no(w.complete(c.Fence, "").Err)
	}
}

// randomShares holds what namespaces are given, while they all wait, against their weights: never more than a claim
// apart.
func (w *env) randomShares(r *rand.Rand) {
	w.Helper()
	n := 2 + r.IntN(4)
	names, weights, given := make([]string, n), make([]int, n), map[string]int{}
	left := make([]int, n)
	for i := range names {
		names[i], weights[i] = string(rune('a'+i)), 1+r.IntN(9)
		w.weight(names[i], "default", weights[i])
		for _, k := range []string{"x", "y"} {
			m := 20 + r.IntN(40)
			w.createN(m, namespace(names[i]), kind(k), priority(r.IntN(3)))
			left[i] += m
		}
	}
	k := w.worker("w1")
	for {
		for _, c := range k.served(1 + r.IntN(9)) {
			given[string(c)]++
			left[c-'a']--
		}
		if slices.Min(left) <= 0 {
			return
		}
		for i := range names {
			for j := range i {
				got := float64(given[names[i]])/float64(weights[i]) - float64(given[names[j]])/float64(weights[j])
				if bound := 1/float64(weights[i]) + 1/float64(weights[j]) + 1e-3; got > bound || got < -bound {
					w.Fatalf("given %v by weights %v", given, weights)
				}
			}
		}
	}
}

// score is where an execution stands in its queue.
func (w *env) score(id flowfabric.ExecutionID) int64 {
	w.Helper()
	n, err := w.do("ZSCORE", w.k.Queue(w.core(id)["r"]), ids.UUID(id).String()).AsFloat64()
	w.no(err)
	return int64(n)
}

// ageing sets the ageing of the default lane.
func (w *env) ageing(d time.Duration) answer {
	w.Helper()
	return w.must("ff_set_lane", protoOf("anna", ""), "default", "default", "", "",
		strconv.FormatInt(d.Milliseconds(), 10))
}

var ageingScenarios = []scenario{
	{name: "with ageing, waiting work gains one priority for each step of time", run: func(w *env) {
		w.ageing(time.Minute)
		old := w.create(priority(1))
		w.advance(3*time.Minute - 30*time.Second)
		high := w.create(priority(4)) // three steps, not yet three minutes
		w.advance(time.Minute)
		late := w.create(priority(4))
		k := w.worker("w1")
		k.one(high)
		k.one(old)
		k.one(late)
		same(w, "root", w.root()["lanes"], "1")
	}},
	{name: "ageing keeps a steady stream of high priority from starving lower work", run: func(w *env) {
		for _, step := range []time.Duration{0, time.Second} {
			w.reset()
			if step > 0 {
				w.ageing(step)
			}
			low := w.create()
			k := w.worker("w1")
			after := -1
			for i := range 30 {
				w.advance(time.Second)
				w.createN(2, priority(9))
				if k.claim(1)[0].Fence.Execution == low {
					after = i
					break
				}
			}
			want := -1
			if step > 0 {
				// as much older as nine steps take, and everything before that is gone: two come for each that goes
				want = 17
			}
			if step == 0 && after >= 0 || step > 0 && (after < 8 || after > want+3) {
				w.Fatalf("ageing %s: the low one was claimed after %d", step, after)
			}
		}
	}},
	{name: "after ageing is switched off, priority alone orders new work", run: func(w *env) {
		w.ageing(time.Minute)
		w.create()
		w.quiet = true // what was filed stays as it was until the audit
		w.advance(24 * time.Hour)
		w.ageing(0)
		same(w, "root", w.root()["lanes"], "")
		high := w.create(priority(1))
		k := w.worker("w1")
		k.one(high)
		w.unchanged("the same again", func() {
			same(w, "answer", w.fcall("ff_set_lane", protoOf("bert", ""), "default", "default", "", "", "0").code,
				"ALREADY_SATISFIED")
		})
	}},
	{name: "ageing applies to work however it comes back to a queue", run: func(w *env) {
		w.ageing(time.Second)
		aged := func(what string, id flowfabric.ExecutionID, p int64) {
			w.Helper()
			w.check()
			same(w, what, w.score(id), w.at(id, "ct")-1000*p)
		}
		id := w.create(priority(50), retries(3))
		aged("created", id, 50)
		one := func(id flowfabric.ExecutionID) engine.Claim { return w.worker("w1").one(id) } // by a session that lives
		w.advance(time.Second)
		w.fail(one(id).Fence, "broken")
		w.advance(time.Hour)
		w.settleTime()
		aged("retried", id, 50)
		_, _, err := w.e.ChangePriority(w.ctx, id, 70)
		w.no(err)
		aged("changed", id, 70)
		w.release(one(id).Fence)
		aged("released", id, 70)
		w.seed()
		m := w.stopped(one(id).Fence)
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		aged("resumed", id, 70)
		w.delay(one(id).Fence, time.Minute)
		w.advance(time.Hour)
		w.settleTime()
		aged("delayed", id, 70)
		one(id)
		w.advance(time.Hour)
		w.settleTime()
		aged("reclaimed", id, 70)
		w.no(w.complete(one(id).Fence, "").Err)
		w.replay(id, engine.Replay{Force: true})
		aged("replayed", id, 70)
		_, err = w.e.HoldExecution(w.ctx, id)
		w.no(err)
		_, err = w.e.UnholdExecution(w.ctx, id)
		w.no(err)
		aged("unheld", id, 70)
		one(id)
		g := w.flow()
		g.node("a", nil, as(priority(9))).node("b", []string{"a"}, as(priority(8)))
		g.submit(engine.SealClosed)
		aged("released root", g.id.Member("a"), 9)
		w.no(w.complete(one(g.id.Member("a")).Fence, "").Err)
		aged("resolved member", g.id.Member("b"), 8)
	}},
	{name: "queues report the oldest and the next priority, with ageing and after it", run: func(w *env) {
		w.ageing(time.Minute)
		first := w.create(priority(2))
		w.advance(10 * time.Minute)
		next := w.create(priority(20))
		look := func(what string, oldest flowfabric.ExecutionID, p int) {
			w.Helper()
			q := w.queues()["k"]
			w.all(what, eq(q.Oldest.UnixMilli(), w.at(oldest, "ct")), eq(q.Priority, p))
		}
		look("with ageing", first, 20)
		k := w.worker("w1")
		w.quiet = true
		w.ageing(0)
		look("after it, until the audit files them anew", next, 20)
		k.one(next)
		look("without the next", first, 2)
		w.create(priority(1))
		look("with one that is filed by priority alone", first, 1)
		sameDeep(w, "filed anew", w.audit(true).Kinds, map[string]int{"score": 1})
	}},
	{name: "a lane with ageing is not dropped to make room for another one", run: func(w *env) {
		w.ageing(time.Minute)
		rows := []string{"HSET", w.k.Lanes()}
		for i := range 1022 {
			rows = append(rows, "default\x1fl"+strconv.Itoa(i), "active 0,5 1700000000000 anna")
		}
		w.set(append(rows, "default\x1fusual", "active 0 1700000000000 anna")...)
		same(w, "1,025", w.setLane("more", flowfabric.LanePaused, "").code, "OK")
		same(w, "the usual one went", w.hash(w.k.Lanes())["default\x1fusual"], "")
		w.unchanged("1,026",
			func() { same(w, "too many", w.setLane("most", flowfabric.LanePaused, "").code, "invalid_input") })
		row := w.hash(w.k.Lanes())["default\x1fdefault"]
		same(w, "row", strings.HasPrefix(row, "active 0,60000 "), true)
		w.setLane("default", flowfabric.LanePaused, "60")
		row = w.hash(w.k.Lanes())["default\x1fdefault"]
		same(w, "row", strings.HasPrefix(row, "paused 60,60000 "), true)
	}},
	{name: "a queue with ageing is listed in the order of claims", run: func(w *env) {
		w.quiet = true
		var want []flowfabric.ExecutionID
		for i := range 5 { // filed before: far below zero
			want = append(want, w.create(priority(9000-i)))
		}
		w.ageing(24 * time.Hour)
		for i := range 5 {
			want = append(want, w.create(priority(9000-i)))
		}
		want = append(want, w.create())
		route := w.core(want[0])["r"]
		for _, newest := range []bool{false, true} {
			var got []flowfabric.ExecutionID
			q := engine.ListQuery{Index: engine.IndexWaiting, Key: route, Limit: 3, Newest: newest}
			for more := true; more; {
				page, err := w.e.ListExecutions(w.ctx, w.p, q)
				w.no(err)
				for _, x := range page.Executions {
					got = append(got, x.ID)
					q.After = x.Position()
				}
				more = page.More
			}
			if newest {
				slices.Reverse(got)
			}
			sameList(w, "pages", got, want...)
		}
		k := w.worker("w1")
		for _, id := range want {
			k.one(id)
		}
	}},
}
