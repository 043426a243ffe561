package scale

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// usual is a load that tests change.
func usual() Load {
	return Load{Seed: 1, Primaries: 1, Partitions: 64, Producers: 4, Workers: 2, Concurrency: 64, Grain: 0.001,
		Lease: 30, Seconds: 10}
}

func simulate(t *testing.T, l Load, c Costs) Result {
	t.Helper()
	r, err := Simulate(l, c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Submitted != r.Waiting+r.Held+r.Ended {
		t.Errorf("%d submitted, but %d wait, %d are held and %d ended", r.Submitted, r.Waiting, r.Held, r.Ended)
	}
	for i, u := range r.Utilisation {
		if u < 0 || u > 1 {
			t.Errorf("primary %d is used by %g", i, u)
		}
	}
	return r
}

// loads are several shapes of work.
func loads() map[string]Load {
	out := map[string]Load{}
	for name, change := range map[string]func(*Load){
		"drain":          func(l *Load) { l.Preload = 20_000 },
		"handlers":       func(l *Load) { l.Preload, l.Work = 5_000, 0.01 },
		"random":         func(l *Load) { l.Rate, l.Seconds, l.Work, l.Spread = 8_000, 2, 0.005, true },
		"too much":       func(l *Load) { l.Rate, l.Seconds = 150_000, 0.5 },
		"one by one":     func(l *Load) { l.Rest, l.Jobs = 0.003, 500 },
		"three":          func(l *Load) { l.Preload, l.Primaries = 20_000, 3 },
		"many workers":   func(l *Load) { l.Rate, l.Seconds, l.Workers, l.Concurrency = 2_000, 2, 200, 1 },
		"nobody works":   func(l *Load) { l.Rate, l.Seconds, l.Workers = 2_000, 1, 0 },
		"few partitions": func(l *Load) { l.Preload, l.Partitions = 5_000, 1 },
	} {
		l := usual()
		change(&l)
		out[name] = l
	}
	return out
}

func TestNothingIsLostAndNoPrimaryIsMoreThanBusy(t *testing.T) {
	for name, l := range loads() {
		t.Run(name, func(t *testing.T) {
			r := simulate(t, l, Published())
			if all := l.Preload + l.Jobs; all > 0 && r.Ended != all {
				t.Errorf("%d of %d ended within %g s", r.Ended, all, l.Seconds)
			}
			if l.Workers > 0 && r.Ended == 0 || l.Workers == 0 && r.Ended > 0 {
				t.Errorf("%d ended, with %d workers", r.Ended, l.Workers)
			}
		})
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	l := loads()["random"]
	first := simulate(t, l, Published())
	if again := simulate(t, l, Published()); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, and again %+v", first, again)
	}
	l.Seed++
	if other := simulate(t, l, Published()); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same result")
	}
}

// A server with random arrivals and a constant time of service is M/D/1: a call waits ρ/(2(1-ρ)) services on average.
func TestAServerWaitsLikeMD1(t *testing.T) {
	for _, load := range []float64{0.2, 0.5, 0.8, 0.9} {
		const service = 100 * time.Microsecond
		s := &simulation{random: randomOf(7)}
		one := &station{clock: &s.clock}
		var next func()
		next = func() {
			one.arrive(func() (time.Duration, func()) { return service, func() {} })
			s.clock.after(time.Duration(s.random.ExpFloat64()*float64(service)/load), next)
		}
		s.clock.after(0, next)
		s.clock.run(30*time.Second, func() bool { return false })
		got := (one.waited / time.Duration(one.calls)).Seconds() / service.Seconds()
		want := load / (2 * (1 - load))
		if math.Abs(got/want-1) > 0.05 {
			t.Errorf("at %g a call waits %g services, want %g", load, got, want)
		}
		if used := one.used.Seconds() / 30; math.Abs(used-load) > 0.01 {
			t.Errorf("at %g it is used by %g", load, used)
		}
	}
}

// Executions that wait are as many as arrive while one waits: Little's law. Those on their way to or from the server
// are not in a queue, so that part of their latency is left out.
func TestLittlesLaw(t *testing.T) {
	l := usual()
	l.Rate, l.Work, l.Workers, l.Concurrency, l.Seconds, l.Warm, l.Producers = 1_000, 0.1, 1, 98, 60, 5, 1
	l.Spread = true
	c := Published()
	c.Hop, c.Client = 0.001, 0.001
	r := simulate(t, l, c)
	if want := l.Rate * r.MeanWait / 1000; math.Abs(r.MeanWaiting/want-1) > 0.15 || r.MeanWaiting < 1 {
		t.Errorf("%g wait on average, want %g", r.MeanWaiting, want)
	}
}

