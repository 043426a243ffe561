package fftest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// errKilled is the cause that handlers of a killed worker see.
var errKilled = fmt.Errorf("%w: the worker process was killed", flowfabric.ErrLeaseLost)

// process is one worker process: a runtime worker, its network, and a way to make it stop dead.
type process struct {
	name   string // its Config.Instance
	env    *Env
	link   *link
	hangUp func()
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned err
	err    error
	dead   atomic.Bool
	busy   sync.WaitGroup // handlers at work

	mu       sync.Mutex
	handlers map[*handler.Task]context.CancelCauseFunc // handlers at work
}

// startProcess starts a worker under cfg; its own middleware goes outside the configured one. onDeath is told once
// when the journal's crash has killed it, onFailure when it has ended by itself.
func startProcess(w *Env, cfg runtime.Config, l *link, onDeath func(*process),
	onFailure func(error)) (*process, error) {
	p := &process{name: cfg.Instance, env: w, link: l, ended: make(chan struct{}),
		handlers: map[*handler.Task]context.CancelCauseFunc{}}
	l.died = func() {
		if p.kill() {
			onDeath(p)
		}
	}
	cfg.URL, p.hangUp = inproc.Listen(l.connect)
	cfg.Middleware = append([]handler.Middleware{p.watch}, cfg.Middleware...)
	cfg.Logger = slog.New(&mutedHandler{cfg.Logger.Handler(), &p.dead})
	worker, err := runtime.New(cfg, w.bindings...)
	if err != nil {
		p.hangUp()
		return nil, err
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	w.running.Go(func() {
		defer close(p.ended)
		defer p.hangUp()
		p.err = worker.Run(ctx)
		died := p.dead.Load() || l.over.Load() // set before its network breaks, which its start may be the first to see
		if p.err != nil && !died && ctx.Err() == nil {
			onFailure(p.err)
		}
	})
	return p, nil
}

// watch keeps at hand what ends the handlers' contexts, and tells the journal whose handler runs.
func (p *process) watch(next handler.Handler) handler.Handler {
	return func(ctx context.Context, t *handler.Task) handler.Outcome {
		p.busy.Add(1)
		defer p.busy.Done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		p.mu.Lock()
		p.handlers[t] = cancel
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			delete(p.handlers, t)
			p.mu.Unlock()
		}()
		if p.dead.Load() {
			cancel(errKilled)
		}
		p.link.journal.begin(p.link)
		p.link.journal.begins(t.ID())
		ctx = context.WithValue(ctx, tasks.ReservationWatch{}, func(what tasks.Reservation) {
			if !p.dead.Load() {
				p.link.journal.reserves(t.ID(), what)
			}
		})
		return next(context.WithValue(ctx, runKey{}, handlerRun{p, t.ID()}), t)
	}
}

// working reports whether a handler is at work.
func (p *process) working() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.handlers) > 0
}

// runKey marks the context of a handler at work; its value is a handlerRun.
type runKey struct{}

type handlerRun struct {
	process *process
	id      flowfabric.ExecutionID
}

// runOf returns whose handler a context belongs to; no process for one that does not run in a [Env].
func runOf(ctx context.Context) (*process, flowfabric.ExecutionID) {
	p, _ := ctx.Value(runKey{}).(handlerRun)
	return p.process, p.id
}

// kill stops the process dead: from now on nothing it does has an effect on the store. It does not block, and reports
// whether the process was alive.
func (p *process) kill() bool {
	if p.dead.Swap(true) {
		return false
	}
	p.link.cut()
	p.mu.Lock()
	for _, cancel := range p.handlers {
		cancel(errKilled)
	}
	p.mu.Unlock()
	p.cancel()
	return true
}

// stop drains the process and returns what its Run returned.
func (p *process) stop() error {
	p.cancel()
	<-p.ended
	return p.err
}

// quiet waits until no handler is at work, those that ignored the end of their context included, and reports whether
// that came to be.
func (p *process) quiet(run *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	run.Go(func() {
		p.busy.Wait()
		close(done)
	})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// mutedHandler logs until the process is dead: the dead do not complain about their connections.
type mutedHandler struct {
	slog.Handler
	dead *atomic.Bool
}

func (h *mutedHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.dead.Load() && h.Handler.Enabled(ctx, level)
}

func (h *mutedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &mutedHandler{h.Handler.WithAttrs(attrs), h.dead}
}

func (h *mutedHandler) WithGroup(name string) slog.Handler {
	return &mutedHandler{h.Handler.WithGroup(name), h.dead}
}
