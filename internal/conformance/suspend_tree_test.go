package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Conditions of several parts, held against what they mean.
var treeScenarios = []scenario{
	{name: "random conditions are met exactly when a plain evaluation says so", run: func(w *env) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		r := rand.New(rand.NewPCG(seed, 11))
		n := w.rounds(int(min(5000, number("FLOWFABRIC_SOAK", 150))))
		w.seed()
		k := w.worker("w1")
		w.quiet = true
		ends := map[string]int{}
		for i := range n {
			t := grow(r)
			what := fmt.Sprintf("seed %d, tree %d: %q", seed, i, t.text())
			ends[w.plays(r, k, t, what)]++
			k.ttl = time.Hour
			if i%50 == 0 || i == n-1 {
				w.quiet = false
				w.check()
				w.quiet = true
			}
		}
		w.Logf("seed %d: %d trees: %v", seed, n, ends)
	}},
}

// part is a node of a random condition, judged below by what it means and not by how it is kept.
type part struct {
	op        string // L, C or G
	need      int
	waitpoint []int // of L: one
	names     []string
	kind      string
	members   []int // indexes of parts
}

type tree struct {
	parts      []part
	waitpoints int
}

// grow makes a random condition of depth 1..4 in which every waitpoint is used.
func grow(r *rand.Rand) tree {
	var t tree
	number := map[int]int{}
	use := func() int {
		w := r.IntN(4)
		if number[w] == 0 {
			number[w] = len(number) + 1
		}
		return number[w]
	}
	name := func() string { return []string{"a", "b", ""}[r.IntN(3)] }
	var branch func(depth int) int
	branch = func(depth int) int {
		p := part{op: []string{"L", "C", "G", "G"}[r.IntN(4)]}
		if p.op == "G" && (depth == 4 || len(t.parts) > 20) {
			p.op = "L"
		}
		switch p.op {
		case "L":
			p.waitpoint = []int{use()}
			for range 1 + r.IntN(3) {
				p.names = append(p.names, name())
			}
			p.need = 1 + r.IntN(len(p.names))
		case "C":
			p.kind, p.names = []string{"w", "s", "c"}[r.IntN(3)], []string{name()}
			for range 1 + r.IntN(3) {
				if w := use(); !slices.Contains(p.waitpoint, w) {
					p.waitpoint = append(p.waitpoint, w)
				}
			}
			p.need = 1 + r.IntN(3)
			if p.kind == "w" {
				p.need = 1 + r.IntN(len(p.waitpoint))
			}
		case "G":
			for range 1 + r.IntN(3) {
				p.members = append(p.members, branch(depth+1))
			}
			p.need = 1 + r.IntN(len(p.members))
		}
		t.parts = append(t.parts, p)
		return len(t.parts) - 1
	}
	branch(1)
	t.waitpoints = len(number)
	return t
}

func (t tree) text() string {
	var nodes []string
	for _, p := range t.parts {
		switch p.op {
		case "L":
			nodes = append(nodes, names(p.waitpoint[0], p.need, p.names...))
		case "C":
			nodes = append(nodes, count(p.need, p.kind, p.names[0], p.waitpoint...))
		case "G":
			members := make([]int, len(p.members))
			for i, m := range p.members {
				members[i] = m + 1
			}
			nodes = append(nodes, group(p.need, members...))
		}
	}
	return conditionOf(nodes...)
}

// heard is a signal on one of the tree's waitpoints.
type heard struct {
	waitpoint int
	suspend.SentSignal
}

// accepts tells whether a part is about such a signal.
func (p part) accepts(g heard) bool {
	return slices.Contains(p.waitpoint, g.waitpoint) &&
		(slices.Contains(p.names, g.Name) || slices.Contains(p.names, ""))
}

