package scale

import (
	"math"
	"testing"
)

// whole is a wish of everything.
func whole() Wish {
	return Wish{Waiting: 1e6, Suspended: 1e5, Done: 1e6, Rate: 1_000, Batch: 8, Workers: 100, Concurrency: 64, Busy: 1,
		Tails: 1_000, Frames: 1, Partitions: 256, Lease: 30, Memory: 24e9, Use: 0.6}
}

func plan(t *testing.T, w Wish) Need {
	t.Helper()
	n, err := Plan(w, Published())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// More of anything never takes fewer primaries, and a primary that may do more never needs more others.
func TestAPlanGrowsWithItsWish(t *testing.T) {
	for name, change := range map[string]func(*Wish){
		"waiting":   func(w *Wish) { w.Waiting *= 100 },
		"suspended": func(w *Wish) { w.Suspended *= 1000 },
		"done":      func(w *Wish) { w.Done *= 100 },
		"rate":      func(w *Wish) { w.Rate *= 100 },
		"workers":   func(w *Wish) { w.Workers *= 100 },
		"tails":     func(w *Wish) { w.Tails *= 100 },
		"frames":    func(w *Wish) { w.Frames *= 100 },
		"memory":    func(w *Wish) { w.Memory /= 100 },
		"use":       func(w *Wish) { w.Use, w.Rate = w.Use/10, w.Rate*10 },
	} {
		base, more := plan(t, whole()), whole()
		change(&more)
		if n := plan(t, more); n.Primaries <= base.Primaries {
			t.Errorf("%s: %d primaries, and %d before", name, n.Primaries, base.Primaries)
		}
	}
}

// The parts of a plan are what a hand computes.
func TestAPlanAddsUp(t *testing.T) {
	c := Published()
	n := plan(t, Wish{Waiting: 1e6, Batch: 1, Partitions: 64, Lease: 30, Memory: 1e12, Use: 1})
	if want := 1e6 * (c.Bytes.Waiting + c.Bytes.Payload); n.Bytes != want || n.Primaries != 1 || !n.Enough {
		t.Errorf("%g bytes on %d primaries, want %g on one", n.Bytes, n.Primaries, want)
	}
	n = plan(t, Wish{Rate: 1000, Batch: 1, Partitions: 64, Lease: 30, Memory: 1e12, Use: 1})
	want := c.Create.Of(1) + c.Claim.Of(1) + c.Complete.Of(1) + 3*c.Outside.Of(1)
	if got := n.Cores["lifecycles"]; math.Abs(got-1000*want.Seconds()) > 1e-6 {
		t.Errorf("%g cores for 1,000 lifecycles of %v", got, want)
	}
	n = plan(t, Wish{Workers: 30, Busy: 1, Batch: 1, Partitions: 64, Lease: 30, Memory: 1e12, Use: 1})
	if got, want := n.Cores["renewals"], 30*64/10*(c.Renew+c.Outside.Fixed)/1e6; math.Abs(got-want) > 1e-9 {
		t.Errorf("%g cores for renewals, want %g", got, want)
	}
}

// Workers that deal with some partitions only cost less, and as many as all of them cost the same.
func TestHomesCostLess(t *testing.T) {
	w := whole()
	w.Workers = 10_000
	all := w.on(16, Published())
	w.Homes = w.Partitions
	if n := w.on(16, Published()); n.Cores["renewals"] != all.Cores["renewals"] || n.Connections != all.Connections ||
		n.Bytes != all.Bytes {
		t.Errorf("all partitions as homes: %+v, want %+v", n, all)
	}
	w.Homes = 8
	if n := w.on(16, Published()); n.Cores["renewals"] != all.Cores["renewals"]/32 ||
		n.Connections != all.Connections/2 || n.Bytes >= all.Bytes {
		t.Errorf("eight homes: %+v, all: %+v", n, all)
	}
}

// Where partitions run out, a plan says so.
func TestAPlanMayFail(t *testing.T) {
	w := whole()
	w.Partitions, w.Waiting = 4, 1e10
	if n := plan(t, w); n.Enough || n.Primaries != 4 {
		t.Errorf("10¹⁰ executions on %d primaries, enough %v", n.Primaries, n.Enough)
	}
	w.Batch = 0
	if _, err := Plan(w, Published()); err == nil {
		t.Error("calls of no execution are accepted")
	}
}

// The simulation of a fleet without work makes as many calls as the arithmetic says.
func TestThePlanAndTheSimulationAgree(t *testing.T) {
	for _, primaries := range []int{1, 4} {
		const workers = 40
		l := usual()
		l.Even, l.Primaries, l.Workers, l.Concurrency, l.Seconds, l.Warm = true, primaries, workers, 4, 700, 100
		r := simulate(t, l, Published())
		w := Wish{Workers: workers, Partitions: l.Partitions, Batch: 1, Lease: 30, Memory: 1e12, Use: 1}
		n := w.on(primaries, Published())
		used := 0.0
		for _, u := range r.Utilisation {
			used += u
		}
		// ticks of partitions without work are ten seconds apart
		want := -9 * float64(l.Partitions) / 10 * (Published().Tick + Published().Outside.Fixed) / 1e6
		for _, cores := range n.Cores {
			want += cores
		}
		if math.Abs(used/want-1) > 0.1 {
			t.Errorf("%d primaries: the simulation uses %g cores, the arithmetic %g", primaries, used, want)
		}
	}
}
