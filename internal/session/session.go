// Package session is what a worker process claims with and keeps what it claimed: a source of work (package source)
// whose leases are renewed (package keeper). Package runtime runs handlers on it, package lease the loops of
// applications.
//
//	Source.Take ─▶ Round, under the partition's session ─▶ held: renewed, watched ─▶ Persist a call ─▶ Release
//	                 └─ again: Declare, then claim once more                      └─ or HandBack
package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

const (
	// claimTimeout bounds one claim: it keeps slots reserved while it waits. What it cuts off is repeated.
	claimTimeout = 3 * time.Second
	// returnTimeout bounds the hand-back of what nobody runs.
	returnTimeout = 5 * time.Second
)

// Engine is what a session asks of the server.
type Engine interface {
	keeper.Engine
	admit.Engine
	source.Engine
	source.Store
}

// Config says for whom a session is. Engine, Instance, Offer, Room and OnHot are required.
type Config struct {
	Engine   Engine
	Instance string // who is rung, and whose sessions these are
	Offer    offer.Offer
	Room     source.Room
	OnHot    func() // see source.Config
	Logger   *slog.Logger
	// Context is that of claims and hand-backs, from which those of holds derive; it should outlive the wish to stop.
	Context context.Context

	// Keeper, Admit and Listener have what concerns these parts alone; New fills in the rest.
	Keeper   keeper.Config
	Admit    admit.Config
	Listener source.ListenerConfig
	// OnClaim is told of every claim: what it brought, and whether it asked for work, not only for the routes.
	// Optional.
	OnClaim func(brought int, forWork bool, took time.Duration, err error)
}

// Session claims work for one process, and keeps what it claimed. Run [keeper.Keeper.Run] and the listener's loops for
// as long as it is used.
type Session struct {
	cfg      Config
	Source   *source.Source
	Listener *source.Listener
	Keeper   *keeper.Keeper
	returns  conc.WaitGroup
}

// New makes a session; it makes no call.
func New(cfg Config) *Session {
	if cfg.OnClaim == nil {
		cfg.OnClaim = func(int, bool, time.Duration, error) {}
	}
	cfg.Admit.Engine, cfg.Admit.Logger = cfg.Engine, cfg.Logger
	cfg.Keeper.Engine, cfg.Keeper.Claim = cfg.Engine, admit.New(cfg.Admit).ClaimNext
	cfg.Keeper.Instance, cfg.Keeper.Logger, cfg.Keeper.Context = cfg.Instance, cfg.Logger, cfg.Context
	s := &Session{cfg: cfg, Keeper: keeper.New(cfg.Keeper), Source: source.New(source.Config{
		Partitions: cfg.Engine.Partitions(), Offer: cfg.Offer, Store: cfg.Engine, Room: cfg.Room, Logger: cfg.Logger,
		OnHot: cfg.OnHot})}
	l := cfg.Listener
	l.Engine, l.Name, l.Logger = cfg.Engine, cfg.Instance, cfg.Logger
	sources := []*source.Source{s.Source}
	l.Sources = func() []*source.Source { return sources }
	l.OnLost = s.Keeper.RenewNow
	connected := l.OnConnect
	l.OnConnect = func(partition uint16) {
		s.Keeper.Reconnected(partition)
		if connected != nil {
			connected(partition)
		}
	}
	s.Listener = source.NewListener(l)
	s.Listener.Add(s.Source)
	return s
}

// roundClaims bounds the claims of one round: table, subscription, claim, and again if the table moves meanwhile.
const roundClaims = 6

// Round makes a claim round of a partition that was taken: it claims up to n executions, and stores the subscription
// where routes are new. start is told of what each claim brought, and returns how many more are wanted.
func (s *Session) Round(p *source.Partition, n int, start func(held []*keeper.Held,
	took time.Duration) (more int)) error {
	for range roundClaims {
		began := time.Now()
		held, again, err := s.claim(p, max(n, 1))
		n = start(held, time.Since(began))
		if err == nil && again {
			err = s.Source.Declare(s.cfg.Context, p)
		}
		if err != nil || !again || n == 0 {
			return err
		}
	}
	return nil
}

// claim makes one claim. again asks for another one, after [source.Source.Declare].
func (s *Session) claim(p *source.Partition, n int) (held []*keeper.Held, again bool, err error) {
	ctx := limit(s.cfg.Context, claimTimeout)
	defer ctx.cancel()
	began, forWork := time.Now(), p.Subscribed()
	reply, err := s.Keeper.Claim(ctx, p.Request(n, p.Waits()))
	s.cfg.OnClaim(len(reply.Held), forWork, time.Since(began), err)
	again, err = s.Source.Answered(p, n, reply.ClaimReply, brought(reply), err)
	return reply.Held, again, err
}

// ClaimWith is a claim by a call that does something else as well, of a partition that was joined; registered is what
// Join told. made is false if nothing was sent. The error is that of the claim alone, which a claim round meets again.
func (s *Session) ClaimWith(p *source.Partition, n int, registered bool,
	call func(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error)) (
	held []*keeper.Held, made bool, err error) {
	ctx := limit(s.cfg.Context, claimTimeout)
	defer ctx.cancel()
	began := time.Now()
	reply, made, err := s.Keeper.ClaimWith(ctx, p.Request(n, !registered), call)
	if !made {
		s.Source.NotMade(p)
		return nil, false, nil
	}
	s.cfg.OnClaim(len(reply.Held), true, time.Since(began), err)
	s.Source.Joined(p, registered, reply.ClaimReply, brought(reply), err)
	return reply.Held, true, err
}

// brought is what a claim brought.
func brought(reply keeper.Reply) []*engine.Claim {
	claims := make([]*engine.Claim, len(reply.Held))
	for i, held := range reply.Held {
		claims[i] = held.Claim()
	}
	return claims
}

// HandBack returns an execution that nobody has run, without blocking. It keeps its attempt.
func (s *Session) HandBack(held *keeper.Held) {
	s.returns.Go(func() {
		ctx, cancel := context.WithTimeout(s.cfg.Context, returnTimeout)
		defer cancel()
		err := held.Persist(ctx, func(ctx context.Context) error {
			_, err := s.cfg.Engine.ReleaseExecution(ctx, held.Fence())
			return err
		})
		switch {
		case err == nil:
			held.Release()
		case held.Check() != nil || keeper.NotOurs(err):
			held.Release() // no longer ours: nothing to hand back
		default:
			s.cfg.Logger.Warn("flowfabric: the execution was not released; it is requeued when its lease expires",
				"execution", held.Fence().Execution.String(), "error", err)
			held.Abandon()
		}
	})
}

// Close resolves claims without an answer, hands back what they had brought, and closes the sessions. The keeper and
// the connection are still needed until it returns. The error names what was left to expire.
func (s *Session) Close(ctx context.Context) error {
	orphans, err := s.Keeper.Unresolved(ctx)
	for _, held := range orphans {
		s.HandBack(held)
	}
	s.returns.Wait() // each is bounded by returnTimeout, and by the end of the session's context
	return errors.Join(err, s.Keeper.Close(ctx))
}

// Fatal reports an error that no retry of a claim, a poll or a renewal can help.
func Fatal(err error) bool {
	_, recounted := errors.AsType[*engine.CountsError](err)
	return recounted || errors.Is(err, denied.Protocol) || errors.Is(err, flowfabric.ErrAuth)
}
