package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// laning claims up to n, with a rotation that grows, and returns the first letters of the lanes of what it got, in
// order.
func (k *worker) laning(n int) string {
	k.w.Helper()
	k.turns = true
	r := k.poll(n)
	if len(r.Routes) > 0 {
		k.learn(r)
	}
	var b strings.Builder
	for _, c := range r.Claims {
		b.WriteByte(k.routes[c.Route].Lane[0])
	}
	for _, g := range r.Grants {
		b.WriteByte(k.routes[g.Route].Lane[0])
	}
	return b.String()
}

// lanes are those of n claims of one each.
func (k *worker) lanes(n int) string {
	k.w.Helper()
	var b strings.Builder
	for range n {
		b.WriteString(k.laning(1))
	}
	return b.String()
}

// knowing is a worker that knows all routes there are, so that its first claim brings something.
func (w *env) knowing(weights map[string]int) *worker {
	w.Helper()
	k := w.worker("w1")
	k.weights = weights
	k.nothingYet()
	return k
}

// get is the text of a key.
func (w *env) get(key string) string {
	w.Helper()
	text, err := w.do("GET", key).ToString()
	w.no(err)
	return text
}

// windows fails unless every n letters in a row have the letter at least once.
func (w *env) windows(what, got string, n int, letter string) {
	w.Helper()
	for i := 0; i+n <= len(got); i++ {
		if !strings.Contains(got[i:i+n], letter) {
			w.Fatalf("%s: %s has %d in a row without %s", what, got, n, letter)
		}
	}
}

// shares counts the letters of three lanes.
type shares struct{ busy, quiet, third int }

func perLane(got string) shares {
	return shares{strings.Count(got, "b"), strings.Count(got, "q"), strings.Count(got, "z")}
}