func TestThroughputIsWhatItsPartsAllow(t *testing.T) {
	c := Published()
	for name, l := range loads() {
		r := simulate(t, l, c)
		if l.Work > 0 && !l.Spread {
			if most := float64(l.Workers*l.Concurrency) / l.Work; r.Throughput > most {
				t.Errorf("%s: %g a second, but slots for %g", name, r.Throughput, most)
			}
		}
		// Work that waited needs at least its items' time for claims and ends.
		most := float64(l.Primaries) * 1e6 / (c.Claim.Item + c.Complete.Item + 2*c.Outside.Item)
		if r.Throughput > most {
			t.Errorf("%s: %g a second, but primaries for %g", name, r.Throughput, most)
		}
	}
}

func TestMorePrimariesAreNeverSlower(t *testing.T) {
	for _, work := range []float64{0, 0.002, 0.02} {
		last := 0.0
		for _, n := range []int{1, 2, 4, 8} {
			l := usual()
			l.Even, l.Primaries, l.Preload, l.Workers, l.Work, l.Seconds = true, n, 40_000, 16, work, 60
			r := simulate(t, l, Published())
			if r.Throughput < 0.99*last {
				t.Errorf("handlers of %g s: %d primaries do %g a second, fewer did %g", work, n, r.Throughput, last)
			}
			last = r.Throughput
		}
	}
}

func TestFasterServersAreNeverSlower(t *testing.T) {
	l := loads()["drain"]
	fast, slow := simulate(t, l, Published()), simulate(t, l, Published().Slowed(2))
	if ratio := fast.Throughput / slow.Throughput; ratio < 1.5 || ratio > 2.1 {
		t.Errorf("half the speed of the server makes 1/%g of the throughput, want about a half", ratio)
	}
}

func TestMoreWorkersCostMoreIdleCalls(t *testing.T) {
	l := usual()
	l.Rest, l.Jobs, l.Seconds, l.Lease = 1, 20, 60, 3
	few := simulate(t, l, Published())
	l.Workers = 50
	many := simulate(t, l, Published())
	if many.Calls < 2*few.Calls || many.Pings < 10*few.Pings {
		t.Errorf("2 workers: %g calls a job and %g pings a second; 50 workers: %g and %g", few.Calls, few.Pings,
			many.Calls, many.Pings)
	}
}

// A queue that grows delays everybody by what is before it: with twice the work that a primary can do, the median
// waits for a quarter of the time.
func TestALoadThatIsTooHighMakesAQueue(t *testing.T) {
	l := loads()["too much"]
	r := simulate(t, l, Published())
	if r.Waiting < 1_000 || r.Utilisation[0] < 0.95 {
		t.Errorf("%d wait, and the primary is used by %g", r.Waiting, r.Utilisation[0])
	}
}

func TestALoadMustMakeSense(t *testing.T) {
	for name, change := range map[string]func(*Load){
		"no primary":      func(l *Load) { l.Primaries = 0 },
		"more primaries":  func(l *Load) { l.Primaries = 65 },
		"partitions":      func(l *Load) { l.Partitions = 2000 },
		"no slots":        func(l *Load) { l.Concurrency = 0 },
		"negative":        func(l *Load) { l.Rate = -1 },
		"two producers":   func(l *Load) { l.Rate, l.Rest = 1, 1 },
		"all is warm-up":  func(l *Load) { l.Warm = l.Seconds },
		"lease too short": func(l *Load) { l.Lease = 0.5 },
	} {
		l := usual()
		if change(&l); l.check() == nil {
			t.Errorf("%s is accepted: %+v", name, l)
		}
	}
}

// Partitions lie where a cluster puts them; the slots are those of CLUSTER KEYSLOT.
func TestSlots(t *testing.T) {
	if got := crc16("123456789"); got != 0x31c3 {
		t.Errorf("the check value is %#x", got)
	}
	for _, partitions := range []int{64, 256, 1024} {
		for _, primaries := range []int{1, 3, 12, 48} {
			spread, sum := Spread(partitions, primaries), 0
			for _, n := range spread {
				sum += n
			}
			if sum != partitions || slices.Max(spread) > partitions/primaries*2+2 {
				t.Errorf("%d partitions on %d primaries: %v", partitions, primaries, spread)
			}
		}
	}
}
