package source

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

const (
	// registration is how long a waiter trusts its registration; the server keeps it for three minutes.
	registration = 2 * time.Minute
	maxPenalty   = 6 // a poll that found only other workers' routes is ignored for up to 2^6 s
	// unregisteredPause keeps a server that neither hands out nor registers from being asked in a tight loop.
	unregisteredPause = 100 * time.Millisecond
	// callTimeout bounds the calls that a source and its listener make.
	callTimeout = 3 * time.Second
)

// Room tells a source whether what it finds can be followed here; a source that has none forwards the wakes it gets.
type Room interface {
	Free() bool   // somebody waits for work
	Coming() bool // some of the room that claims under way have reserved may be given back soon
}

// Config says what a source is for. All fields are required.
type Config struct {
	Partitions uint16
	Offer      offer.Offer
	Store      Store
	Room       Room
	Logger     *slog.Logger
	OnHot      func() // there may be something to take; must not block
}

// Store is what a source asks of the server itself.
type Store interface {
	SetSubscription(ctx context.Context, partition uint16, s engine.Subscription) (digest string, err error)
}

// Source knows where there may be work for one offer. A partition is hot when there may be something to get: it was
// rung, it had more than fitted, or nobody is registered there. Safe for concurrent use.
type Source struct {
	cfg        Config
	partitions []*Partition
	onOwed     func() // a ring may have to be forwarded; the listener's

	mu     sync.Mutex
	hot    []*Partition // in the order they became hot
	owing  bool         // some partition may be owed
	marked int          // partitions that have a mark, see urgent.go
	recent recent       // what claims brought
}

// New makes a source; it makes no call. Nothing is hot before [Source.RingAll].
func New(cfg Config) *Source {
	s := &Source{cfg: cfg, onOwed: func() {}, recent: newRecent(int(cfg.Partitions))}
	for id := range cfg.Partitions {
		s.partitions = append(s.partitions, newPartition(id))
	}
	return s
}

// Partition is one of its partitions.
func (s *Source) Partition(id uint16) *Partition { return s.partitions[id] }

// Serves reports whether work of a route is for this source's worker.
func (s *Source) Serves(r engine.Route) bool { return s.cfg.Offer.Serves(r) }

// Take picks the partition to claim from next: the one with the most urgent work, or the next in turn. reserve says
// how many executions the claim is for; with 0, or nothing that is hot, p is nil and pause says how long there is
// nothing to take unless OnHot is called. ahead asks only for what may be claimed although nobody can run it yet.
// What was taken ends with [Source.Left].
func (s *Source) Take(now time.Time, ahead bool, reserve func(p *Partition) int) (
	p *Partition, n int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause, found := time.Hour, s.before(now, ahead)
	for i, p := range s.hot {
		if found >= 0 {
			break
		}
		if wait := p.notBefore.Sub(now); wait > 0 {
			pause = min(pause, wait)
			continue
		}
		if s.claimable(p, now, ahead) {
			found = i
		}
	}
	if found < 0 {
		return nil, 0, pause
	}
	p = s.hot[found]
	if n = reserve(p); n == 0 {
		return nil, 0, pause
	}
	s.hot = append(s.hot[:found], s.hot[found+1:]...)
	p.ahead, p.dry = ahead, false
	s.begin(p)
	if p.stale { // a lossy failover may have given a lost id to another route: read the table anew
		p.stale, p.table.Version, p.digest = false, 0, ""
	}
	return p, n, 0
}

// Look makes claim rounds of what is hot until they have brought as many executions as are wanted, or nothing is hot any
// more: then pause says how long, as in [Source.Take]. round claims up to n executions of a partition and returns how
// many it got. The error is that of a partition, when none answered.
func (s *Source) Look(ctx context.Context, want int, round func(p *Partition, n int) (got int, err error)) (
	got int, pause time.Duration, failed error) {
	answered := false
	for got < want && ctx.Err() == nil {
		p, n, rest := s.Take(time.Now(), false, func(*Partition) int { return want - got })
		if p == nil {
			pause = rest
			break
		}
		more, err := round(p, n)
		if err != nil {
			s.Failed(p, time.Now())
			failed = err
		}
		s.Left(p)
		got, answered = got+more, answered || err == nil
	}
	if answered || got > 0 {
		failed = nil
	}
	return got, pause, failed
}

// begin marks a partition as claimed from. Called with mu held.
func (s *Source) begin(p *Partition) {
	p.queued, p.claiming, p.rung, p.owed = false, true, false, time.Time{}
	s.serve(p)
	if s.owing { // it may have got the last room
		s.onOwed()
	}
}