var turnScenarios = []scenario{
	{name: "a busy lane of old work of high priority does not starve another lane", run: func(w *env) {
		w.createN(1000/max(1, w.srv.Share/4), lane("busy"), priority(9000))
		w.advance(time.Hour)
		w.createN(5, lane("quiet"))
		k := w.knowing(nil)
		got := k.lanes(10)
		w.windows("claims of one", got, 2, "q")
		same(w, "claims of one", perLane(got), shares{5, 5, 0})
		same(w, "the quiet lane is through", k.laning(4), "bbbb")
		w.createN(20, lane("quiet"))
		for _, n := range []int{2, 4, 6, 10} {
			got := k.laning(n)
			same(w, got, perLane(got), shares{n / 2, min(n/2, 20), 0})
			w.windows("one claim", got, 3, "q")
		}
		for range 4 { // an odd one is another lane's each time
			got += k.laning(3)
		}
		same(w, "root", w.root()["mixed"], "1")
	}},
	{name: "weights of a worker's lanes decide what each lane gets, over several claims and within one",
		run: func(w *env) {
			w.createN(80, lane("busy"))
			w.createN(40, lane("quiet"), priority(9))
			k := w.knowing(map[string]int{"busy": 3})
			got := k.lanes(12)
			same(w, "one by one", perLane(got), shares{9, 3, 0})
			w.windows("one by one", got, 4, "q")
			same(w, "within one", perLane(k.laning(8)), shares{6, 2, 0})
			same(w, "over several", perLane(k.laning(2)+k.laning(2)+k.laning(2)+k.laning(2)), shares{6, 2, 0})
			other := w.knowing(nil)
			same(w, "another worker has others", perLane(other.laning(8)), shares{4, 4, 0})
			far := w.knowing(map[string]int{"busy": 1000})
			got = far.laning(20) + far.laning(20)
			if n := strings.Count(got, "q"); n > 1 {
				w.Fatalf("%d of 1 in 1001: %s", n, got)
			}
		}},
	{name: "weights may have divisors in common, and a lane of any weight has its turn", run: func(w *env) {
		w.createN(60, lane("busy"))
		w.createN(60, lane("quiet"))
		w.createN(60, lane("z"))
		k := w.knowing(map[string]int{"busy": 10, "quiet": 5, "z": 5})
		for range 4 {
			same(w, "four in a row", perLane(k.lanes(4)), shares{2, 1, 1})
		}
		same(w, "at once", perLane(k.laning(20)), shares{10, 5, 5})
		k = w.knowing(map[string]int{"busy": 500, "quiet": 500, "z": 500})
		same(w, "alike", perLane(k.lanes(3)), shares{1, 1, 1})
	}},
	{name: "a lane that runs out leaves its turns to the others", run: func(w *env) {
		w.createN(50, lane("busy"))
		w.createN(2, lane("quiet"))
		w.createN(3, lane("z"))
		k := w.knowing(nil)
		same(w, "one claim", perLane(k.laning(20)), shares{15, 2, 3})
		same(w, "alone", perLane(k.laning(100)), shares{35, 0, 0})
	}},
	{name: "work is ordered within a lane as if there were no other, across kinds", run: func(w *env) {
		var busy, quiet []flowfabric.ExecutionID
		for i := range 12 {
			busy = append(busy, w.create(lane("busy"), kind(fmt.Sprint("k", i%4)), priority(12-i)))
			quiet = append(quiet, w.create(lane("quiet"), kind(fmt.Sprint("k", i%3)), priority(12-i)))
		}
		k := w.knowing(nil)
		var got [2][]flowfabric.ExecutionID
		for _, n := range []int{1, 5, 18} {
			k.turns = true
			for _, c := range k.claim(n) {
				i := strings.Index("bq", k.routes[c.Route].Lane[:1])
				got[i] = append(got[i], c.Fence.Execution)
			}
		}
		sameList(w, "busy", got[0], busy...)
		sameList(w, "quiet", got[1], quiet...)
	}},
	{name: "lanes take turns whatever their namespaces are", run: func(w *env) {
		w.createN(30, lane("busy"), namespace("a"), priority(9))
		w.createN(30, lane("quiet"), namespace("b"))
		k := w.knowing(nil)
		w.windows("one namespace each", k.lanes(8), 2, "q")
		same(w, "at once", perLane(k.laning(10)), shares{5, 5, 0})
		same(w, "nothing is counted", len(w.shares()), 0)
		w.createN(30, lane("busy"), namespace("c"), priority(9)) // two of them share it
		got := k.lanes(8)
		w.windows("several", got, 2, "q")
		same(w, "several", perLane(got), shares{4, 4, 0})
		same(w, "at once", perLane(k.laning(12)), shares{6, 6, 0})
		w.all("those of the busy lane alike", eq(w.shares()["a\x1fbusy"], "5000000"),
			eq(w.shares()["c\x1fbusy"], "5000000"))
		k = w.knowing(map[string]int{"quiet": 3})
		got = k.lanes(8)
		same(w, "by weight", perLane(got), shares{2, 6, 0})
	}},
	{name: "lanes take turns in what is granted", run: func(w *env) {
		g := newGates(w)
		q := asking(flowfabric.Gate(g.gate(admission.Gate{Concurrency: 100})))
		w.createN(20, lane("busy"), priority(9), q)
		w.createN(20, lane("quiet"), q)
		k := w.knowing(nil)
		k.gates = true
		got := k.lanes(8)
		w.windows("grants", got, 2, "q")
		same(w, "grants at once", perLane(k.laning(6)), shares{3, 3, 0})
	}},
	// A set of the embedded server has another order at each look, so where a claim looks at a part of the classes,
	// which part is chance there.
	{name: "lanes take turns where more classes have work than a claim looks at", needs: []string{"Native"},
		run: func(w *env) {
			for _, spaces := range []int{1, 2} {
				w.reset()
				w.quiet = true
				for range 2 { // so that no kind runs out meanwhile
					for i := range 68 {
						for s := range spaces {
							w.create(lane("busy"), kind(fmt.Sprint("k", i)), namespace(fmt.Sprint("n", s)), priority(9))
						}
					}
				}
				// A lane that has been given much is not behind others: counts of lanes cannot be compared.
				w.set("HSET", w.k.Shares(), "quiet", "900000000", "n0\x1fquiet", "900000000")
				w.createN(12, lane("quiet"), namespace("n0"))
				w.createN(12, lane("z"), namespace("n0"), priority(100))
				w.quiet = false
				k := w.knowing(nil)
				got := k.lanes(24)
				for _, letter := range []string{"b", "q", "z"} {
					w.windows(fmt.Sprint(spaces, " namespaces"), got, 6, letter)
				}
			}
		}},
	{name: "a lane has its turns though it is looked at by every second claim alone", needs: []string{"Native"},
		run: func(w *env) {
			for _, other := range []string{"a", "q"} { // the first or the last by name
				w.reset()
				w.quiet = true
				for range 2 {
					for i := range 127 {
						w.create(lane("busy"), kind(fmt.Sprint("k", i)), priority(9))
					}
				}
				w.createN(12, lane(other))
				w.quiet = false
				w.windows("lane "+other, w.knowing(nil).lanes(12), 4, other)
			}
		}},
	{name: "a paused lane has no turns, and has them again when it is resumed", run: func(w *env) {
		w.createN(20, lane("busy"))
		w.createN(20, lane("quiet"))
		w.setLane("quiet", flowfabric.LanePaused, "")
		k := w.knowing(nil)
		same(w, "paused", k.lanes(4), "bbbb")
		w.setLane("quiet", flowfabric.LaneActive, "")
		same(w, "resumed", perLane(k.lanes(4)), shares{2, 2, 0})
	}},
	{name: "what is past its deadline uses up no turn of its lane", run: func(w *env) {
		w.createN(3, lane("quiet"), deadline(time.Second))
		w.createN(10, lane("quiet"))
		w.createN(10, lane("busy"))
		w.advance(time.Minute) // nobody ticked
		k := w.knowing(nil)
		got := k.lanes(4)
		w.windows("one by one", got, 2, "q")
		same(w, "at once", perLane(k.laning(4)), shares{2, 2, 0})
	}},
	{name: "a partition with one lane keeps nothing about turns, and an audit finds that it has several",
		run: func(w *env) {
			w.create(kind("a"))
			w.create(kind("b"))
			w.create(kind("b"), namespace("other"))
			same(w, "one lane", w.root()["mixed"], "")
			w.create(kind("a"), lane("quiet"))
			same(w, "two", w.root()["mixed"], "1")
			w.set("HDEL", string(w.k), "mixed")
			w.quiet = true
			sameDeep(w, "found", w.audit(true).Kinds, map[string]int{"flag": 1})
			w.quiet = false
			same(w, "repaired", w.root()["mixed"], "1")
			w.check()
		}},
	{name: "a claim of a subscription whose weights went is told so",
		run: func(w *env) {
			w.create(lane("busy"))
			w.create(lane("quiet"))
			k := w.knowing(map[string]int{"busy": 2})
			plain := k.subscription
			same(w, "other weights", w.knowing(map[string]int{"busy": 3}).subscription != plain, true)
			same(w, "stored", w.get(w.k.Spaces(k.subscription)), "\x1ebusy\x1f2")
			k.namespaces, k.subscription = []string{"default", "x"}, ""
			k.nothingYet()
			k.learn(engine.ClaimReply{Table: k.table})
			same(w, "with namespaces", w.get(w.k.Spaces(k.subscription)), "default\x1fx\x1ebusy\x1f2")
			same(w, "another subscription", k.subscription != plain, true)
			w.set("DEL", w.k.Spaces(k.subscription))
			w.unchanged("gone", func() {
				_, err := w.e.ClaimNext(w.ctx, k.request(1))
				w.is(err, denied.UnknownSubscription)
			})
		}},
	{name: "turns hold for random lanes, weights, arrivals and claims", run: func(w *env) {
		for seed := range uint64(number("FLOWFABRIC_SOAK", 40)/10 + 1) {
			w.reset()
			w.quiet = true
			w.randomTurns(rand.New(rand.NewPCG(seed, 7)))
			w.quiet = false
			w.check()
		}
	}},
}

