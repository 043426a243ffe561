package runtime

import (
	"context"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const (
	// maxRounds bounds the claims in flight over all partitions.
	maxRounds = 4
	// gather is how long a small claim for idle slots waits for more of them while other claims are under way: slots
	// are freed one by one but claimed best by the dozen. Slots that have work ahead of them lose nothing by waiting.
	gather = 100 * time.Microsecond
	// registration is how long a waiter trusts its registration; the server keeps it for three minutes.
	registration = 2 * time.Minute
	maxPenalty   = 6 // a poll that found only other workers' routes is ignored for up to 2^6 s
)

// scheduler decides which partition is asked for work next, and with how many slots. A partition is hot when
// there may be something to get: it was rung, it had more than fitted, or this instance is not registered there.
type scheduler struct {
	slots      *slots
	partitions []*partition
	round      func(p *partition, slots int) // returns all slots it does not use up
	giveBack   func([]*job)                  // what waited too long for a slot
	onOwed     func()                        // a ring may have to be forwarded; must not block
	wake       chan struct{}                 // capacity 1

	mu        sync.Mutex
	hot       []*partition // in the order they became hot
	rounds    int
	gathering time.Time // since when a claim waits for more slots; zero if none does

	owing bool // some partition may be owed

	marked int    // partitions that have a mark, see urgent.go
	recent recent // what claims brought
}

func newScheduler(count uint16, slots *slots) *scheduler {
	s := &scheduler{slots: slots, onOwed: func() {}, giveBack: func([]*job) {}, wake: make(chan struct{}, 1),
		recent: newRecent(int(count))}
	for id := range count {
		s.partitions = append(s.partitions, newPartition(id))
	}
	return s
}

// run makes claim rounds of hot partitions until ctx ends, and returns when no claim round is under way any more.
func (s *scheduler) run(ctx context.Context) {
	var rounds conc.WaitGroup
	defer rounds.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		back, again := s.slots.stale(now)
		if len(back) > 0 {
			s.giveBack(back)
		}
		p, n, pause := s.pick(now)
		if p != nil {
			rounds.Go(func() {
				s.round(p, n)
				s.ended(p)
			})
			continue
		}
		timer.Reset(min(pause, again))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-s.slots.freed:
			goruntime.Gosched() // handlers that end at the same moment free their slots now, too
		case <-timer.C:
		}
	}
}

// pick takes a hot partition and slots for it, or says how long there is nothing to do unless something wakes.
func (s *scheduler) pick(now time.Time) (*partition, int, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds >= maxRounds {
		return nil, 0, time.Hour
	}
	free, ahead, due := s.slots.room(now)
	if free == 0 && !due {
		return nil, 0, time.Hour
	}
	// Two claims that take turns keep the server busy while this side is: more would only make each smaller.
	share := min((s.slots.capacity+1)/2, limits.MaxBatch)
	if free > 0 && free < share && s.rounds > 0 {
		if s.gathering.IsZero() {
			s.gathering = now
		}
		if young := gather - now.Sub(s.gathering); young > 0 {
			return nil, 0, young
		}
	}
	pause, found := time.Hour, s.before(now, free == 0)
	for i, p := range s.hot {
		if found >= 0 {
			break
		}
		if wait := p.notBefore.Sub(now); wait > 0 {
			pause = min(pause, wait)
			continue
		}
		if s.claimable(p, now, free == 0) {
			found = i
		}
	}
	if found < 0 {
		s.gathering = time.Time{}
		return nil, 0, pause
	}
	p := s.hot[found]
	want := min(free, share)
	switch {
	case p.failures > 0:
		want = 1 // a partition in trouble must not keep slots from the others
	case !p.gated: // gates ask before they know when a handler can begin
		want = min(want+ahead, limits.MaxBatch)
	}
	n := s.slots.takeAhead(want)
	if n == 0 {
		return nil, 0, pause
	}
	s.hot = append(s.hot[:found], s.hot[found+1:]...)
	p.ahead, p.dry = free == 0, false
	p.queued, p.claiming, p.rung, p.owed = false, true, false, time.Time{}
	s.serve(p)
	if p.stale { // a lossy failover may have given a lost id to another route: read the table anew
		p.stale, p.table.Version, p.digest = false, 0, ""
	}
	s.rounds++
	s.gathering = time.Time{}
	if s.owing { // it may have got the last slot
		s.onOwed()
	}
	return p, n, 0
}

// claimable tells whether a hot partition may be claimed from, or only ahead of slots. Called with mu held.
func (s *scheduler) claimable(p *partition, now time.Time, ahead bool) bool {
	return !p.notBefore.After(now) && !(ahead && (p.dry || p.gated || p.failures > 0)) // nothing to claim ahead
}