// claimable tells whether a hot partition may be claimed from, or only ahead of slots. Called with mu held.
func (s *Source) claimable(p *Partition, now time.Time, ahead bool) bool {
	return !p.notBefore.After(now) && !(ahead && (p.dry || p.gated || p.failures > 0)) // nothing to claim ahead
}

// Join lets a call that goes to p anyhow claim as well. reserve is told whether the server will ring; if it will not,
// the claim should ask for more than it needs, so that it can tell that nothing is left and register. It says whether
// there is room. Nothing is joined while p is being claimed from, is in trouble, or is not known well enough for a
// claim, if p has work with gates, or if another partition has urgent work, which comes next. What was joined ends
// with [Source.Left].
func (s *Source) Join(p *Partition, reserve func(registered bool) bool) (registered, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.claiming || p.stale || p.failures > 0 || p.digest == "" || p.gated || s.elsewhere(p) {
		return false, false
	}
	registered = p.registered && !p.queued && !p.rung // a ring or a poll says that this may be over
	if !reserve(registered) {
		return false, false
	}
	p.registered = registered
	if p.queued {
		s.hot = slices.DeleteFunc(s.hot, func(other *Partition) bool { return other == p })
	}
	s.begin(p)
	return registered, true
}

// Left decides, by what was learned meanwhile, whether a partition is hot again after a claim round.
func (s *Source) Left(p *Partition) {
	s.mu.Lock()
	p.claiming = false
	s.put(p, p.served)
	if p.rung || !p.registered {
		s.enqueue(p)
	}
	owing := s.owing
	s.mu.Unlock()
	s.cfg.OnHot()
	if owing {
		s.onOwed()
	}
}

// Registered is in how many partitions the server will ring, and none is claimed from or about to be.
func (s *Source) Registered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		if p.registered && !p.queued && !p.claiming {
			n++
		}
	}
	return n
}

// Hot reports whether there is something to take now.
func (s *Source) Hot(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hot, func(p *Partition) bool { return s.claimable(p, now, false) })
}

// RingAll makes every partition hot at once and forgets its backoff: a connection is back.
func (s *Source) RingAll() { s.ringAll(s.partitions) }

func (s *Source) ringAll(partitions []*Partition) {
	s.mu.Lock()
	for _, p := range partitions {
		p.registered, p.rung, p.stale, p.dry, p.notBefore = false, true, true, false, time.Time{}
		p.backoff.Reset()
		s.enqueue(p)
	}
	s.mu.Unlock()
	s.cfg.OnHot()
}

// ring makes a partition hot: it was rung, or its registration is in doubt. See ringWork.
func (s *Source) ring(p *Partition) {
	s.mu.Lock()
	p.registered, p.rung, p.polled, p.emptyPolls, p.ignorePolls, p.dry = false, true, false, 0, time.Time{}, false
	s.enqueue(p)
	s.mu.Unlock()
	s.cfg.OnHot()
}

// ringWork is ring for a message that says there is work: until a claim round begins, the ring may be owed to another
// waiter. Priority is above 0 for work that is urgent.
func (s *Source) ringWork(p *Partition, now time.Time, priority int) {
	s.mu.Lock()
	s.put(p, mark{priority: priority})
	if p.owed.IsZero() {
		p.owed = now
	}
	s.owing = true
	s.mu.Unlock()
	s.ring(p)
	s.onOwed()
}

// sweep makes partitions hot whose registration is about to expire.
func (s *Source) sweep(now time.Time) {
	s.mu.Lock()
	for _, p := range s.partitions {
		if p.registered && now.After(p.until) {
			p.registered = false
			s.enqueue(p)
		}
	}
	s.mu.Unlock()
	s.cfg.OnHot()
}

// suspect makes a registered partition hot because the poll saw ready routes there: a ring may have been lost.
// If that keeps leading to nothing, the routes are not ours and it is done ever more seldom.
func (s *Source) suspect(p *Partition, now time.Time) bool {
	s.mu.Lock()
	suspected := p.registered && !p.queued && !p.claiming && !now.Before(p.ignorePolls)
	if suspected {
		p.polled = true
		s.enqueue(p)
	}
	s.mu.Unlock()
	if suspected {
		s.cfg.OnHot()
	}
	return suspected
}

// enqueue appends p to the hot queue unless it is there or being claimed from. Called with mu held.
func (s *Source) enqueue(p *Partition) {
	if !p.queued && !p.claiming {
		p.queued = true
		s.hot = append(s.hot, p)
	}
}
