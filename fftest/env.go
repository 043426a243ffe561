package fftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// defaultPatience is how long [Execution.Wait] waits while something could happen, in virtual time.
const defaultPatience = 24 * time.Hour

// longNap is how far away the next due time must be for the worker to be stopped until then.
const longNap = 30 * time.Second

// Env is a store and one worker at a time, in a testing/synctest bubble. Create it with [New]; it ends with the
// test. Methods may be called from any goroutine of the bubble; what may end the test (Submit, and the methods of
// [Execution]) is best called from the test's own.
type Env struct {
	// Patience is how long Wait goes on, in virtual time, while no execution is merely waiting for a due time; see
	// [Execution.Wait]. Default 24 h. Set it before the first Wait.
	Patience time.Duration

	t         testing.TB
	cfg       runtime.Config
	bindings  []handler.Binding
	server    *embedded.Server
	dial      inproc.Dialer
	client    *client.Client
	admin     *admin.Admin
	keyring   *tokenkeys.Keyring
	journal   *journal
	submitted atomic.Uint32
	running   sync.WaitGroup // worker processes, who replaces them, and who answers waits
	life      context.Context
	end       context.CancelFunc
	release   func()
	shut      sync.Once

	turn   chan struct{} // capacity 1: who starts and stops workers; a channel, since waiting for it must let time pass
	worker *process      // the one that runs; guarded by turn
	all    []*process    // that ran; guarded by turn
	closed bool          // guarded by turn

	mu     sync.Mutex
	poke   chan struct{}                       // closed, and replaced, when something has changed: wakes who naps
	takers int                                 // who want the turn to do something to the worker
	broken error                               // why a worker could not go on
	answer map[flowfabric.ExecutionID][]Answer // answers of Answered that are left
	dues   map[time.Time]int                   // how many answers come at a time
}

// New starts a store and a worker that runs the bindings. It must be called in a bubble:
//
//	synctest.Test(t, func(t *testing.T) {
//		w := fftest.New(t, runtime.Config{}, handler.Bind(Write, writer.Handle))
//		…
//	})
//
// cfg is the worker's, as in production; its URL must be empty, Instance and Registerer are ignored. What is zero has
// the worker's defaults, but Lanes and Capabilities are those that the bindings' definitions ask for, Partitions is
// 1, and Logger writes warnings and errors to the test's output. A mistake in cfg or bindings ends the test.
func New(t testing.TB, cfg runtime.Config, bindings ...handler.Binding) *Env {
	t.Helper()
	return newEnv(t, cfg, bindings, newJournal(crash{}))
}

func newEnv(t testing.TB, cfg runtime.Config, bindings []handler.Binding, j *journal) *Env {
	t.Helper()
	switch {
	case !bubbled():
		t.Fatal("fftest: New must be called in a bubble: synctest.Test(t, func(t *testing.T) { … })")
	case cfg.URL != "":
		t.Fatalf("fftest: Config.URL is %q; the store is the environment's own", cfg.URL)
	}
	w := &Env{
		Patience: defaultPatience, t: t, cfg: withDefaults(t, cfg, bindings), bindings: bindings,
		journal: j, turn: make(chan struct{}, 1), poke: make(chan struct{}), release: func() {},
		answer: map[flowfabric.ExecutionID][]Answer{}, dues: map[time.Time]int{},
	}
	j.enter()
	w.life, w.end = context.WithCancel(context.Background())
	t.Cleanup(w.close)
	if err := w.start(t.Context()); err != nil {
		t.Fatalf("fftest: %v", err)
	}
	return w
}

func withDefaults(t testing.TB, cfg runtime.Config, bindings []handler.Binding) runtime.Config {
	cfg.Registerer = nil // every worker process has its own
	cfg.Partitions = cmp.Or(cfg.Partitions, 1)
	cfg.TokenKeys = cmp.Or(cfg.TokenKeys, os.Getenv(suspend.EnvTokenKeys))
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, limits.DefaultLeaseTTL)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	lanes, capabilities := []string{limits.DefaultLane}, []string(nil)
	for _, b := range bindings {
		lanes = append(lanes, b.Info().Lane)
		capabilities = append(capabilities, b.Info().Capabilities...)
	}
	distinct := func(names []string) []string {
		slices.Sort(names)
		return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	}
	if len(cfg.Lanes) == 0 {
		cfg.Lanes = distinct(lanes)
	}
	if len(cfg.Capabilities) == 0 {
		cfg.Capabilities = distinct(capabilities)
	}
	return cfg
}