// have is how much of a part is there: of a list the slots that can be filled, of a count the distinct ones, up to n.
func (p part) have(signals []heard) int {
	distinct, named := map[string]bool{}, map[string]int{}
	for _, g := range signals {
		if !p.accepts(g) {
			continue
		}
		named[g.Name]++
		switch p.kind {
		case "w":
			distinct[strconv.Itoa(g.waitpoint)] = true
		case "s":
			distinct[g.ID.String()] = true
		case "c":
			distinct[fmt.Sprintf("%q %q", g.SourceType, g.Source)] = true
		}
	}
	if p.op == "C" {
		return min(p.need, len(distinct))
	}
	slots := map[string]int{}
	for _, n := range p.names {
		slots[n]++
	}
	filled, spare := 0, 0
	for name, n := range named {
		filled += min(n, slots[name])
		spare += max(0, n-slots[name])
	}
	return filled + min(spare, slots[""])
}

// met tells whether a part is satisfied.
func (t tree) met(i int, signals []heard) bool {
	p := t.parts[i]
	if p.op != "G" {
		return p.have(signals) >= p.need
	}
	n := 0
	for _, m := range p.members {
		if t.met(m, signals) {
			n++
		}
	}
	return n >= p.need
}

// effect is what the last of the signals must do after the others.
func (t tree) effect(signals []heard) suspend.Effect {
	last := signals[len(signals)-1]
	fits, more := false, false
	for _, p := range t.parts {
		fits = fits || p.accepts(last)
		more = more || p.op != "G" && p.have(signals) > p.have(signals[:len(signals)-1])
	}
	switch {
	case more && t.met(len(t.parts)-1, signals):
		return waitwords.EffectSatisfied
	case more:
		return waitwords.EffectAppended
	case len(t.parts) == 1 && t.parts[0].op == "L":
		return waitwords.EffectNone
	case fits:
		return waitwords.EffectAgain
	}
	return waitwords.EffectUnmatched
}

// plays waits for a condition and sends random signals, some of them early, some twice. It returns how it ended.
func (w *env) plays(r *rand.Rand, k *worker, t tree, what string) string {
	w.Helper()
	f := w.takes(k, 1)[0].Fence
	id := f.Execution
	wp := freshly(t.waitpoints)
	q := suspension(waitFor(t.text(), wp...))
	utter := func(waitpoint int) heard {
		g := heard{waitpoint, suspend.SentSignal{ID: mint.UUID(), Name: []string{"a", "b", "c"}[r.IntN(3)],
			IdempotencyKey: uuid.NewString()}}
		g.SourceType, g.Source = []string{"t", "t:x", ""}[r.IntN(3)], []string{"x", "y", ""}[r.IntN(3)]
		return g
	}
	var signals []heard
	for i, m := range wp {
		if r.IntN(2) == 0 {
			continue
		}
		_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "", m, time.Hour)
		w.no(err)
		q.Bindings[i].Pending = true
		for range r.IntN(3) {
			g := utter(i + 1)
			w.send(id, m, g.SentSignal, waitwords.EffectBuffered)
			signals = append(signals, g)
		}
	}
	s, err := w.e.SuspendExecution(w.ctx, f, q)
	w.no(err)
	same(w, what+": satisfied", s.Satisfied, t.met(len(t.parts)-1, signals))
	if s.Satisfied {
		w.no(w.complete(f, "").Err)
		return "early"
	}
	for range 40 {
		g := utter(1 + r.IntN(t.waitpoints))
		want := t.effect(append(signals, g))
		w.send(id, wp[g.waitpoint-1], g.SentSignal, want)
		signals = append(signals, g)
		if r.IntN(4) == 0 {
			again := g.SentSignal
			again.ID = mint.UUID()
			d, err := w.deliver(id, wp[g.waitpoint-1], again)
			w.no(err)
			w.all(what+": again", eq(d.Duplicate, true), eq(d.Effect, want), eq(d.Signal, g.ID))
		}
		if want == waitwords.EffectSatisfied {
			w.code(id, "R1i")
			w.no(w.complete(k.one(id).Fence, "").Err)
			return "satisfied"
		}
		if w.stateOf(id) != "S1" {
			w.Fatalf("%s: %s ended it", what, want)
		}
	}
	w.cancel(id)
	return "open"
}
