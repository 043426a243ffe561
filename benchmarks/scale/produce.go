package scale

import "time"

const (
	maxBatch  = 100 // executions of a call
	inFlight  = 4   // create calls of a client at once
	longQueue = 32  // submits that are worth a further call
	maxStay   = 16  // lone batches in one partition
	loneAfter = 2 * time.Millisecond
)

// producer is a client: submits that come while a call is under way join the next one.
type producer struct {
	s       *simulation
	queue   []*job
	calls   int // under way
	turn    int // next partition
	last    int
	stayed  int
	formed  time.Duration
	started bool
}

// produce starts the submits.
func (s *simulation) produce() {
	left := s.Jobs
	submit := func(p *producer, began func()) bool {
		if s.Jobs > 0 {
			if left == 0 {
				return false
			}
			left--
		}
		p.submit(&job{submitted: s.clock.now, counts: s.clock.now >= seconds(s.Warm), began: began})
		return true
	}
	if s.Rest > 0 {
		p := &producer{s: s}
		var next func()
		next = func() { submit(p, func() { s.clock.after(seconds(s.Rest), next) }) }
		s.clock.after(0, next)
		return
	}
	if s.Rate == 0 {
		return
	}
	pace := float64(s.Producers) / s.Rate
	for range s.Producers {
		p := &producer{s: s, turn: s.random.IntN(s.Partitions)}
		due := seconds(s.random.ExpFloat64() * pace)
		var next func()
		next = func() {
			if submit(p, nil) {
				due += seconds(s.random.ExpFloat64() * pace)
				s.clock.after(rounded(due, seconds(s.Grain))-s.clock.now, next)
			}
		}
		s.clock.after(rounded(due, seconds(s.Grain)), next)
	}
}

// rounded is the first look at timers at or after a moment, if they are looked at so often.
func rounded(at, grain time.Duration) time.Duration {
	if grain == 0 {
		return at
	}
	return (at + grain - 1) / grain * grain
}

func (p *producer) submit(j *job) {
	p.queue = append(p.queue, j)
	p.flush()
}

// flush sends what waits, unless a call under way will be answered soon.
func (p *producer) flush() {
	for len(p.queue) > 0 && (p.calls == 0 || p.calls < inFlight && len(p.queue) >= longQueue) {
		n := min(len(p.queue), maxBatch)
		batch := p.queue[:n:n]
		p.queue = p.queue[n:]
		p.calls++
		to := p.place(n)
		s := p.s
		s.function(s.partitions[to].primary, func() (int, time.Duration) {
			for _, j := range batch {
				j.partition = to
				s.add(j)
			}
			return n, s.costs.Create.Of(n) + s.ring(to, n)
		}, func() { p.calls--; p.flush() })
	}
}

// place is the partition of a batch: the next one, but a few lone ones stay.
func (p *producer) place(items int) int {
	lone := items == 1 && p.started && p.s.clock.now-p.formed >= loneAfter
	if !lone || p.stayed == 0 || p.stayed == maxStay {
		p.last, p.stayed = p.turn, 0
		p.turn = (p.turn + 1) % p.s.Partitions
	}
	p.stayed++
	p.formed, p.started = p.s.clock.now, true
	return p.last
}

// ring wakes as many waiters as there is work, inside a call, and returns what that costs.
func (s *simulation) ring(to, n int) (takes time.Duration) {
	p := s.partitions[to]
	n = min(n, len(p.waiters))
	for _, w := range p.waiters[:n] {
		s.clock.after(micros(s.costs.Hop), func() { w.rung(to) })
	}
	p.waiters = p.waiters[n:]
	return micros(s.costs.Ring * float64(n))
}
