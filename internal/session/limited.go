package session

import (
	"context"
	"sync"
	"time"
)

// limited is a context with a deadline, whose timer is made for who waits for its end. A call that has its connection
// to itself does not: the connection is told the deadline. So most claims need no timer, nor what belongs to one.
type limited struct {
	parent context.Context
	at     time.Time

	mu    sync.Mutex
	timed context.Context // nil while nobody has waited
	end   context.CancelFunc
	over  bool
}

// limit is context.WithTimeout; call cancel when the context is not needed any more.
func limit(parent context.Context, d time.Duration) *limited {
	at := time.Now().Add(d)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	return &limited{parent: parent, at: at}
}

func (l *limited) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.end != nil {
		l.end()
	}
}

// Deadline implements [context.Context].
func (l *limited) Deadline() (time.Time, bool) { return l.at, true }

// Done implements [context.Context].
func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed == nil {
		l.timed, l.end = context.WithDeadline(l.parent, l.at)
		if l.over {
			l.end()
		}
	}
	return l.timed.Done()
}

// Err implements [context.Context].
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timed != nil:
		return l.timed.Err()
	case l.parent.Err() != nil:
		return l.parent.Err()
	case l.over:
		return context.Canceled
	case !time.Now().Before(l.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements [context.Context]. It finds the context that has the timer, too: contexts that derive from this one
// are ended by that, without a goroutine for each.
func (l *limited) Value(key any) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed != nil {
		return l.timed.Value(key)
	}
	return l.parent.Value(key)
}
