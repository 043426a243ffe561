package scale

import (
	"math"
	"slices"
	"time"
)

const (
	maxRounds    = 4 // claims of a worker at once
	gather       = 100 * time.Microsecond
	maxAhead     = 5 * time.Millisecond
	paceWindow   = 10 * time.Millisecond
	registration = 2 * time.Minute
	pingEvery    = 5 * time.Second
	connections  = 2   // of a worker to each primary that are always there
	pinged       = 1.3 // of them, as the scenario idle shows: what was used in the last five seconds is not
	pollTurns    = 16
	fleetPolls   = 4
	pollSeldom   = 7500 * time.Millisecond // half of the default ready window
)

// worker is a worker process: slots, claims in rotation, settling in batches, and the timers that keep it known.
type worker struct {
	s         *simulation
	processor *station
	free      int // slots; below zero: so many claimed ahead
	ahead     int // claimed, that no slot was free for
	hot       []int
	state     []lane // by partition
	rounds    int
	gathering time.Duration // since; -1: not
	unsettled int
	sessions  map[int]time.Duration // partition → last claim
	local     []*job                // claimed ahead, waiting for a slot
	settling  map[int]*settling
	pollNext  int

	returned int // handlers, since
	since    time.Duration
	rate     float64
	trip     time.Duration
	phase    time.Duration // of its looks at timers
	freed    bool          // slots, of which it has not taken notice yet
}

// lane is what a worker knows of a partition. A dry one had less than was claimed ahead: it is asked again for a free
// slot.
type lane struct{ queued, claiming, registered, rung, dry bool }

type settling struct {
	waiting int
	busy    bool
}

func newWorker(s *simulation) *worker {
	w := &worker{s: s, processor: &station{clock: &s.clock}, free: s.Concurrency, state: make([]lane, s.Partitions),
		gathering: -1, sessions: map[int]time.Duration{}, settling: map[int]*settling{},
		phase: time.Duration(s.random.Float64() * float64(seconds(s.Grain)))}
	first := s.random.IntN(s.Partitions)
	for i := range s.Partitions {
		w.enqueue((first + i) % s.Partitions)
	}
	s.clock.after(0, w.pick)
	w.timers()
	return w
}

// timers are the calls of a worker that have nothing to do with any execution.
func (w *worker) timers() {
	s := w.s
	pause := min(max(time.Second, time.Duration(s.Workers)*time.Second/fleetPolls), pollSeldom)
	s.every(pause, w.poll)
	s.every(seconds(s.Lease)/3, func() { // registration
		s.function(s.partitions[s.random.IntN(s.Partitions)].primary, func() (int, time.Duration) {
			return 0, micros(s.costs.Renew)
		}, func() {})
	})
	for _, p := range s.primaries {
		for range connections {
			s.every(pingEvery, func() {
				s.clock.after(micros(s.costs.Hop), func() {
					p.arrive(func() (time.Duration, func()) {
						s.pings++
						return micros(s.costs.Ping + s.costs.Outside.Fixed), func() {}
					})
				})
			})
		}
	}
	for p := range s.Partitions {
		s.every(registration, func() {
			if w.state[p].registered {
				s.function(s.partitions[p].primary, func() (int, time.Duration) { return 0, micros(s.costs.Empty) },
					func() {})
			}
		})
	}
}

// poll asks all partitions in one call, or in a cluster some of them in a call each.
func (w *worker) poll() {
	s := w.s
	n := s.Partitions
	if s.Primaries == 1 {
		wished := time.Duration(s.Workers) * time.Second / fleetPolls
		if wished > pollSeldom {
			n = int((time.Duration(n)*pollSeldom + wished - 1) / wished)
		}
		s.function(s.primaries[0], func() (int, time.Duration) { return 0, s.costs.Poll.Of(n) }, func() {})
		return
	}
	for range clusterPoll(n, float64(s.Workers)) {
		s.function(s.partitions[w.pollNext].primary, func() (int, time.Duration) { return 0, s.costs.Poll.Of(1) },
			func() {})
		w.pollNext = (w.pollNext + 1) % n
	}
}

