package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/sourcegraph/conc"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
)

// bindings is the fx group that [Provide] adds to and [Module] reads.
const bindings = `group:"flowfabric.bindings"`

// Run runs one worker as the whole program: it builds an fx application from [Module] and opts (see [Provide]),
// starts it, waits for ctx, SIGINT or SIGTERM, stops it in the opposite order, and returns nil or the reason in
// one line. A second signal ends the process at once. When another component shuts the application down with an exit
// code (fx.Shutdowner with fx.ExitCode), Run stops it in the same way and returns an [*ExitError] with the code.
//
// The configuration is checked before anything is built; then it returns an error that wraps
// [flowfabric.ErrConfig]. What else it returns: the root cause of a failed constructor, or what [Worker.Run] does.
func Run(ctx context.Context, cfg Config, opts ...fx.Option) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s *service
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger {
			if cfg.FxLogger != nil {
				return cfg.FxLogger
			}
			return fxevent.NopLogger
		}),
		fx.StopTimeout(cfg.drainTimeout()+stopGrace),
		fx.Options(opts...),
		Module(cfg),
		fx.Populate(&s),
	)
	if err := app.Err(); err != nil {
		return startError(err)
	}
	startCtx, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(startCtx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop before it began
		}
		return startError(err)
	}
	var exit int
	shutdown := app.Wait()
	select {
	case <-ctx.Done():
		stop() // from now on a signal has its usual effect
	case <-s.ended:
	case asked := <-shutdown:
		exit = asked.ExitCode
	}
	stopCtx, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancelStop()
	err := app.Stop(stopCtx)
	select {
	case asked := <-shutdown: // while it stopped for another reason
		exit = asked.ExitCode
	default:
	}
	return exited(exit, err, s.failed.Load())
}

// ExitError says that a component of the application, not the worker, shut it down with an exit code other than 0. A
// main function that wants to end with it:
//
//	if exit, ok := errors.AsType[*runtime.ExitError](err); ok {
//		os.Exit(exit.Code)
//	}
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("flowfabric: a component shut the application down with exit code %d", e.Code)
}

// exited joins why the application was shut down with what stopping it returned. The worker's own failure speaks for
// itself.
func exited(code int, err error, worker bool) error {
	switch {
	case code == 0, worker:
		return err
	case err == nil:
		return &ExitError{code}
	}
	return fmt.Errorf("%w; then: %w", &ExitError{code}, err)
}

// Module is a worker as a part of somebody's fx application: it runs the bindings of the group
// "flowfabric.bindings" (see [Provide]), takes work from OnStart on, and drains in OnStop. Give the application a
// StopTimeout of at least cfg.DrainTimeout + 5 s. A worker that cannot go on shuts the application down with exit
// code 1. An invalid configuration is an error at the start.
//
// It provides:
//
//   - [*Worker], whose Ready a health check asks;
//   - [*client.Client], connected as the worker is ([Config.Client]) when something first asks for it, and closed after
//     the drain, so a handler may have it injected and submit;
//   - [Slots], which the application may decorate.
//
// Where cfg leaves them empty it takes from the application *slog.Logger, prometheus.Registerer, trace.TracerProvider
// and propagation.TextMapPropagator, if there are such.
func Module(cfg Config) fx.Option {
	return fx.Options(
		parts(cfg),
		fx.Module("flowfabric.life",
			fx.Provide(newService),
			fx.Invoke(func(lifecycle fx.Lifecycle, s *service) {
				lifecycle.Append(fx.Hook{OnStart: s.start, OnStop: s.stop})
			}),
		),
	)
}

// service runs a worker between OnStart and OnStop.
type service struct {
	worker   *Worker
	shutdown fx.Shutdowner
	cancel   context.CancelFunc
	ended    chan struct{} // closed after err was set
	err      error
	failed   atomic.Bool // err is the reason for the end
	running  conc.WaitGroup
}

func newService(w *Worker, shutdown fx.Shutdowner) *service {
	return &service{worker: w, shutdown: shutdown, ended: make(chan struct{})}
}

// start returns once work can arrive, or will when a predecessor's registration runs out, or with the reason why it
// cannot. The worker itself does not run on ctx, which ends with the start.
func (s *service) start(ctx context.Context) error {
	var run context.Context
	run, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() {
		defer close(s.ended)
		s.err = s.worker.Run(run)
		if s.err != nil && run.Err() == nil {
			s.failed.Store(true)
			_ = s.shutdown.Shutdown(fx.ExitCode(1)) // fails only before the application has started
		}
	})
	select {
	case <-s.worker.serving:
		return nil
	case <-s.worker.waiting: // longer than an application may take to start, and not ready meanwhile
		return nil
	case <-s.ended:
		return errors.Join(s.err, context.Cause(ctx))
	case <-ctx.Done():
		s.cancel()
		<-s.ended
		return errors.Join(context.Cause(ctx), s.err)
	}
}

// stop drains and returns what the worker returned, or the end of ctx if that comes first.
func (s *service) stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.ended:
		s.running.Wait()
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("flowfabric: the drain outlasted the application's StopTimeout: %w", context.Cause(ctx))
	}
}

// startError is the root cause of a failed fx application in one line.
func startError(err error) error {
	return &oneLine{dig.RootCause(err)}
}

type oneLine struct{ cause error }

func (e *oneLine) Error() string {
	text := strings.Join(strings.Fields(e.cause.Error()), " ")
	if strings.HasPrefix(text, "flowfabric: ") {
		return text
	}
	return "flowfabric: start: " + text
}
func (e *oneLine) Unwrap() error { return e.cause }