// join lets a call that ends n members and goes to p anyhow claim as well, with the slots that were kept for it and
// those that are free, up to n in all. registered tells whether the server will ring. If it will not, up to twice as
// many are taken, so that the claim can tell that nothing is left and register. It is refused if there is no slot,
// while p is being claimed from, is in trouble, or is not known well enough for a claim, and if p has work with
// gates, or if another partition has urgent work, which comes next. Such a claim waits for nobody and is not counted
// as a round, for it costs no call; it ends with left.
func (s *scheduler) join(p *partition, kept, n int) (more int, registered, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.claiming || p.stale || p.failures > 0 || p.digest == "" || p.gated || s.elsewhere(p) {
		return 0, false, false
	}
	registered = p.registered && !p.queued && !p.rung // a ring or a poll says that this may be over
	if !registered {
		n *= 2
	}
	if more = s.slots.take(min(n, limits.MaxBatch) - kept); kept+more == 0 {
		return 0, false, false
	}
	p.registered = registered
	if p.queued {
		s.hot = slices.DeleteFunc(s.hot, func(other *partition) bool { return other == p })
	}
	p.queued, p.claiming, p.rung, p.owed = false, true, false, time.Time{}
	s.serve(p)
	if s.owing { // it may have got the last slot
		s.onOwed()
	}
	return more, registered, true
}

// ended records the end of a claim round.
func (s *scheduler) ended(p *partition) {
	s.mu.Lock()
	s.rounds--
	s.mu.Unlock()
	s.left(p)
}

// left decides, by what was learned meanwhile, whether a partition is hot again after a claim round.
func (s *scheduler) left(p *partition) {
	s.mu.Lock()
	p.claiming = false
	s.put(p, p.served)
	if p.rung || !p.registered {
		s.enqueue(p)
	}
	owing := s.owing
	s.mu.Unlock()
	s.poke()
	if owing {
		s.onOwed()
	}
}

// ring makes a partition hot: it was rung, or its registration is in doubt. See ringWork.
func (s *scheduler) ring(p *partition) {
	s.mu.Lock()
	p.registered, p.rung, p.polled, p.emptyPolls, p.ignorePolls, p.dry = false, true, false, 0, time.Time{}, false
	s.enqueue(p)
	s.mu.Unlock()
	s.poke()
}

// ringAll makes every partition hot at once and forgets their backoff: a connection is back.
func (s *scheduler) ringAll(partitions []*partition) {
	s.mu.Lock()
	for _, p := range partitions {
		p.registered, p.rung, p.stale, p.dry, p.notBefore = false, true, true, false, time.Time{}
		p.backoff.Reset()
		s.enqueue(p)
	}
	s.mu.Unlock()
	s.poke()
}

// sweep makes partitions hot whose registration is about to expire.
func (s *scheduler) sweep(now time.Time) {
	s.mu.Lock()
	for _, p := range s.partitions {
		if p.registered && now.After(p.until) {
			p.registered = false
			s.enqueue(p)
		}
	}
	s.mu.Unlock()
	s.poke()
}

// suspect makes a registered partition hot because the poll saw ready routes there: a ring may have been lost.
// If that keeps leading to nothing, the routes are not ours and it is done ever more seldom.
func (s *scheduler) suspect(p *partition, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.registered || p.queued || p.claiming || now.Before(p.ignorePolls) {
		return false
	}
	p.polled = true
	s.enqueue(p)
	s.poke()
	return true
}

// registered records an empty claim: the server rings from now on.
func (s *scheduler) registered(p *partition, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.until = true, now.Add(registration)
	if p.polled {
		p.polled = false
		p.emptyPolls = min(p.emptyPolls+1, maxPenalty)
		p.ignorePolls = now.Add(time.Duration(1<<p.emptyPolls-1) * pollEvery)
	}
}

// open records a claim round after which there may be more to get.
func (s *scheduler) open(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.polled, p.emptyPolls, p.ignorePolls = false, false, 0, time.Time{}
}

// gates records that some of a partition's work has gates.
func (s *scheduler) gates(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.gated = true
}

// dried records a claim ahead that got less than it asked for. It did not register, since no slot is idle: the
// partition stays hot for when one is.
func (s *scheduler) dried(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dry = !p.rung && p.urgent.priority == 0
}

// failed records a claim round without an answer and returns how many that makes in a row.
func (s *scheduler) failed(p *partition, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered = false
	p.failures++
	p.notBefore = now.Add(p.backoff.NextBackOff())
	return p.failures
}

// answered ends a streak of failures and returns how long it was.
func (s *scheduler) answered(p *partition) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := p.failures
	if n > 0 {
		p.failures, p.notBefore = 0, time.Time{}
		p.backoff.Reset()
	}
	return n
}

// enqueue appends p to the hot queue unless it is there or being claimed from. Called with mu held.
func (s *scheduler) enqueue(p *partition) {
	if !p.queued && !p.claiming {
		p.queued = true
		s.hot = append(s.hot, p)
	}
}

func (s *scheduler) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pause keeps a partition hot, but unasked, for a while.
func (s *scheduler) pause(p *partition, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.notBefore = false, until
}