// clusterPoll is how many partitions a poll asks for in a cluster: a part, but of a large fleet only as many as give
// each a poll a second.
func clusterPoll(partitions int, workers float64) int {
	enough := int(float64(partitions)*pollSeldom.Seconds()/max(workers, 1)) + 1
	return min((partitions+pollTurns-1)/pollTurns, enough)
}

func (w *worker) enqueue(p int) {
	if l := &w.state[p]; !l.queued && !l.claiming {
		l.queued = true
		w.hot = append(w.hot, p)
	}
}

// rung is a doorbell. A worker without a free slot passes it on, and comes back to the partition itself.
func (w *worker) rung(p int) {
	s := w.s
	w.state[p].registered, w.state[p].rung, w.state[p].dry = false, true, false
	if w.free <= 0 {
		s.function(s.partitions[p].primary, func() (int, time.Duration) {
			return 0, micros(s.costs.Renew) + s.ring(p, 1)
		}, func() {})
	}
	w.enqueue(p)
	w.pick()
}

// allowed is how many executions may be claimed ahead of the slots: as many as handlers return during two claims.
func (w *worker) allowed() int {
	w.fold()
	return min(w.s.Concurrency, int(w.rate*min(2*w.trip, maxAhead).Seconds()))
}

func (w *worker) fold() {
	passed := w.s.clock.now - w.since
	if passed < paceWindow {
		return
	}
	w.rate, w.since, w.returned = float64(w.returned)/passed.Seconds(), w.s.clock.now, 0
}

// pick makes claims while there are slots, hot partitions and room for claims.
func (w *worker) pick() {
	s := w.s
	for w.rounds < maxRounds && len(w.hot) > 0 && w.unsettled < max(16, 2*s.Concurrency) {
		share := min((s.Concurrency+1)/2, maxBatch)
		allowed := w.allowed()
		room := allowed - w.ahead
		if w.free == 0 && (room <= 0 || 2*w.ahead > allowed) {
			return
		}
		if w.free > 0 && w.free < share && w.rounds > 0 {
			if w.gathering < 0 {
				w.gathering = s.clock.now
				s.clock.after(gather, w.pick)
			}
			if s.clock.now-w.gathering < gather {
				return
			}
		}
		w.gathering = -1
		i := slices.IndexFunc(w.hot, func(p int) bool { return w.free > 0 || !w.state[p].dry })
		if i < 0 {
			return
		}
		p := w.hot[i]
		w.hot = slices.Delete(w.hot, i, i+1)
		slots := min(w.free, share)
		more := min(max(room, 0), maxBatch-slots)
		w.free, w.ahead = w.free-slots, w.ahead+more
		w.rounds++
		w.state[p] = lane{claiming: true}
		w.claim(p, slots, more)
	}
}

// claim asks a partition for executions for so many slots, and for more ahead of them.
func (w *worker) claim(p, slots, more int) {
	s := w.s
	at, sent := s.partitions[p], s.clock.now
	var got []*job
	left := false
	s.function(at.primary, func() (int, time.Duration) {
		n := min(len(at.queue), slots+more)
		got = at.queue[:n:n]
		at.queue = at.queue[n:]
		at.held += n
		s.account(-n)
		left = len(at.queue) > 0
		if !left && slots > 0 && n < slots+more {
			at.waiters = append(at.waiters, w)
			w.state[p].registered = !w.state[p].rung
		}
		w.state[p].dry = !left && slots == 0 && !w.state[p].rung
		if n == 0 {
			return 0, micros(s.costs.Empty)
		}
		return n, s.costs.Claim.Of(n)
	}, func() { w.claimed(p, got, slots, more, s.clock.now-sent) })
}

