package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

// registrar is the part of the engine that knows which worker instances there are.
type registrar interface {
	RegisterWorker(ctx context.Context, q engine.Registration) (engine.Registered, error)
	LeaveWorker(ctx context.Context, instance, token string) (already bool, err error)
	PutSchemas(ctx context.Context, namespace string, all map[string]kindschema.Pair) error
}

const (
	// registerTimeout bounds one call about the registration.
	registerTimeout = 5 * time.Second
	// lookAgain is the longest pause between two looks at a name that is taken, or after a call that failed.
	lookAgain = 5 * time.Second
)

// membership tells the server that this worker is there. It protects nobody's work, leases do that: it keeps two
// processes from answering to one name, whose rings and listings they would share, and it is what admin.Workers shows.
// So only a name that is visibly somebody else's keeps a worker from starting; any other trouble is logged.
type membership struct {
	store   registrar
	watch   *watch // counts the handlers at work
	seeds   *tokenkeys.Seeds
	log     *slog.Logger
	ctx     context.Context  // of the calls
	ttl     time.Duration    // of the registration
	waiting chan struct{}    // closed when it has to wait for a predecessor
	fatal   func(error) bool // ends the worker if no retry can help, and tells so

	name  string // of the instance
	token string // of this process
	info  flowfabric.WorkerInfo
	kinds map[string]kindschema.Pair // what they take and give
	ended context.CancelFunc
	loop  conc.WaitGroup
	news  chan struct{} // capacity 1: what it says of itself has changed

	mu      sync.Mutex
	entered bool // the name was ours when a call was last answered
	failed  bool // the last call found trouble, which was logged
	taken   bool // and that was another process
}

func newMembership(r *run, w *Worker, seeds *tokenkeys.Seeds) *membership {
	cfg, info := r.cfg, r.cfg.info()
	info.Namespaces, info.Kinds = append([]string{cfg.Namespace}, cfg.Namespaces...), w.registry.kinds()
	info.PID, info.StartedAt = os.Getpid(), time.Now()
	info.Host, _ = os.Hostname() // unknown is shown as nothing
	return &membership{store: r.store, seeds: seeds, log: r.log, ctx: r.ctx, ttl: cfg.LeaseTTL, waiting: w.waiting,
		fatal: r.fatal,
		name:  cfg.Instance, token: rand.Text(), ended: func() {}, news: make(chan struct{}, 1),
		info: info, kinds: w.registry.schemas()}
}

// enter takes the name, before there is any work. One that is taken may be that of a predecessor that crashed (the
// pods of a StatefulSet keep their names): then its registration runs out, which is waited for. If it is renewed
// instead, the other process lives, and this one must not start.
func (g *membership) enter(ctx context.Context) error {
	var first, patience time.Time
	for ctx.Err() == nil {
		err := g.register(ctx)
		until, left := engine.TakenFor(err)
		switch {
		case err == nil:
			g.publish(ctx)
			return nil
		case errors.Is(err, denied.InstanceInUse):
			if first.IsZero() {
				first = until
				g.log.Warn(
					"flowfabric: another process is registered under this instance name; the worker waits until that registration expires",
					"instance", g.name, "remaining", left.Round(time.Millisecond).String())
				close(g.waiting)
			}
			if until.After(first) {
				return fmt.Errorf(
					"instance %q belongs to a process that lives (it renewed its registration): give every process its own Config.Instance, or leave it empty for a generated one: %w",
					g.name, err)
			}
			patience = time.Now().Add(left)
		case first.IsZero() || time.Now().After(patience):
			g.report(ctx, err)
			return nil
		default: // the server is away while a predecessor is waited for
			left = lookAgain
		}
		sleep(ctx, min(left+time.Millisecond, lookAgain, g.ttl/6))
	}
	return nil
}

// start renews the registration until leave.
func (g *membership) start() {
	ctx, cancel := context.WithCancel(g.ctx)
	g.ended = cancel
	g.loop.Go(func() {
		for {
			pause := g.ttl / 3
			if g.troubled() {
				pause = min(pause, lookAgain)
			}
			if g.rest(ctx, pause); ctx.Err() != nil {
				return
			}
			err := g.register(ctx)
			if g.fatal(err) {
				return
			}
			g.report(ctx, err)
		}
	})
}

// rest waits until it is time to renew the registration, or there is news.
func (g *membership) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-g.news:
	}
}

// poke has the registration renewed soon. It never blocks.
func (g *membership) poke() {
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// leave frees the name, by a deadline.
func (g *membership) leave(by time.Time) {
	g.ended()
	g.loop.Wait()
	ctx, cancel := context.WithDeadline(g.ctx, by)
	defer cancel()
	if _, err := g.store.LeaveWorker(ctx, g.name, g.token); err != nil {
		g.log.Warn("flowfabric: the worker could not end its registration; it expires", "within", g.ttl.String(),
			"error", err)
	}
}

// register makes one call.
func (g *membership) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	working, stuck := g.watch.counts()
	r, err := g.store.RegisterWorker(ctx, engine.Registration{
		Instance: g.name, Token: g.token, TTL: g.ttl, InFlight: working, Stuck: stuck, Info: g.info,
	})
	g.mu.Lock()
	anew := err == nil && g.entered && !r.Renewed
	g.mu.Unlock()
	if anew { // perhaps the store was flushed: then nobody's token keys are known there
		if err := g.seeds.Declare(ctx); err != nil {
			g.log.Warn(
				"flowfabric: the worker could not declare its token keys again; the next handler that waits tries again",
				"error", err)
		}
		g.publish(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && (g.failed || g.entered && !r.Renewed) {
		g.log.Info("flowfabric: worker is registered again", "instance", g.name)
	}
	if err == nil {
		g.entered, g.failed, g.taken = true, false, false
	}
	return err
}

// publish says what the kinds of this worker take and give. Inputs are not checked without it, and nothing else depends
// on it.
func (g *membership) publish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	for _, namespace := range g.info.Namespaces {
		if err := g.store.PutSchemas(ctx, namespace, g.kinds); err != nil && ctx.Err() == nil {
			g.log.Warn(
				"flowfabric: the worker could not publish the schemas of its kinds, so no input is checked by them",
				"namespace", namespace, "error", err)
		}
	}
}

// report logs the first of a row of failures. The worker goes on.
func (g *membership) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch taken := errors.Is(err, denied.InstanceInUse); {
	case taken && !g.taken:
		g.taken, g.entered = true, false
		g.log.Error(
			"flowfabric: another process took this worker's instance name while this worker was disconnected; both keep working, since leases are fenced, but they share the wakes sent to the name: give every process its own Config.Instance",
			"instance", g.name, "error", err)
	case !taken && !g.failed:
		g.log.Warn("flowfabric: the worker could not register; it keeps working and tries again", "instance",
			g.name, "error", err)
	}
	g.failed = true
}

func (g *membership) troubled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