// start opens the store, connects the client, and starts the first worker.
func (w *Env) start(ctx context.Context) (err error) {
	if w.server, err = embedded.Start(ctx, embedded.Config{InProcess: true, Logger: w.cfg.Logger}); err != nil {
		return err
	}
	w.dial = func(ctx context.Context) (net.Conn, error) { return inproc.Dial(ctx, w.server.URL()) }
	own := &link{dial: w.dial, journal: w.journal, wrote: w.wrote}
	url, release := inproc.Listen(own.connect)
	w.release = release
	if w.keyring, err = tokenkeys.Configured(url, w.cfg.TokenKeys); err != nil {
		return err
	}
	w.client, err = client.Connect(ctx, client.Config{
		URL: url, Namespace: w.cfg.Namespace, Partitions: w.cfg.Partitions, Logger: w.cfg.Logger,
		TokenKeys: w.cfg.TokenKeys,
	})
	if err != nil {
		return err
	}
	w.admin = admin.New(w.client)
	w.take()
	defer w.give()
	return w.startWorker()
}

// take gets the turn, waking the environment if it naps.
func (w *Env) take() {
	w.want(+1)
	defer w.want(-1)
	w.wake()
	w.turn <- struct{}{}
}

func (w *Env) want(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takers += n
}

// poked returns a channel that is closed when something changes from now on, and whether somebody wants the turn
// already.
func (w *Env) poked() (changed <-chan struct{}, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.poke, w.takers > 0
}

func (w *Env) give() { <-w.turn }

// wrote is told that the client sends something that changes the store. Time passes only when the server has carried
// it out, so that a look which was too early for it is followed by another one.
func (w *Env) wrote() {
	w.wake()
	time.AfterFunc(settleTime, w.wake)
}

// wake ends the naps that began before.
func (w *Env) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.poke)
	w.poke = make(chan struct{})
}

// startWorker starts the next worker process. The caller has the turn.
func (w *Env) startWorker() error {
	if w.closed {
		return nil
	}
	cfg := w.cfg
	cfg.Instance = fmt.Sprintf("worker-%d", len(w.all)+1)
	l := &link{dial: w.dial, journal: w.journal}
	p, err := startProcess(w, cfg, l, func(dead *process) {
		w.running.Go(func() { w.replace(dead) })
	}, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken = errors.Join(w.broken, err)
	})
	if err != nil {
		return err
	}
	w.worker, w.all = p, append(w.all, p)
	w.journal.runs(l)
	return nil
}

// replace starts a worker in the place of a dead one, unless somebody has.
func (w *Env) replace(dead *process) {
	w.take()
	defer w.give()
	if w.worker != dead {
		return
	}
	if err := w.startWorker(); err != nil {
		w.t.Errorf("fftest: start a worker: %v", err)
	}
}

// stopWorker drains the worker; one that had not even started has nothing to say. The caller has the turn.
func (w *Env) stopWorker() {
	if w.worker == nil {
		return
	}
	w.journal.runs(nil)
	if err := w.worker.stop(); err != nil && !w.worker.dead.Load() && !errors.Is(err, context.Canceled) {
		w.t.Errorf("fftest: worker: %v", err)
	}
}

// Client is a client of the environment's store, for what [Submit] and [Execution] do not offer.
func (w *Env) Client() *client.Client { return w.client }

// Kill lets the worker process die on the spot: no more calls, connections broken, nothing handed back. Another one
// takes its place at once, and gets what the dead one held when the lease has run out. It returns when the new
// one was started.
func (w *Env) Kill() {
	w.take()
	dead := w.worker
	if dead != nil {
		dead.kill()
	}
	w.give()
	w.replace(dead)
}

// LoseLease cuts the worker off from the store until every lease it holds has run out, and connects it again; it
// returns then, Config.LeaseTTL later. Handlers see their contexts end with [flowfabric.ErrLeaseLost] shortly before,
// and what they return is dropped. Their executions are given out again as attempts of type reclaim.
func (w *Env) LoseLease() {
	w.take()
	defer w.give()
	if w.worker == nil {
		return
	}
	w.worker.link.cut()
	time.Sleep(w.cfg.LeaseTTL)
	if !w.worker.dead.Load() {
		w.worker.link.restore()
	}
}

// Drain stops the worker as a deployment does, see [runtime.Worker.Run], and starts another one. Handlers that do not
// end within Config.DrainTimeout see their contexts end with [flowfabric.ErrDraining], and their executions go on as
// the same attempt. It returns when the new worker was started. A handler that ignores its context fails the test.
func (w *Env) Drain() {
	w.t.Helper()
	w.take()
	defer w.give()
	w.stopWorker()
	if err := w.startWorker(); err != nil {
		w.t.Errorf("fftest: start a worker: %v", err)
	}
}

// close ends everything the environment has started, handlers included. Idempotent.
func (w *Env) close() {
	w.shut.Do(func() {
		w.take()
		w.closed = true
		w.stopWorker()
		w.give()
		w.end()
		for _, p := range w.all { // when the test's goroutine has ended, no time passes any more
			if !p.quiet(&w.running, w.Patience) {
				w.t.Errorf("fftest: a handler is still running, %s after its worker was stopped", w.Patience)
			}
		}
		w.running.Wait()
		if w.client != nil {
			w.client.Close()
		}
		w.release()
		if w.server != nil {
			w.server.Close()
		}
	})
}
