package runtime

import (
	"context"
	"sync"
)

// slots counts what may run at once. Unlike a semaphore it hands out as many as are free in one go, tells when
// one is freed, and tells when all are.
type slots struct {
	capacity int
	freed    chan struct{} // capacity 1: at least one was freed

	mu   sync.Mutex
	used int
	idle chan struct{} // closed while used == 0
}

func newSlots(capacity int) *slots {
	s := &slots{capacity: capacity, freed: make(chan struct{}, 1), idle: make(chan struct{})}
	close(s.idle)
	return s
}

// free is how many slots nobody has.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capacity - s.used
}

// take takes up to n slots without waiting and returns how many it got.
func (s *slots) take(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.capacity-s.used)
	if n > 0 && s.used == 0 {
		s.idle = make(chan struct{})
	}
	s.used += n
	return n
}

// put gives n slots back.
func (s *slots) put(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.used -= n
	if s.used == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// wait returns nil once all slots are free, or the cause of ctx.
func (s *slots) wait(ctx context.Context) error {
	s.mu.Lock()
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
