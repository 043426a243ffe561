package scale

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Load is what a simulation is about. Durations are in seconds.
type Load struct {
	Seed       uint64
	Primaries  int
	Partitions int
	Even       bool // partitions are dealt to primaries in turn, instead of by their slots

	Preload   int     // executions that wait at the beginning
	Jobs      int     // submitted at most; 0: no bound
	Producers int     // clients that share out Rate
	Rate      float64 // submits a second of all, at random moments; 0: none
	Rest      float64 // instead of Rate: one producer submits so long after the last job has begun

	Workers     int
	Concurrency int
	Work        float64 // that a handler takes
	Spread      bool    // handlers take random times of that mean instead
	// Grain is how often an idle process looks at its timers: Go's scheduler, when it sleeps, wakes up to a
	// millisecond late.
	Grain float64
	Lease float64

	// of virtual time, at most; it ends earlier when all Preload and Jobs have ended
	Seconds   float64
	Warm      float64 // seconds that are not counted
	Uncounted int     // instead: so many executions that end first are not counted
}

// check names what is out of range.
func (l Load) check() error {
	switch {
	case l.Primaries < 1 || l.Primaries > l.Partitions || l.Partitions > 1024:
		return fmt.Errorf(
			"scale: %d primaries and %d partitions: want 1..1024 partitions and at most as many primaries", l.Primaries,
			l.Partitions)
	case l.Workers < 0 || l.Concurrency < 1 || l.Producers < 1:
		return fmt.Errorf("scale: %d workers, concurrency %d, %d producers: want at least one of the last two",
			l.Workers, l.Concurrency, l.Producers)
	case l.Rate < 0 || l.Rest < 0 || l.Work < 0 || l.Grain < 0 || l.Warm < 0 || l.Preload < 0 || l.Jobs < 0:
		return errors.New("scale: rate, rest, work, grain, warm, preload and jobs must not be negative")
	case l.Rate > 0 && l.Rest > 0:
		return errors.New("scale: rate and rest exclude each other")
	case l.Uncounted < 0 || l.Uncounted > 0 && (l.Warm > 0 || l.Uncounted >= l.Preload+l.Jobs):
		return fmt.Errorf("scale: %d executions are not counted, of %d: want fewer, and no warm beside them",
			l.Uncounted, l.Preload+l.Jobs)
	case l.Lease < 1 || l.Seconds <= l.Warm || l.Seconds > 86_400:
		return fmt.Errorf(
			"scale: lease %g s, %g s of which %g are not counted: want a lease of 1 s or more and up to a day", l.Lease,
			l.Seconds, l.Warm)
	}
	return nil
}

// Result is what a simulation counted.
type Result struct {
	Submitted, Waiting, Held, Ended int // executions: the first is the sum of the others

	Seconds     float64   // counted
	Throughput  float64   // ended a second
	Utilisation []float64 // of each primary
	Calls       float64   // function calls for each execution that ended
	Pings       float64   // a second, of all connections
	// ms, from the submit until the handler begins; of executions that were submitted in the counted time
	P50, P99    float64
	MeanWait    float64   // ms, likewise
	MeanWaiting float64   // executions, over the counted time
	Memory      []float64 // bytes of each primary at its end: executions only
	Sessions    int       // open at the end
}

// job is one execution.
type job struct {
	submitted time.Duration
	partition int
	counts    bool
	began     func() // told when its handler begins; may be nil
}

// partition is one on its primary.
type partition struct {
	primary *station
	queue   []*job
	waiters []*worker
	ended   int
	held    int
}

// simulation is one run.
type simulation struct {
	Load
	costs      Costs
	clock      clock
	random     *rand.Rand
	primaries  []*station
	of         []int // partition → primary
	partitions []*partition
	workers    []*worker

	submitted, ended, begun int
	functions, pings        int
	latencies               []time.Duration
	area                    float64 // of waiting executions over time, since
	since                   time.Duration
	waiting                 int

	warm struct {
		at                      time.Duration
		used                    []time.Duration
		ended, functions, pings int
	}
}

