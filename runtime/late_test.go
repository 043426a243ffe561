package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// late keeps the answer of a claim back until the worker drains.
type late struct {
	store
	sent   chan struct{} // closed when the claim has taken effect
	once   sync.Once
	answer chan struct{}
}

func (l *late) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	r, err := l.store.ClaimNext(ctx, req)
	if len(r.Claims) > 0 {
		l.once.Do(func() { close(l.sent) })
		<-l.answer
	}
	return r, err
}

// listener is a log in which somebody waits for a message.
type listener struct {
	message string
	heard   func()
}

func (l listener) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, l.message) {
		l.heard()
	}
	return nil
}

func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }

// bench is one execution on an embedded server and a worker, not running yet, that reaches the server through wrap.
type bench struct {
	engine *engine.Engine
	id     flowfabric.ExecutionID
	worker *Worker
	runs   atomic.Int64 // of the handler
}

func newBench(t *testing.T, logger *slog.Logger, wrap func(store) store) *bench {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Logger: quiet})
	must.No(t, err)
	t.Cleanup(server.Close)
	b := &bench{id: mint.ID(0)}
	if b.engine, err = engine.Open(t.Context(), engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 2,
		Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Close)
	x := engine.NewExecution{ID: b.id, Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"},
		Payload: []byte(`""`)}
	if created, err := b.engine.CreateExecutions(t.Context(), 0, []engine.NewExecution{x}); err != nil ||
		created[0].Err != nil {
		t.Fatal(err, created)
	}
	b.worker, err = New(Config{URL: server.URL(), Logger: logger, LeaseTTL: time.Hour},
		handler.Bind(handler.Define[string, string]("k"),
			func(context.Context, *handler.Task, string) (string, error) { b.runs.Add(1); return "", nil }))
	must.No(t, err)
	b.worker.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		return wrap(s), release, err
	}
	return b
}

// run runs the worker until ready is closed, and drains it.
func (b *bench) run(t *testing.T, ready <-chan struct{}) engine.Snapshot {
	t.Helper()
	ctx, stop := testwait.Context(t, t.Context())
	defer stop()
	var running conc.WaitGroup
	running.Go(func() {
		if err := b.worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-ctx.Done():
		t.Error("not in time")
	}
	stop()
	running.Wait()
	s, err := b.engine.ReadExecution(t.Context(), b.id)
	must.No(t, err)
	return s
}

// What a claim brings after the drain began goes back as it came: no handler sees it, and its attempt is kept.
func TestClaimAnsweredDuringTheDrain(t *testing.T) {
	l := &late{sent: make(chan struct{}), answer: make(chan struct{})}
	logger := slog.New(listener{"worker drains", sync.OnceFunc(func() { close(l.answer) })})
	b := newBench(t, logger, func(s store) store { l.store = s; return l })
	s := b.run(t, l.sent)
	if s.Code != codes.WaitingInterrupted || s.Attempts != 1 || b.runs.Load() != 0 {
		t.Errorf("%s after %d attempts, %d runs", s.Code, s.Attempts, b.runs.Load())
	}
}

// unheard loses the first completions on their way to the server.
type unheard struct {
	store
	left    atomic.Int64
	settled chan struct{} // closed when one has arrived
}

func (u *unheard) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	if u.left.Add(-1) >= 0 {
		return nil, nil, fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	s, c, err := u.store.CompleteExecutions(ctx, p, items, next)
	if err == nil {
		close(u.settled)
	}
	return s, c, err
}

// A completion that never arrives is sent again under the same hold; the handler does not run a second time.
func TestUnheardCompletionIsSentAgain(t *testing.T) {
	u := &unheard{settled: make(chan struct{})}
	u.left.Store(3)
	b := newBench(t, quiet, func(s store) store { u.store = s; return u })
	s := b.run(t, u.settled)
	if s.Code != codes.Completed || s.Attempts != 1 || b.runs.Load() != 1 || u.left.Load() != -1 {
		t.Errorf("%s after %d attempts, %d runs, %d calls", s.Code, s.Attempts, b.runs.Load(), 3-u.left.Load())
	}
}
