package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	quiet = slog.New(slog.DiscardHandler)
	kind  = handler.Define[string, string]("k", handler.Retry(1, time.Millisecond, time.Millisecond))
)

type env struct {
	*testing.T
	ctx    context.Context
	url    string
	client *client.Client
	admin  *admin.Admin
}

func newEnv(t *testing.T) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	url := testserver.Redis(t)
	c, err := client.Connect(ctx, client.Config{URL: url, Partitions: 4, Logger: quiet})
	must.No(t, err)
	t.Cleanup(func() { c.Close() })
	return &env{t, ctx, url, c, admin.New(c)}
}

func (e *env) open(cfg lease.Config) *lease.Session {
	e.Helper()
	cfg.URL, cfg.Kinds, cfg.Logger = e.url, []string{"k"}, quiet
	s, err := lease.Open(e.ctx, cfg)
	must.No(e, err)
	e.Cleanup(func() { _ = s.Close(context.WithoutCancel(e.ctx)) })
	return s
}

func (e *env) submit(opts ...client.SubmitOption) *client.Execution[string] {
	e.Helper()
	h, err := client.Submit(e.ctx, e.client, kind, "in", opts...)
	must.No(e, err)
	return h
}

func (e *env) one(s *lease.Session) *lease.Held {
	e.Helper()
	held, err := s.Claim(e.ctx, 1)
	must.No(e, err)
	if len(held) != 1 {
		e.Fatalf("claimed %d executions, want 1", len(held))
	}
	return held[0]
}

// A claim waits for work, and what it brings is completed, failed, delayed and released as its holder says.
func TestHeldIsSettled(t *testing.T) {
	e := newEnv(t)
	s := e.open(lease.Config{})
	var h *lease.Held
	var waiting conc.WaitGroup
	waiting.Go(func() { h = e.one(s) })
	x := e.submit()
	waiting.Wait()
	if h.Kind != "k" || string(h.Input) != `"in"` || h.Fence.Attempt != 1 || h.Type != flowfabric.AttemptInitial {
		t.Errorf("claimed %+v", h)
	}
	must.No(t, h.Release(e.ctx))
	if h = e.one(s); h.Fence.Attempt != 1 {
		t.Errorf("after a release: attempt %d, want the same", h.Fence.Attempt)
	}
	must.No(t, h.Delay(e.ctx, time.Millisecond))
	h = e.one(s)
	if again, in, err := h.Fail(e.ctx, handler.Failure{Reason: "once"}); !again || in > time.Millisecond || err != nil {
		t.Errorf("failed: again %v in %v, %v", again, in, err)
	}
	if h = e.one(s); h.Fence.Attempt != 2 || h.Type != flowfabric.AttemptRetry {
		t.Errorf("after a failure: %+v", h)
	}
	must.No(t, h.Complete(e.ctx, []byte(`"out"`)))
	if out, err := x.Result(e.ctx); out != "out" || err != nil {
		t.Errorf("result %q, %v", out, err)
	}
	if h.Context().Err() == nil {
		t.Error("the context of what was settled goes on")
	}
	if _, _, err := h.Fail(e.ctx, handler.Failure{}); err == nil {
		t.Error("it was settled twice")
	}
}

// What a gate grants comes with the same claim, when there is room.
func TestClaimOfWhatAGateGranted(t *testing.T) {
	e := newEnv(t)
	must.No(t, e.admin.PutGate(e.ctx, admission.Gate{Name: "one", Concurrency: 1}, flowfabric.IfNew()))
	s := e.open(lease.Config{})
	first, second := e.submit(flowfabric.Gates("one")), e.submit(flowfabric.Gates("one"))
	h := e.one(s)
	ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond) // timed: nothing may come within it
	if held, err := s.Claim(ctx, 1); len(held) != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("claimed %d beyond the gate, %v", len(held), err)
	}
	cancel()
	must.No(t, h.Complete(e.ctx, []byte(`"a"`)))
	must.No(t, e.one(s).Complete(e.ctx, []byte(`"b"`)))
	for _, x := range []*client.Execution[string]{first, second} {
		if _, err := x.Result(e.ctx); err != nil {
			t.Error(err)
		}
	}
}

