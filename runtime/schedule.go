package runtime

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

const (
	// maxRounds bounds the claims in flight over all partitions.
	maxRounds = 4
	// gather is how long a small claim for idle slots waits for more of them while other claims are under way: slots
	// are freed one by one but claimed best by the dozen. Slots that have work ahead of them lose nothing by waiting.
	gather = 100 * time.Microsecond
)

// scheduler decides when work is asked for, and with how many slots; its source decides where.
type scheduler struct {
	slots    *slots
	source   *source.Source
	round    func(p *source.Partition, slots int) // returns all slots it does not use up
	giveBack func([]*job)                         // what waited too long for a slot
	wake     chan struct{}                        // capacity 1

	mu        sync.Mutex
	rounds    int
	gathering time.Time // since when a claim waits for more slots; zero if none does
}

func newScheduler(slots *slots) *scheduler {
	return &scheduler{slots: slots, giveBack: func([]*job) {}, wake: make(chan struct{}, 1)}
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
		again = min(again, s.slots.adjust())
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
func (s *scheduler) pick(now time.Time) (*source.Partition, int, time.Duration) {
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
	p, n, pause := s.source.Take(now, free == 0, func(p *source.Partition) int {
		want := min(free, share)
		switch {
		case p.Failing():
			want = 1 // a partition in trouble must not keep slots from the others
		case !p.Gated(): // gates ask before they know when a handler can begin
			want = min(want+ahead, limits.MaxBatch)
		}
		return s.slots.takeAhead(want)
	})
	s.gathering = time.Time{}
	if p != nil {
		s.rounds++
	}
	return p, n, pause
}

// join takes slots for a call that ends members of flows and goes to p anyhow, so that it claims as well: those that
// were kept, and of those that are free up to n in all. If the server will not ring, up to twice as many are taken, so
// that the claim can tell that nothing is left and register. Such a claim waits for nobody and is not counted as a
// round, for it costs no call; it ends with [source.Source.Left].
func (s *scheduler) join(p *source.Partition, kept, n int) (more int, registered, joined bool) {
	registered, joined = s.source.Join(p, func(registered bool) bool {
		if !registered {
			n *= 2
		}
		more = s.slots.take(min(n, limits.MaxBatch) - kept)
		return kept+more > 0
	})
	return more, registered, joined
}

// ended records the end of a claim round.
func (s *scheduler) ended(p *source.Partition) {
	s.mu.Lock()
	s.rounds--
	s.mu.Unlock()
	s.source.Left(p)
}

// poke has the scheduler look again. It never blocks.
func (s *scheduler) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
