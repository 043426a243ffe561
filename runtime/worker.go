package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Worker takes work from a server and runs handlers. Create it with [New] and call [Worker.Run] once.
// Ready may be called at any time from any goroutine.
type Worker struct {
	cfg      Config
	registry handlers
	metrics  *metrics
	tracer   *tracing.Tracer
	slots    Slots
	health   *health
	log      *slog.Logger
	started  atomic.Bool
	serving  chan struct{}      // closed once work can arrive
	waiting  chan struct{}      // closed when it has to wait for a predecessor of its name
	keyring  *tokenkeys.Keyring // nil: handlers wait without waitpoints only
	target   func() Config      // with the secrets that cfg lacks
	open     func(context.Context, Config) (store, func(), error)
	pace     pace // of its slots at the start
}

// New checks the configuration and the bindings (see [handler.Bind]) and builds a worker. Nothing is dialled.
// Unlike the function [Run], [Worker.Run] handles no signals: give it a context of signal.NotifyContext for SIGINT
// and SIGTERM, as the example does, or the process ends without a drain. Errors wrap [flowfabric.ErrConfig]; one for
// two bindings of a kind names it.
func New(cfg Config, bound ...handler.Binding) (*Worker, error) {
	var w *Worker
	options := []fx.Option{fx.NopLogger, parts(cfg), fx.Populate(&w)}
	for _, b := range bound {
		options = append(options, fx.Supply(fx.Annotate(b, fx.ResultTags(bindings))))
	}
	if err := fx.New(options...).Err(); err != nil {
		return nil, dig.RootCause(err)
	}
	return w, nil
}

// both tells two listeners of calls; the second may be nil.
func both(first, second func(string, time.Duration, error)) func(string, time.Duration, error) {
	if second == nil {
		return first
	}
	return func(function string, took time.Duration, err error) {
		first(function, took, err)
		second(function, took, err)
	}
}

// Run connects, takes work until ctx ends, drains, and returns nil; or it returns why it could not go on. It
// handles no signals: the function [Run] does, or the owner of ctx with signal.NotifyContext (see the example of
// [New]). The drain, in this order:
//
//  1. Nothing more is claimed; what a claim still in flight brings goes back at once.
//  2. Running handlers have DrainTimeout to end as if nothing were.
//  3. Then their contexts end with [flowfabric.ErrDraining]. What they did not finish is handed back to the queue
//     at once, without using up an attempt or a retry.
//  4. A handler that does not return within three more seconds is abandoned: it is named in the log and in the
//     error, and its execution is requeued when the session's lease runs out.
//  5. Sessions are closed, the instance name is given up, ticks handed back, subscriptions ended, the connection
//     closed.
//
// The worker registers under Config.Instance before it takes work and renews that with its leases. If another process
// is registered under the name, it waits until that registration runs out, as it does when the other has crashed; if
// it is renewed instead, Run returns an error that wraps [flowfabric.ErrConfig]. Any other trouble with the
// registration is logged and stops nothing: no lease depends on it.
//
// A store that is flushed, or comes back without its data, is booted again, and the worker goes on: it has lost all
// leases, declares its token keys again, and takes what is submitted from then on.
//
// An error at the start wraps flowfabric.ErrConfig, ErrTransport, ErrAuth, ErrProtocol; an error later wraps
// [flowfabric.ErrProtocol], [flowfabric.ErrAuth] or, when the store was recreated with other partition counts,
// flowfabric.ErrConfig, for which no retry can help. A worker runs once.
func (w *Worker) Run(ctx context.Context) (err error) {
	if !w.started.CompareAndSwap(false, true) {
		return errors.New("flowfabric: a worker runs only once")
	}
	defer w.health.phase.Store(phaseStopped)
	s, release, err := w.open(ctx, w.target())
	if err != nil {
		return fmt.Errorf("flowfabric: start worker: %w", err)
	}
	defer release()
	if err := w.keyring.Seed(ctx, s); err != nil {
		return fmt.Errorf("flowfabric: start worker: %w", err)
	}
	if w.keyring == nil {
		w.unsigned(ctx, s)
	}
	for _, n := range s.Evicting(ctx) {
		w.log.Warn(
			"flowfabric: the server may delete executions when its memory is full: set maxmemory-policy noeviction (CONFIG SET, and in its configuration file)",
			"policy", n.Policy, "node", n.Address)
	}
	w.health.success()
	return newRun(ctx, w, s).serve(ctx)
}

// unsigned says that handlers cannot wait for signals here. Only handlers know whether they do; that others sign
// tokens in this store makes it likely.
func (w *Worker) unsigned(ctx context.Context, s store) {
	const remedy = "set Config.TokenKeys or " + suspend.EnvTokenKeys
	for _, p := range s.TokenKeys(ctx) {
		if p.Err == nil && p.Current != "" {
			w.log.Warn(
				"flowfabric: this worker has no token keys, and others of this store sign tokens: handlers that wait for signals or approvals fail here; "+
					remedy+
					" as the others do", "kid", p.Current)
			return
		}
	}
	w.log.Info(
		"flowfabric: no token keys: handlers that wait for signals or approvals (handler.Await, Pending) fail until there are some; " +
			remedy)
}

// Ready returns nil while the worker runs, the server has answered a claim, poll or renewal within
// Config.ReadyWindow, and a slot is left that no stuck handler has; else what is wrong, for a readiness probe to
// show. A handler is stuck when it runs on for more than five seconds after its context has ended: a timeout, a
// cancellation or a lost lease frees its execution, and not its slot. Every stuck handler is logged as a warning, at
// first after those five seconds and then more and more seldom, and counted in the metric stuck_handlers.
func (w *Worker) Ready() error { return w.health.check() }

// Instance is the name of this process among all workers, as sessions and logs show it.
func (w *Worker) Instance() string { return w.cfg.Instance }