// What a holder lost is claimed by another one, as a reclaim; the first one's context says why, and nothing of it is
// written.
func TestReclaim(t *testing.T) {
	e := newEnv(t)
	a, b := e.open(lease.Config{}), e.open(lease.Config{})
	x := e.submit()
	h := e.one(a)
	must.No(t, e.admin.Revoke(e.ctx, h.Fence.Execution, ""))
	<-h.Context().Done()
	if err := context.Cause(h.Context()); !errors.Is(err, flowfabric.ErrLeaseLost) || h.Check() == nil {
		t.Errorf("the cause is %v", err)
	}
	if err := h.Complete(e.ctx, []byte(`"late"`)); !errors.Is(err, flowfabric.ErrLeaseLost) {
		t.Errorf("completed after the loss: %v", err)
	}
	next := e.one(b)
	if next.Type != flowfabric.AttemptReclaim || next.Fence.Epoch <= h.Fence.Epoch {
		t.Errorf("claimed %+v", next)
	}
	must.No(t, next.Complete(e.ctx, []byte(`"kept"`)))
	if out, err := x.Result(e.ctx); out != "kept" || err != nil {
		t.Errorf("result %q, %v", out, err)
	}
}

// A renewal moves the lease's end, and the timeout of an attempt ends the context of its holder.
func TestRenewal(t *testing.T) {
	e := newEnv(t)
	s := e.open(lease.Config{TTL: time.Hour})
	e.submit(flowfabric.Timeout(50 * time.Millisecond))
	h := e.one(s)
	before := h.Renewal()
	must.No(t, h.Renew(e.ctx))
	after := h.Renewal()
	if !after.At.After(before.At) || after.Expires.Sub(after.At) != time.Hour || after.Failed != 0 ||
		!after.Next.After(after.At) {
		t.Errorf("renewed: %+v, then %+v", before, after)
	}
	<-h.Context().Done()
	if err := context.Cause(h.Context()); !errors.Is(err, flowfabric.ErrAttemptTimeout) {
		t.Errorf("the cause is %v", err)
	}
}

func TestClose(t *testing.T) {
	e := newEnv(t)
	s := e.open(lease.Config{})
	e.submit()
	h := e.one(s)
	var waiting conc.WaitGroup
	waiting.Go(func() {
		if _, err := s.Claim(e.ctx, 1); !errors.Is(err, flowfabric.ErrDraining) {
			t.Errorf("a claim that waits: %v", err)
		}
	})
	must.No(t, h.Complete(e.ctx, []byte("1")))
	must.No(t, s.Close(e.ctx))
	must.No(t, s.Close(e.ctx))
	waiting.Wait()
	if _, err := s.Claim(e.ctx, 1); !errors.Is(err, flowfabric.ErrDraining) {
		t.Errorf("a claim after Close: %v", err)
	}
}

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]lease.Config{
		"Config.URL":           {Kinds: []string{"k"}},
		"Config.Kinds":         {URL: "embedded://"},
		"Config.TTL":           {URL: "embedded://", Kinds: []string{"k"}, TTL: time.Millisecond},
		"Config.Instance":      {URL: "embedded://", Kinds: []string{"k"}, Instance: "a~b"},
		"Lanes[1]":             {URL: "embedded://", Kinds: []string{"k"}, Lanes: []string{"a", ""}},
		"Config.Capabilities":  {URL: "embedded://", Kinds: []string{"k"}, Capabilities: []string{""}},
		"redis://127.0.0.1:1 ": {URL: "redis://127.0.0.1:1 ", Kinds: []string{"k"}},
	} {
		if _, err := lease.Open(t.Context(), cfg); !errors.Is(err, flowfabric.ErrConfig) ||
			strings.HasPrefix(want, "Config") && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	e := newEnv(t)
	for _, n := range []int{0, 101} {
		if _, err := e.open(lease.Config{}).Claim(e.ctx, n); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("claim %d: %v", n, err)
		}
	}
}

// A claim whose caller goes away takes nothing with it but what it returned.
func TestClaimOfNobody(t *testing.T) {
	e := newEnv(t)
	a := e.open(lease.Config{TTL: time.Hour})
	const all = 20
	kept := 0
	for range all {
		ctx, cancel := context.WithCancel(e.ctx)
		var waiting conc.WaitGroup
		waiting.Go(func() {
			held, err := a.Claim(ctx, 5)
			if len(held) > 0 && err != nil {
				t.Errorf("%d executions beside %v", len(held), err)
			}
			for _, h := range held {
				kept++
				must.No(t, h.Complete(e.ctx, []byte("1")))
			}
		})
		e.submit()
		cancel()
		waiting.Wait()
	}
	b := e.open(lease.Config{})
	for ; kept < all; kept++ { // what went back is another session's at once, not after an hour
		h := e.one(b)
		if h.Fence.Attempt != 1 || h.Type == flowfabric.AttemptReclaim {
			t.Errorf("claimed %+v", h)
		}
		must.No(t, h.Complete(e.ctx, []byte("1")))
	}
}
