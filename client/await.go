package client

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// await waits for the end of an execution and returns the result as stored; stored is false when there is none.
func (c *Client) await(ctx context.Context, id flowfabric.ExecutionID) (raw []byte, stored bool, err error) {
	if err := c.admit("wait for", id); err != nil {
		return nil, false, err
	}
	raw, stored, done, floor, err := c.outcome(ctx, id)
	if done {
		return raw, stored, err
	}
	bell, leave, closed := c.waits.join(id)
	if closed != nil {
		return nil, false, fmt.Errorf("wait for %s: %w", id, closed)
	}
	defer leave()
	safety := time.NewTimer(link.Jitter(link.Recheck))
	defer safety.Stop()
	for {
		var ring signal
		select {
		case ring = <-bell:
		case <-safety.C:
		case <-ctx.Done():
			return nil, false, waitError(id, link.Ended(ctx), err)
		case <-c.waits.life.Done():
			return nil, false, waitError(id, ErrClosed, err)
		}
		safety.Reset(link.Jitter(link.Recheck))
		if ring.completed && ring.attempt >= floor { // the event says all a snapshot would
			raw, stored, done, err = c.result(ctx, id, ring.attempt)
		} else {
			raw, stored, done, floor, err = c.outcome(ctx, id)
		}
		if done {
			return raw, stored, err
		}
	}
}

// waitError ends a wait; last is what the server answered to the last read, if that failed.
func waitError(id flowfabric.ExecutionID, why, last error) error {
	if last != nil {
		return fmt.Errorf("wait for %s: %w (last read: %w)", id, why, last)
	}
	return fmt.Errorf("wait for %s: %w", id, why)
}

// outcome reads the execution once. done is false while it has not ended and after an error that may pass. floor is
// then the first attempt whose end would be news: the event of an end before a replay may come late.
func (c *Client) outcome(ctx context.Context,
	id flowfabric.ExecutionID) (raw []byte, stored, done bool, floor uint32, err error) {
	s, err := c.store.ReadExecution(ctx, id)
	switch {
	case err != nil:
		return nil, false, link.Final(ctx, err), math.MaxUint32, link.Operated("wait for", id, err)
	case !s.State.Terminal():
		return nil, false, false, nextEnd(s), nil
	case s.State.Public != flowfabric.Completed:
		return nil, false, true, 0, newOutcomeError(s)
	}
	raw, stored, done, err = c.result(ctx, id, s.Attempts)
	return raw, stored, done, math.MaxUint32, err
}

// nextEnd is the first attempt that can still end.
func nextEnd(s engine.Snapshot) uint32 {
	switch s.Code {
	case codes.WaitingFirst, codes.DelayedFirst, codes.WaitingRetry, codes.RetryBackoff,
		codes.WaitingReplay, codes.WaitingReclaim, codes.ReclaimBackoff, codes.BlockedFirst, codes.BlockedReplay,
		codes.GrantedFirst, codes.GrantedRetry, codes.GrantedReplay, codes.GrantedReclaim,
		codes.HeldFirst, codes.HeldRetry, codes.HeldReplay, codes.HeldReclaim:
		return s.Attempts + 1 // the next claim opens a new one
	}
	return s.Attempts
}

// result reads what an attempt stored. Nothing is either an empty result or one that was purged meanwhile.
func (c *Client) result(ctx context.Context, id flowfabric.ExecutionID,
	attempt uint32) (raw []byte, stored, done bool, err error) {
	raw, stored, err = c.store.ReadResult(ctx, id, attempt)
	if err == nil && !stored {
		_, err = c.store.ReadExecution(ctx, id)
	}
	if err != nil {
		return nil, false, link.Final(ctx, err), link.Operated("wait for", id, err)
	}
	return raw, stored, true, nil
}

// subscriber is the part of the engine that the hub needs; all its subscriptions share one connection.
type subscriber interface {
	Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
		fn func(channel, message string)) error
}

// signal wakes a waiter. The zero value means: read again.
type signal struct {
	completed bool
	attempt   uint32 // that stored the result, if completed
}

// hub shares the event subscriptions of all waits in one process: one subscription and one goroutine per
// execution that somebody waits for, however many wait.
type hub struct {
	store  subscriber
	life   context.Context // ends when the client closes
	mu     sync.Mutex
	closed bool
	topics map[flowfabric.ExecutionID]*topic
	owner  conc.WaitGroup
}

// topic is one execution that is waited for. hub.mu guards it.
type topic struct {
	cancel context.CancelFunc
	ready  bool // subscribed: later events will arrive
	bells  map[chan signal]struct{}
}

func newHub(life context.Context, store subscriber) *hub {
	return &hub{store: store, life: life, topics: map[flowfabric.ExecutionID]*topic{}}
}

// join registers a waiter. Its bell rings as soon as the subscription stands (whatever happened before must be
// read) and with every event that ends or suspends the execution.
func (h *hub) join(id flowfabric.ExecutionID) (bell <-chan signal, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrClosed
	}
	t := h.topics[id]
	if t == nil {
		ctx, cancel := context.WithCancel(h.life)
		t = &topic{cancel: cancel, bells: map[chan signal]struct{}{}}
		h.topics[id] = t
		h.owner.Go(func() { h.follow(ctx, id, t) })
	}
	own := make(chan signal, 1)
	t.bells[own] = struct{}{}
	if t.ready {
		own <- signal{}
	}
	return own, func() { h.leave(id, t, own) }, nil
}

func (h *hub) leave(id flowfabric.ExecutionID, t *topic, own chan signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(t.bells, own); len(t.bells) == 0 {
		t.cancel()
		delete(h.topics, id)
	}
}

// follow keeps the subscription of one execution until its last waiter has left.
func (h *hub) follow(ctx context.Context, id flowfabric.ExecutionID, t *topic) {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(link.Recheck), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		_ = h.store.Subscribe(ctx, id.Partition(), []string{engine.EventChannel(id)},
			func() { h.ring(t, signal{}) },
			func(_, message string) {
				if s, awaited := parseEvent(message); awaited {
					h.ring(t, s)
				}
			})
		h.mu.Lock()
		if t.ready {
			pauses.Reset()
		}
		t.ready = false
		h.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// ring wakes every waiter of the topic without blocking; a bell that still rings will lead to a read anyway. Being
// rung at all means that the subscription stands.
func (h *hub) ring(t *topic, s signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.ready = true
	for bell := range t.bells {
		select {
		case bell <- s:
		default:
		}
	}
}

// close waits for the subscriptions to end; life must have been cancelled.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.owner.Wait()
}

// parseEvent reads "<code> <attempt>". awaited is false for an event that nobody waits for: a retry, a requeue.
func parseEvent(message string) (s signal, awaited bool) {
	code, attempt, _ := strings.Cut(message, " ")
	state, known := codes.Project(codes.Code(code))
	if known && !state.Terminal() && state.Public != flowfabric.Suspended {
		return signal{}, false
	}
	if n, err := strconv.ParseUint(attempt, 10, 32); err == nil && state.Public == flowfabric.Completed {
		return signal{completed: true, attempt: uint32(n)}, true
	}
	return signal{}, true
}
