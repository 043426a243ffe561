package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

var errEmpty = errors.New("it is empty")

// listenPatience is how long Open waits until doorbells are heard; without them polls find work.
const listenPatience = 2 * time.Second

// Session claims work and renews the leases of what it claimed. Make it with [Open], end it with [Session.Close].
// Safe for concurrent use.
type Session struct {
	engine  *engine.Engine
	session *session.Session
	release func()
	turn    chan struct{} // capacity 1: a claim waits
	hot     chan struct{} // capacity 1: there may be work
	waiting atomic.Bool
	life    context.Context // ends with Close
	end     context.CancelCauseFunc
	calls   context.Context // of leases and calls; ends last
	stop    context.CancelCauseFunc
	tasks   conc.WaitGroup // end with life
	keeping conc.WaitGroup // end with calls
	closing sync.Once
	closed  error
}

// Open connects and begins to listen for work; nothing is claimed before [Session.Claim]. ctx bounds Open alone.
// Errors wrap flowfabric.ErrConfig (the field is named), ErrTransport, ErrAuth or ErrProtocol.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	e, release, err := cfg.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("open lease session: %w", err)
	}
	s := &Session{engine: e, release: release, turn: make(chan struct{}, 1), hot: make(chan struct{}, 1)}
	s.calls, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	s.life, s.end = context.WithCancelCause(s.calls)
	own := session.Config{Engine: e, Instance: cfg.Instance, Offer: cfg.offer(), Room: room{s}, OnHot: s.wake,
		Logger: cfg.Logger, Context: s.calls, Keeper: keeper.Config{TTL: cfg.TTL}}
	if !cfg.DisableMaintenance {
		ticks := maintain.New(maintain.Config{Engine: e, Owner: cfg.Instance, Logger: cfg.Logger})
		own.Listener = source.ListenerConfig{PollIdle: true, Alert: true, OnConnect: ticks.Ask, OnTimers: ticks.Ring,
			OnOverdue: ticks.Ring}
		own.Keeper.OnTickOverdue = ticks.Ring
		defer s.tasks.Go(func() { _ = ticks.Run(s.life) }) // its configuration is valid
	}
	s.session = session.New(own)
	listener := s.session.Listener
	s.keeping.Go(func() { _ = s.session.Keeper.Run(s.calls) })
	s.tasks.Go(func() { listener.Listen(s.life) })
	s.tasks.Go(func() { listener.Poll(s.life) })
	s.tasks.Go(func() { listener.Forward(s.life) })
	select {
	case <-listener.Heard():
	case <-time.After(listenPatience):
		s.session.Source.RingAll()
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("open lease session: %w", context.Cause(ctx)),
			s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Session) wake() {
	select {
	case s.hot <- struct{}{}:
	default:
	}
}

// Claim waits until there is work and returns up to n executions, 1..100, of which each is this process's until it is
// settled or its context ends. One call waits at a time; others wait for their turn. Claim only what can run now: a
// lease that waits keeps work from others. When ctx ends, or Close is called, what was claimed meanwhile goes back.
//
// Errors: flowfabric.ErrInvalidInput for n out of bounds; the cause of ctx; flowfabric.ErrDraining after Close; and
// ErrProtocol, ErrAuth or ErrConfig if no retry can help. A server that does not answer is asked again.
func (s *Session) Claim(ctx context.Context, n int) ([]*Held, error) {
	if n < 1 || n > maxClaim {
		return nil, fmt.Errorf("%w: claim %d executions, want 1..%d", flowfabric.ErrInvalidInput, n, maxClaim)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.life.Done():
		return nil, flowfabric.ErrDraining
	}
	s.waiting.Store(true)
	defer func() {
		s.waiting.Store(false)
		s.session.Listener.Recheck() // a ring that came too late is another process's
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for s.life.Err() == nil && ctx.Err() == nil {
		held, pause, err := s.look(ctx, n)
		switch {
		case ctx.Err() != nil, s.life.Err() != nil: // the caller looks at the error alone
			for _, h := range held {
				s.session.HandBack(h.held)
			}
			continue
		case len(held) > 0:
			return held, nil
		case session.Fatal(err):
			return nil, fmt.Errorf("claim work: %w", err)
		}
		timer.Reset(pause)
		select {
		case <-s.hot:
		case <-timer.C:
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
	if s.life.Err() != nil {
		return nil, flowfabric.ErrDraining
	}
	return nil, context.Cause(ctx)
}

func (s *Session) look(ctx context.Context, n int) (held []*Held, pause time.Duration, err error) {
	_, pause, err = s.session.Source.Look(ctx, n, func(p *source.Partition, n int) (got int, err error) {
		err = s.session.Round(p, n, func(claims []*keeper.Held, _ time.Duration) (more int) {
			for _, c := range claims {
				// a claim whose answer was lost may bring more when it is made again
				if route, foreign := s.session.Source.Foreign(p, c.Claim()); foreign || got >= n {
					s.session.HandBack(c)
				} else {
					held = append(held, newHeld(s, c, route))
					got++
				}
			}
			return max(0, n-got)
		})
		return got, err
	})
	return held, pause, err
}

// room tells the source of a session whether a claim waits.
type room struct{ *Session }

// Free implements [source.Room].
func (r room) Free() bool { return r.waiting.Load() }

// Coming implements [source.Room].
func (r room) Coming() bool { return false }

// Close ends waiting claims and closes the session on the server. Settle or release what is held before: what is left
// is requeued when its lease runs out, and its contexts end with flowfabric.ErrDraining. ctx bounds the calls. The
// error names what was left to run out; a second Close returns the same. Later calls of the session return flowfabric.ErrDraining.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.close(ctx) })
	return s.closed
}

func (s *Session) close(ctx context.Context) error {
	s.session.Listener.Leave()
	s.end(flowfabric.ErrDraining)
	s.tasks.Wait()
	select {
	case s.turn <- struct{}{}: // the last claim has ended, and stays the last
	case <-ctx.Done():
	}
	err := s.session.Close(ctx)
	s.stop(flowfabric.ErrDraining)
	s.keeping.Wait()
	s.release()
	if err != nil {
		return fmt.Errorf("close lease session: %w", err)
	}
	return nil
}
