package runtime

import (
	"context"
	"sync"
	"time"
)

// slots counts what may run at once: exactly capacity handlers, never one more. A claim reserves slots before it asks
// for work.
//
//	reserve ──▶ asked ──enter──▶ running ──leave──▶ settling ──settled──▶ gone
//	                      └──▶ ahead ──▲ (when a handler returns)
//
// A slot is free when its handler has returned; what is left to settle then is bounded on its own. Claims may reserve
// a few more than there are slots, as many as [pace] says: these wait ahead of the handlers, in order, and start when
// one returns.
type slots struct {
	capacity    int
	limited     Slots         // what the application says of it; nil: nothing
	maxSettling int           // nothing is claimed while so many are to be settled
	freed       chan struct{} // capacity 1: there may be room for a claim

	mu       sync.Mutex
	asked    int    // reserved by claims under way
	running  int    // handlers
	ahead    []*job // claimed, waiting for a handler to return
	settling int    // whose handlers have returned
	closed   bool   // nothing waits ahead any more
	limit    int    // of capacity, as the application said last
	pace     pace
	idle     chan struct{} // closed once there is nothing of all that; nil while nobody waits for it
}

// minSettling bounds what a worker of few slots may have to settle.
const minSettling = 16

func newSlots(capacity int) *slots {
	return &slots{capacity: capacity, limit: capacity, pace: pace{patience: patience},
		maxSettling: max(2*capacity, minSettling), freed: make(chan struct{}, 1)}
}

// free is how many slots no handler has and no claim brings work for.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spare()
}

func (s *slots) spare() int {
	if s.settling >= s.maxSettling {
		return 0
	}
	return max(0, s.limit-s.taken())
}

// taken is how many executions have slots, wait for one or may come. Called with mu held.
func (s *slots) taken() int { return s.asked + s.running + len(s.ahead) }

// room is how many slots are free and how many executions more may be claimed ahead of them. Not before half of those
// are wanted is it worth a claim of its own: due tells.
func (s *slots) room(now time.Time) (free, ahead int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settling >= s.maxSettling || s.closed {
		return s.spare(), 0, false
	}
	most := s.pace.ahead(now, s.capacity)
	ahead = min(most, max(0, s.limit+most-s.taken()))
	return s.spare(), ahead, ahead > 0 && 2*ahead >= most
}

// adjust asks the application how many slots there are now, and says when to ask again.
func (s *slots) adjust() (again time.Duration) {
	if s.limited == nil {
		return time.Hour
	}
	limit := max(0, min(s.limited.Limit(), s.capacity))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit = limit; limit < s.capacity {
		return time.Second
	}
	return time.Hour
}

// take reserves up to n free slots without waiting and returns how many it got.
func (s *slots) take(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserve(min(n, s.spare()))
}

// takeAhead is take for up to n of what room has told.
func (s *slots) takeAhead(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.settling >= s.maxSettling {
		return s.reserve(min(n, s.spare()))
	}
	return s.reserve(min(n, s.limit+s.pace.most-s.taken()))
}

func (s *slots) reserve(n int) int {
	if n <= 0 {
		return 0
	}
	s.asked += n
	return n
}

// put gives up n reservations.
func (s *slots) put(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.asked -= n
	s.done()
	s.mu.Unlock()
	s.signal()
}

// enter turns a reservation into a running handler, or lets the job wait for one to return. With neither it must go
// back.
func (s *slots) enter(j *job, now time.Time) (run, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running < s.capacity:
		s.running++
		run = true
	case s.closed:
		return false, false
	default:
		j.since = now
		s.ahead = append(s.ahead, j)
		waits = true
	}
	s.asked--
	return run, waits
}

// leave ends a handler, whose job is to be settled now, and returns the job that has its slot, which the caller must
// start. With keep the slot stays reserved for the claim that goes with the completion, unless a job waits for it:
// kept tells.
func (s *slots) leave(now time.Time, keep bool) (next *job, kept bool) {
	s.mu.Lock()
	s.settling++
	s.pace.returned(now)
	tell := true
	if len(s.ahead) > 0 {
		next = s.ahead[0]
		s.ahead[0] = nil
		s.ahead = s.ahead[1:]
		tell = 2*(s.limit+s.pace.most-s.taken()) >= s.pace.most // the next claim is due
	} else {
		s.running--
		if keep {
			s.asked++
			tell, kept = false, true
		}
	}
	s.mu.Unlock()
	if tell {
		s.signal()
	}
	return next, kept
}

// coming tells whether some slots are reserved, which may be given back soon.
func (s *slots) coming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked > 0
}

// settled forgets n jobs whose handlers have returned.
func (s *slots) settled(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	full := s.settling >= s.maxSettling
	s.settling -= n
	s.done()
	s.mu.Unlock()
	if full {
		s.signal()
	}
}

// claimed learns how long a claim takes.
func (s *slots) claimed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.claimed(took)
}

// stale takes back what has waited ahead for too long, and says when to ask again.
func (s *slots) stale(now time.Time) (back []*job, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ahead) == 0 {
		return nil, time.Hour
	}
	left := time.Hour
	for _, j := range s.ahead {
		left = min(left, s.pace.bound(j.deep)-now.Sub(j.since))
	}
	if left > 0 {
		return nil, left
	}
	s.pace.mistaken(now)
	return s.clear(), time.Hour
}

// close takes back all that waits ahead, and lets nothing wait there any more.
func (s *slots) close() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.clear()
}

func (s *slots) clear() []*job {
	back := s.ahead
	s.ahead = nil
	s.done()
	return back
}

// counts is how many handlers run, and how many jobs are to be settled.
func (s *slots) counts() (running, settling int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.settling
}

// done closes idle when nothing is left. Called with mu held, after something ended.
func (s *slots) done() {
	if s.idle != nil && s.taken()+s.settling == 0 {
		close(s.idle)
		s.idle = nil
	}
}

func (s *slots) signal() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// wait returns nil once no handler runs and all is settled, or the cause of ctx.
func (s *slots) wait(ctx context.Context) error {
	s.mu.Lock()
	if s.taken()+s.settling == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-idle: // both happened: all free is the better news
		return nil
	default:
		return context.Cause(ctx)
	}
}