// Simulate runs a load under costs. The same load, costs and seed give the same result.
func Simulate(l Load, c Costs) (Result, error) {
	if err := l.check(); err != nil {
		return Result{}, err
	}
	s := &simulation{Load: l, costs: c, random: randomOf(l.Seed)}
	for range l.Primaries {
		s.primaries = append(s.primaries, &station{clock: &s.clock})
	}
	for p := range l.Partitions {
		n := Primary(p, l.Primaries)
		if l.Even {
			n = p % l.Primaries
		}
		s.of = append(s.of, n)
		s.partitions = append(s.partitions, &partition{primary: s.primaries[n]})
	}
	for i := range l.Preload {
		s.add(&job{partition: i / 100 % l.Partitions, counts: l.Warm == 0})
	}
	for range l.Workers {
		s.workers = append(s.workers, newWorker(s))
	}
	s.ticks()
	s.produce()
	s.mark()
	if l.Warm > 0 {
		s.clock.after(seconds(l.Warm), s.mark)
	}
	s.clock.run(seconds(l.Seconds), func() bool {
		return l.Preload+l.Jobs > 0 && s.ended == l.Preload+l.Jobs && (l.Rate == 0 || l.Jobs > 0)
	})
	return s.result(), nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// mark begins to count.
func (s *simulation) mark() {
	s.account(0)
	s.area, s.warm.at, s.warm.ended, s.warm.functions, s.warm.pings = 0, s.clock.now, s.ended, s.functions, s.pings
	s.warm.used = nil
	for _, p := range s.primaries {
		s.warm.used = append(s.warm.used, p.used)
	}
}

// end counts executions that ended.
func (s *simulation) end(n int) {
	before := s.ended
	s.ended += n
	if before < s.Uncounted && s.ended >= s.Uncounted {
		s.mark()
	}
}

// account notes that so many more executions wait.
func (s *simulation) account(more int) {
	s.area += float64(s.waiting) * (s.clock.now - s.since).Seconds()
	s.since = s.clock.now
	s.waiting += more
}

// add makes an execution that waits.
func (s *simulation) add(j *job) {
	s.account(1)
	s.submitted++
	p := s.partitions[j.partition]
	p.queue = append(p.queue, j)
}

// function lets a primary execute a function call that a process sends now; do decides what it finds there, and
// answer is what the process does with the reply.
func (s *simulation) function(primary *station, do func() (items int, inside time.Duration), answer func()) {
	s.clock.after(micros(s.costs.Hop), func() {
		primary.arrive(func() (time.Duration, func()) {
			s.functions++
			items, inside := do()
			return inside + s.costs.Outside.Of(items), func() { s.clock.after(micros(s.costs.Hop), answer) }
		})
	})
}

// every repeats something at a pace, from a random moment on.
func (s *simulation) every(pace time.Duration, do func()) {
	var again func()
	again = func() { do(); s.clock.after(pace, again) }
	s.clock.after(time.Duration(s.random.Float64()*float64(pace)), again)
}

// ticks come every second while a partition has work, and every ten without.
func (s *simulation) ticks() {
	for _, p := range s.partitions {
		quiet := 0
		s.every(time.Second, func() {
			if quiet++; len(p.queue) > 0 || quiet == 10 {
				quiet = 0
				s.function(p.primary, func() (int, time.Duration) { return 0, micros(s.costs.Tick) }, func() {})
			}
		})
	}
}

// result sums up.
func (s *simulation) result() Result {
	s.account(0)
	counted := (s.clock.now - s.warm.at).Seconds()
	r := Result{Submitted: s.submitted, Ended: s.ended, Seconds: counted, Memory: make([]float64, s.Primaries)}
	b := s.costs.Bytes
	for i, p := range s.partitions {
		r.Waiting += len(p.queue)
		r.Held += p.held
		r.Memory[s.of[i]] += float64(len(p.queue))*(b.Waiting+b.Payload) + float64(p.held)*(b.Active+b.Payload) +
			float64(p.ended)*(b.Done+b.Payload+b.Result)
	}
	for i, p := range s.primaries {
		r.Utilisation = append(r.Utilisation, min(1, (p.used-s.warm.used[i]).Seconds()/max(counted, 1e-9)))
	}
	for _, w := range s.workers {
		r.Sessions += len(w.sessions)
	}
	ended := float64(s.ended - s.warm.ended)
	if counted > 0 {
		r.Throughput, r.Pings, r.MeanWaiting = ended/counted, float64(s.pings-s.warm.pings)/counted, s.area/counted
	}
	if ended > 0 {
		r.Calls = float64(s.functions-s.warm.functions) / ended
	}
	if n := len(s.latencies); n > 0 {
		slices.Sort(s.latencies)
		at := func(share float64) float64 {
			return float64(s.latencies[max(0, int(math.Ceil(share*float64(n)))-1)]) / 1e6
		}
		r.P50, r.P99 = at(0.5), at(0.99)
		for _, d := range s.latencies {
			r.MeanWait += float64(d) / 1e6 / float64(n)
		}
	}
	return r
}

// randomOf is the source of a seed.
func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