func (w *worker) claimed(p int, got []*job, slots, more int, took time.Duration) {
	if w.trip == 0 {
		w.trip = took
	}
	w.trip += (took - w.trip) / 8
	w.rounds--
	l := &w.state[p]
	l.claiming = false
	if !l.registered || l.rung {
		w.enqueue(p)
	}
	if len(got) > 0 {
		w.session(p)
		w.unsettled += len(got)
	}
	forSlots := min(len(got), slots)
	w.free += slots - forSlots
	w.ahead -= more - (len(got) - forSlots)
	for i, j := range got {
		w.compute(func() {
			if i < forSlots {
				w.begin(j)
				return
			}
			w.local = append(w.local, j)
			w.fill()
		})
	}
	w.fill()
	w.pick()
}

// compute is half of what a job costs the processor of this process.
func (w *worker) compute(then func()) {
	w.processor.arrive(func() (time.Duration, func()) { return micros(w.s.costs.Client / 2), then })
}

// fill gives free slots to what was claimed ahead of them.
func (w *worker) fill() {
	for w.free > 0 && len(w.local) > 0 {
		next := w.local[0]
		w.local = w.local[1:]
		w.free--
		w.ahead--
		w.begin(next)
	}
}

// begin runs a handler.
func (w *worker) begin(j *job) {
	s := w.s
	s.begun++
	if j.counts {
		s.latencies = append(s.latencies, s.clock.now-j.submitted)
	}
	if j.began != nil {
		j.began()
	}
	takes := s.Work
	if s.Spread {
		takes *= s.random.ExpFloat64()
	}
	ends := s.clock.now + seconds(takes)
	if takes > 0 {
		ends = rounded(ends+1-w.phase, seconds(s.Grain)) + w.phase
	}
	s.clock.after(ends-s.clock.now, func() { w.compute(func() { w.end(j) }) })
}

// end frees the slot, which what was claimed ahead takes, and settles the job with others of its partition.
func (w *worker) end(j *job) {
	w.returned++
	w.free++
	w.fill()
	q := w.settling[j.partition]
	if q == nil {
		q = &settling{}
		w.settling[j.partition] = q
	}
	q.waiting++
	if !q.busy {
		q.busy = true
		w.yield(func() { w.settle(j.partition, q) })
	}
	if !w.freed {
		w.freed = true
		w.yield(func() { w.freed = false; w.pick() })
	}
}

// yield does something after what this process is ready to do now: handlers that end at the same moment join.
func (w *worker) yield(do func()) {
	w.processor.arrive(func() (time.Duration, func()) { return 0, do })
}

func (w *worker) settle(p int, q *settling) {
	s := w.s
	n := min(q.waiting, maxBatch)
	if q.busy = n > 0; !q.busy {
		return
	}
	q.waiting -= n
	at := s.partitions[p]
	s.function(at.primary, func() (int, time.Duration) {
		at.held, at.ended = at.held-n, at.ended+n
		s.end(n)
		return n, s.costs.Complete.Of(n)
	}, func() {
		w.unsettled -= n
		w.settle(p, q)
		w.pick()
	})
}

// session keeps a lease in a partition alive until nothing was claimed there for its time.
func (w *worker) session(p int) {
	s := w.s
	_, open := w.sessions[p]
	w.sessions[p] = s.clock.now
	if open {
		return
	}
	ttl := seconds(s.Lease)
	var renew func()
	renew = func() {
		s.function(s.partitions[p].primary, func() (int, time.Duration) { return 0, micros(s.costs.Renew) }, func() {})
		if s.clock.now-w.sessions[p] >= ttl {
			delete(w.sessions, p)
			return
		}
		s.clock.after(ttl/3, renew)
	}
	// Sessions that are opened together are not renewed together for long.
	s.clock.after(time.Duration(math.Round(float64(ttl)/3*(0.9+0.2*s.random.Float64()))), renew)
}
