package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

const (
	// MaxWorker is how long the name of a worker may be: a session has 64 bytes.
	MaxWorker = 64 - 1 - nameLength - 1 - suffixLength
	// MaxClaim is how many executions a claim may ask for.
	MaxClaim = 100

	nameLength   = 12
	suffixLength = 12

	// of one claim, which is the gateway's: it must be answered even if the worker has gone
	callTimeout = 3 * time.Second
	lastTimeout = 5 * time.Second // to give back what nobody takes
	pollEvery   = 5 * time.Second // while somebody waits
	tidyEvery   = time.Minute
	forgotten   = 4 * time.Minute // an offer that nobody makes any more is forgotten
	patience    = 2 * time.Second // to wait for the first subscription, without which a registration is in vain
)

// Engine is what a gateway needs of the server; *engine.Engine is one.
type Engine interface {
	admit.Engine
	source.Engine
	source.Store
	RenewSession(ctx context.Context, partition uint16, session string, ttl time.Duration,
		processed uint64) (engine.Renewal, error)
	SessionHeld(ctx context.Context, partition uint16, session string) ([]engine.Held, error)
	ReleaseExecution(ctx context.Context, f flowfabric.Fence) (already bool, err error)
}

// Gateway takes work for workers. Make it with [New], end it with [Gateway.Close]. Safe for concurrent use.
type Gateway struct {
	engine   Engine
	log      *slog.Logger
	name     string          // who is rung
	life     context.Context // ends with Close
	end      context.CancelFunc
	begin    sync.Once
	listener *source.Listener
	tasks    conc.WaitGroup

	mu     sync.Mutex
	pools  map[string]*pool // by what they offer
	watch  map[*Watch]bool
	closed bool
}

// New builds a gateway; it makes no call and starts nothing before the first claim.
func New(e Engine, log *slog.Logger) *Gateway { return polling(e, log, pollEvery, nil) }

func polling(e Engine, log *slog.Logger, every time.Duration, onWake func(what string, n int)) *Gateway {
	life, end := context.WithCancel(context.Background())
	g := &Gateway{engine: e, log: log, name: "gw" + randomHex()[:nameLength-2], life: life, end: end,
		pools: map[string]*pool{}, watch: map[*Watch]bool{}}
	g.listener = source.NewListener(source.ListenerConfig{Engine: e, Name: g.name, Sources: g.sources, Logger: log,
		PollEvery: every, OnWake: onWake, OnLost: g.tell, OnConnect: g.tell})
	return g
}

// start listens to what tells of work. Gateway.mu is held.
func (g *Gateway) start() {
	g.tasks.Go(func() { g.listener.Listen(g.life) })
	g.tasks.Go(func() { g.listener.Poll(g.life) })
	g.tasks.Go(func() { g.listener.Forward(g.life) })
	g.tasks.Go(g.tidy)
}

func (g *Gateway) sources() []*source.Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*source.Source, 0, len(g.pools))
	for _, p := range g.pools {
		all = append(all, p.source)
	}
	return all
}

// tidy forgets offers that nobody makes any more.
func (g *Gateway) tidy() {
	ticks := time.NewTicker(tidyEvery)
	defer ticks.Stop()
	for {
		select {
		case <-g.life.Done():
			return
		case now := <-ticks.C:
			g.mu.Lock()
			for key, p := range g.pools {
				if len(p.asks) == 0 && now.Sub(p.used) > forgotten {
					delete(g.pools, key)
				}
			}
			g.mu.Unlock()
		}
	}
}

func randomHex() string { return strings.ReplaceAll(uuid.NewString(), "-", "")[20:] }

// Close ends what the gateway does in the background, and the claims that wait. It returns when all of it has ended.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.tasks.Wait()
}

// Request asks for work.
type Request struct {
	Worker  string      // 1..MaxWorker bytes, without "~" and spaces: whose sessions these are
	Version string      // of its application; "" is none
	Offer   offer.Offer // what it can serve
	Max     int         // 0..MaxClaim; with 0 it waits for Watch alone
	Wait    time.Duration
	Watch   *Watch        // ends the wait when it is told of something; nil: nothing does
	TTL     time.Duration // of the leases
}

// Claim is an execution that was claimed, with what the handler needs, and its route. Its session is its own.
type Claim struct {
	engine.Claim
	Route engine.Route
}

// Claim asks for work until there is some, at most as long as Wait. It may bring fewer than Max, and none when the
// time is over, or when Watch is told of something. When ctx ends what was claimed goes back, and the error is that of
// ctx. Errors of class retry may be met by another try; flowfabric.ErrDraining after Close.
func (g *Gateway) Claim(ctx context.Context, q Request) ([]Claim, error) {
	if q.Max == 0 {
		return nil, g.idle(ctx, q)
	}
	p, a, err := g.enter(q.Offer)
	if err != nil {
		return nil, err
	}
	defer g.leave(p, a)
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	late := time.NewTimer(min(patience, q.Wait))
	defer late.Stop()
	select {
	case <-g.listener.Heard():
	case <-late.C:
	case <-ctx.Done():
	}
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		got, pause, err := p.look(ctx, q)
		switch {
		case ctx.Err() != nil:
			g.Return(got)
			return nil, context.Cause(ctx)
		case len(got) > 0 || err != nil:
			return got, err
		}
		again.Reset(pause)
		select {
		case <-a.woken:
		case <-again.C:
		case <-q.Watch.told():
			return nil, nil
		case <-timer.C:
			return nil, nil
		case <-g.life.Done():
			return nil, flowfabric.ErrDraining
		case <-ctx.Done():
		}
	}
}

