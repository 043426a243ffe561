package sentinel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	partitions = 4
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var double = handler.Define[int, int]("double", flowfabric.Retries(0))

// env is a set of one test with an engine, a client and workers on it.
type env struct {
	*testing.T
	ctx     context.Context
	set     *testserver.Set
	engine  *engine.Engine
	client  *client.Client
	workers []func() // each drains one

	mu   sync.Mutex
	runs map[flowfabric.ExecutionID]int // how often a handler began
}

func newEnv(t *testing.T, set *testserver.Set, workers ...string) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	w := &env{T: t, ctx: ctx, set: set, runs: map[flowfabric.ExecutionID]int{}}
	e, err := engine.Open(ctx, engine.Config{URL: set.URL(), Partitions: partitions, Logger: quiet})
	w.no(err)
	t.Cleanup(e.Close)
	w.engine = e
	w.client, err = client.Connect(ctx, client.Config{URL: set.URL(), Logger: quiet, SubmitTimeout: time.Hour})
	w.no(err)
	t.Cleanup(w.client.Close)
	for _, name := range workers {
		w.start(name)
	}
	return w
}

func (w *env) start(name string) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	r, err := runtime.New(runtime.Config{URL: w.set.URL(), Instance: name, LeaseTTL: 3 * time.Second, Concurrency: 4,
		Logger: quiet}, handler.Bind(double, w.double))
	w.no(err)
	var owner conc.WaitGroup
	owner.Go(func() {
		if err := r.Run(ctx); err != nil {
			w.Errorf("worker %s: %v", name, err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); owner.Wait() })
	w.Cleanup(stop)
	w.until("worker "+name+" is ready", func() bool { return r.Ready() == nil })
	w.workers = append(w.workers, stop)
}

func (w *env) double(ctx context.Context, t *handler.Task, n int) (int, error) {
	w.mu.Lock()
	w.runs[t.ID()]++
	w.mu.Unlock()
	return handler.Step(ctx, t, "doubled", func(context.Context) (int, error) {
		<-time.After(20 * time.Millisecond)
		return 2 * n, nil
	})
}

func (w *env) ran(id flowfabric.ExecutionID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[id]
}

func (w *env) no(err error) {
	w.Helper()
	must.No(w, err)
}

// until polls for something that other processes do.
func (w *env) until(what string, done func() bool) {
	w.Helper()
	testwait.Until(w.T, what, done)
}

// read is ReadExecution that a primary which is away for a moment does not fail.
func (w *env) read(id flowfabric.ExecutionID) (s engine.Snapshot, err error) {
	w.Helper()
	w.until("an execution can be read", func() bool {
		s, err = w.engine.ReadExecution(w.ctx, id)
		return !errors.Is(err, flowfabric.ErrTransport)
	})
	return s, err
}

// listening waits until the doorbells of all workers hang at the primary of now.
func (w *env) listening(workers ...string) {
	w.Helper()
	primary := w.set.Primary()
	for p := range uint16(partitions) {
		for _, name := range workers {
			w.until(fmt.Sprintf("%s listens for partition %d", name, p), func() bool {
				counts := primary.Do("PUBSUB", "SHARDNUMSUB", engine.BellChannel(p, name)).([]any)
				return counts[1] == int64(1)
			})
		}
	}
}

// sound stops all workers and holds every partition against the invariants.
func (w *env) sound() {
	w.Helper()
	for _, stop := range w.workers {
		stop()
	}
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{w.set.Primary().Address()},
		Password: passwords.Data, DisableCache: true, ForceSingleClient: true})
	w.no(err)
	defer raw.Close()
	checker := invariant.NewChecker()
	for p := range uint16(partitions) {
		dump, err := invariant.Read(w.ctx, raw, p)
		w.no(err)
		for _, breach := range checker.Violations(dump) {
			w.Errorf("partition %d: %s", p, breach)
		}
	}
}

// load submits all the time, a bounded number ahead, and waits for each result.
type load struct {
	w     *env
	quit  chan struct{}
	slots chan struct{}
	owner conc.WaitGroup
	close func()

	mu      sync.Mutex
	all     []*followed
	ended   int
	unknown int
}

// followed is one execution. got and err are complete once the load has ended.
type followed struct {
	id  flowfabric.ExecutionID
	n   int
	got int
	err error
}