// randomTurns holds what lanes get while they all have work against their weights: exactly, of as many claims in a
// row as the weights make places, whatever each claim asks for; and rounded, of each claim.
func (w *env) randomTurns(r *rand.Rand) {
	w.Helper()
	names := []string{"a", "b", "c", "d"}[:2+r.IntN(3)]
	weights, sum := map[string]int{}, 0
	for _, name := range names {
		weights[name] = 1 + r.IntN(4)
		sum += weights[name]
		spaces := 1 + r.IntN(2)
		for _, kinds := range []string{"x", "y"}[:1+r.IntN(2)] {
			for s := range spaces {
				w.createN(100, lane(name), kind(kinds), namespace(fmt.Sprint("n", s)), priority(r.IntN(3)))
			}
		}
	}
	k := w.knowing(weights)
	first := map[string]int{}
	for range sum {
		n := 1 + r.IntN(5)
		got := k.laning(n)
		first[got[:1]]++
		for _, name := range names {
			part := float64(n*weights[name]) / float64(sum)
			if g := float64(strings.Count(got, name)); g <= part-1 || g >= part+1 {
				w.Fatalf("%s of weights %v: %s has %v, want about %.2f", got, weights, name, g, part)
			}
		}
	}
	for name, n := range weights {
		if first[name] < n {
			w.Fatalf("claims began with %v, want %v", first, weights)
		}
	}
}