// Return gives back what the worker will never hear of. What cannot be given back comes back when its lease ends.
func (g *Gateway) Return(claims []Claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.life), lastTimeout)
	defer cancel()
	var each conc.WaitGroup
	for _, c := range claims {
		each.Go(func() {
			if _, err := g.engine.ReleaseExecution(ctx, c.Fence); err != nil {
				g.log.Warn(
					"flowfabric: gateway: an execution claimed for a worker that left could not be released; it is requeued when its lease ends",
					"execution", c.Fence.Execution.String(), "error", err)
			}
		})
	}
	each.Wait()
}

// Renew extends the lease of an execution by ttl. stop is the request of the newest stop that its run was told of under
// this lease, "" for none: it comes again with every renewal. The error says why it is not this worker's any more, as
// denied.LeaseExpired, ErrCancelled, ErrDeadline, ErrAttemptTimeout, denied.LeaseRevoked or ErrLeaseLost; one of
// class retry says nothing about the lease.
func (g *Gateway) Renew(ctx context.Context, f flowfabric.Fence, ttl time.Duration) (stop string, err error) {
	partition := f.Execution.Partition()
	for range 2 { // it may be lost between the two calls: then the first one knows why when it is asked again
		if stop, err = g.notices(ctx, f, ttl); err != nil {
			return "", err
		}
		held, err := g.engine.SessionHeld(ctx, partition, f.Session)
		if err != nil {
			return "", err
		}
		if slices.Contains(held, engine.Held{Execution: f.Execution, Claim: f.Claim}) {
			return stop, nil
		}
	}
	return "", flowfabric.ErrLeaseLost // settled, most likely
}

// notices renews, and reads what the session is told of its execution. Notices stay, for a repeat of the call, unless
// there are more than one answer has.
func (g *Gateway) notices(ctx context.Context, f flowfabric.Fence, ttl time.Duration) (stop string, err error) {
	processed := uint64(0)
	for {
		r, err := g.engine.RenewSession(ctx, f.Execution.Partition(), f.Session, ttl, processed)
		if err != nil {
			return "", err
		}
		for _, n := range r.Lost {
			switch request, stops := strings.CutPrefix(n.Cause, "stop:"); {
			case n.Execution != f.Execution || n.Epoch != f.Epoch:
			case !n.Told():
				return "", n.Err()
			case stops:
				stop = request
			}
		}
		if !r.MoreLost || r.Generation <= processed {
			return stop, nil
		}
		processed = r.Generation
	}
}

// ask is a claim that waits. woken has room for one.
type ask struct{ woken chan struct{} }

func (a *ask) wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// enter finds the pool of an offer, and takes a place in it.
func (g *Gateway) enter(o offer.Offer) (*pool, *ask, error) {
	a := &ask{woken: make(chan struct{}, 1)}
	p, fresh, err := g.join(o, a)
	if fresh {
		p.source.RingAll() // all of it may have work
	}
	return p, a, err
}

func (g *Gateway) join(o offer.Offer, a *ask) (p *pool, fresh bool, err error) {
	key := keyOf(o)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, flowfabric.ErrDraining
	}
	g.begin.Do(g.start)
	p, known := g.pools[key]
	if !known {
		p = newPool(g, o)
		g.pools[key] = p
	}
	p.asks = append(p.asks, a)
	p.waiting.Add(1)
	return p, !known, nil
}

// leave gives the place up. What is left to look at is the next one's, and rings that came for it are another
// process's if there is none.
func (g *Gateway) leave(p *pool, a *ask) {
	hot := p.source.Hot(time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	p.asks = slices.DeleteFunc(p.asks, func(x *ask) bool { return x == a })
	p.used = time.Now()
	p.waiting.Add(-1)
	if hot {
		p.wakeFirst()
	}
	g.listener.Recheck()
}

func keyOf(o offer.Offer) string {
	var b strings.Builder
	for _, set := range []map[string]bool{o.Namespaces, o.Lanes, o.Kinds, o.Capabilities} {
		names := make([]string, 0, len(set))
		for name := range set {
			names = append(names, name)
		}
		slices.Sort(names)
		b.WriteString(strings.Join(names, "\x1f") + "\x1e")
	}
	for _, lane := range slices.Sorted(maps.Keys(o.Weights)) {
		b.WriteString(lane + "\x1f" + strconv.Itoa(o.Weights[lane]) + "\x1f")
	}
	return b.String()
}

// unknownOutcome reports that the server may or may not have acted.
func unknownOutcome(err error) bool {
	switch denied.ClassOf(err) {
	case 0, fault.Bug: // a context's error, or an answer that could not be read
		return true
	}
	return errors.Is(err, flowfabric.ErrTransport)
}