func (w *env) newLoad() *load {
	l := &load{w: w, quit: make(chan struct{}), slots: make(chan struct{}, 8)}
	l.close = sync.OnceFunc(func() { close(l.quit) })
	l.owner.Go(l.submit)
	w.Cleanup(func() { l.end() })
	return l
}

func (l *load) submit() {
	for n := 0; ; n++ {
		select {
		case <-l.quit:
			return
		case l.slots <- struct{}{}:
		}
		e, err := client.Submit(l.w.ctx, l.w.client, double, n)
		if err != nil {
			<-l.slots
			if unknown := new(client.UnknownOutcomeError); !errors.As(err, &unknown) {
				l.w.Errorf("submit %d: %v", n, err)
				return
			}
			l.mu.Lock()
			l.unknown++
			l.mu.Unlock()
			continue
		}
		f := &followed{id: e.ID(), n: n}
		l.mu.Lock()
		l.all = append(l.all, f)
		l.mu.Unlock()
		l.owner.Go(func() {
			f.got, f.err = e.Result(l.w.ctx)
			l.mu.Lock()
			l.ended++
			l.mu.Unlock()
			<-l.slots
		})
	}
}

// end stops submitting and waits until every execution was followed to its end.
func (l *load) end() []*followed {
	l.close()
	l.owner.Wait()
	return l.all
}

// more waits until so many more executions have ended that are submitted from now on.
func (l *load) more(n int) {
	l.w.Helper()
	l.mu.Lock()
	goal := l.ended + n + cap(l.slots)
	l.mu.Unlock()
	l.w.until(fmt.Sprintf("%d more executions have ended", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ended >= goal
	})
}

// judge ends the load. An execution is either there, completed and known as such, or lost with a primary and reported
// as lost. While there are two primaries, the Sentinels may name now one and now the other, so one that the other has
// may be reported as lost.
func (l *load) judge() {
	l.w.Helper()
	lost, again, elsewhere := 0, 0, 0
	ids := map[flowfabric.ExecutionID]bool{}
	for _, f := range l.end() {
		var s engine.Snapshot
		var err error
		l.w.until(fmt.Sprintf("%s has ended again, if its end was lost", f.id), func() bool {
			s, err = l.w.read(f.id)
			return err != nil || s.State.Terminal()
		})
		gone := errors.Is(err, flowfabric.ErrNotFound)
		switch {
		case ids[f.id]:
			l.w.Errorf("%s: two submits made it", f.id)
		case !gone && (err != nil || s.Code != codes.Completed):
			l.w.Errorf("%s is %s: %v", f.id, s.Code, err)
		case !gone && f.err != nil && errors.Is(f.err, flowfabric.ErrNotFound):
			elsewhere++
		case f.err != nil && !(gone && errors.Is(f.err, flowfabric.ErrNotFound)) || f.err == nil && f.got != 2*f.n:
			l.w.Errorf("%s: result %d of %d: %v", f.id, f.got, f.n, f.err)
		case gone:
			lost++
		case l.w.ran(f.id) > 1:
			again++
		}
		ids[f.id] = true
	}
	l.w.Logf(
		"%d executions, %d lost with a primary, %d reported as lost that the other primary had, %d run more than once, %d submits of unknown outcome",
		len(l.all), lost, elsewhere, again, l.unknown)
}

// done are executions that ended, and that the replicas know to have ended.
func (w *env) done(n int) (list []flowfabric.ExecutionID) {
	w.Helper()
	for i := range n {
		e, err := client.Submit(w.ctx, w.client, double, i)
		w.no(err)
		if got, err := e.Result(w.ctx); err != nil || got != 2*i {
			w.Fatalf("result %d of %d: %v", got, i, err)
		}
		list = append(list, e.ID())
	}
	w.set.InStep()
	return list
}

// once fails unless each of the executions ran once.
func (w *env) once(list []flowfabric.ExecutionID) {
	w.Helper()
	for _, id := range list {
		if s, err := w.read(id); err != nil || s.Code != codes.Completed || s.Attempts != 1 || w.ran(id) != 1 {
			w.Errorf("%s had ended before the failover: now %s after %d attempts, a handler ran %d times: %v", id,
				s.Code, s.Attempts, w.ran(id), err)
		}
	}
}
