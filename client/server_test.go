package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestSubmitAndResult(t *testing.T) {
	ctx, c, e := open(t)
	x, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, flowfabric.Priority(5),
		flowfabric.Tags(map[string]string{"team.name": "sea"}))
	if err != nil || x.Duplicate() {
		t.Fatalf("%v", err)
	}
	s, err := x.Get(ctx)
	if err != nil || s.State.Public != flowfabric.Waiting || s.Priority != 5 || s.Creator != "tests" ||
		s.Tags["team.name"] != "sea" || s.Route.Kind != "write-article" {
		t.Errorf("%+v, %v", s, err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for range 3 { // waiters before the end, through the event
		wg.Go(func() {
			if v, err := client.Attach(c, write, x.ID()).Result(ctx); err != nil || v.Text != "wet" {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	held := claim(ctx, t, e, x.ID())
	if string(held.Input) != `{"Topic":"tides"}` {
		t.Errorf("input %s", held.Input)
	}
	if _, err := e.AppendFrames(ctx, held.Fence, 1,
		[]stream.Frame{{Type: "token", Payload: []byte("w")}, {Type: "token", Payload: []byte("et")}}); err != nil {
		t.Fatal(err)
	}
	settled, _, err := e.CompleteExecutions(ctx, x.ID().Partition(),
		[]engine.Completion{{Fence: held.Fence, Result: []byte(`{"Text":"wet"}`)}}, nil)
	if err != nil || settled[0].Err != nil {
		t.Fatalf("%v, %+v", err, settled)
	}
	if v, err := x.Result(ctx); err != nil || v.Text != "wet" { // a waiter after the end
		t.Errorf("%+v, %v", v, err)
	}
	var text, kinds strings.Builder
	for event, err := range x.Tail(ctx) {
		must.No(t, err)
		fmt.Fprint(&kinds, event.Kind, " ")
		if event.Kind == stream.TailFrame {
			text.Write(event.Frame.Payload)
		}
	}
	if text.String() != "wet" || !strings.HasSuffix(kinds.String(), "end ") {
		t.Errorf("tail %q: %s", text.String(), kinds.String())
	}
	if err := x.Cancel(ctx, flowfabric.Reason("too late")); !errors.Is(err, flowfabric.ErrTerminal) ||
		!strings.Contains(err.Error(), "completed") {
		t.Errorf("cancel of a completed execution: %v", err)
	}
}

func TestIdempotency(t *testing.T) {
	ctx, c, _ := open(t)
	first, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, flowfabric.IdempotencyKey("tides-1"))
	if err != nil || first.Duplicate() {
		t.Fatalf("%v", err)
	}
	again, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, flowfabric.IdempotencyKey("tides-1"))
	if err != nil || !again.Duplicate() || again.ID() != first.ID() {
		t.Errorf("%v: %v, want a duplicate of %s", again, err, first.ID())
	}
	if _, err := client.Submit(ctx, c, write, draft{Topic: "moons"},
		flowfabric.IdempotencyKey("tides-1")); !errors.Is(err, denied.Idempotency) {
		t.Errorf("%v, want ErrIdempotencyConflict", err)
	}
	blue, err := client.Submit(ctx, c, write, draft{Topic: "moons"}, flowfabric.IdempotencyKey("tides-1"),
		flowfabric.Namespace("blue"))
	if err != nil || blue.ID() == first.ID() {
		t.Errorf("the key of another namespace: %v", err)
	}
}

func TestFailureAndCancel(t *testing.T) {
	ctx, c, e := open(t)
	bad, err := client.Submit(ctx, c, write, draft{Topic: "tides"})
	must.No(t, err)
	if _, err := e.FailExecution(ctx, claim(ctx, t, e, bad.ID()).Fence,
		engine.Failure{Category: "handler_error", Reason: "no ink"}); err != nil {
		t.Fatal(err)
	}
	_, err = bad.Result(ctx)
	if o, ok := errors.AsType[*client.OutcomeError](err); !ok || !errors.Is(err, flowfabric.ErrFailed) ||
		o.Category != "handler_error" || o.Reason != "no ink" || o.Attempts != 1 {
		t.Errorf("%v", err)
	}
	stopped, err := client.Submit(ctx, c, write, draft{Topic: "moons"})
	must.No(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := stopped.Result(ctx)
		if o, ok := errors.AsType[*client.OutcomeError](err); !ok || !errors.Is(err, flowfabric.ErrCancelled) ||
			o.Reason != "changed my mind" || o.By != "anna" || o.Source != engine.CancelOperator {
			t.Errorf("%v", err)
		}
	})
	for range 2 { // twice is no error
		if err := stopped.Cancel(ctx, flowfabric.Reason("changed my mind"), flowfabric.By("anna")); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	nobody := mint.ID(1)
	if err := c.Execution(nobody).Cancel(ctx); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if _, err := c.Execution(mint.ID(4)).Get(ctx); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("an id of a partition that is not there: %v", err)
	}
}

func TestDelayAndDeadline(t *testing.T) {
	ctx, c, _ := open(t)
	x, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, flowfabric.Delay(time.Hour),
		flowfabric.Deadline(2*time.Hour))
	must.No(t, err)
	s, err := x.Get(ctx)
	if err != nil || s.State.Public != flowfabric.Delayed || s.DelayUntil.Sub(s.CreatedAt) != time.Hour ||
		s.DeadlineAt.Sub(s.CreatedAt) != 2*time.Hour {
		t.Errorf("%+v, %v", s, err)
	}
	// timed: nobody completes it, so that only its context ends the wait
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := x.Result(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the deadline of the wait", err)
	}
}

func TestSubmitManyOnAServer(t *testing.T) {
	ctx, c, _ := open(t)
	inputs := make([]draft, 250)
	for i := range inputs {
		inputs[i].Topic = fmt.Sprint(i)
	}
	got, err := client.SubmitMany(ctx, c, write, inputs)
	must.No(t, err)
	for _, i := range []int{0, 99, 100, 249} {
		if s, err := got[i].Get(ctx); err != nil || s.State.Public != flowfabric.Waiting {
			t.Errorf("input %d: %+v, %v", i, s, err)
		}
	}
	large := handler.Define[[]byte, []byte]("large") // a call of exactly the limit
	if _, err := client.Submit(ctx, c, large, make([]byte, limits.MaxPayload)); err != nil {
		t.Error(err)
	}
	if _, err := client.SubmitMany(ctx, c, large, [][]byte{make([]byte, 800<<10), make([]byte, 800<<10)}); err != nil {
		t.Error(err)
	}
}

func TestConcurrentSubmitsOnAServer(t *testing.T) {
	ctx, c, _ := open(t)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 20 {
				if _, err := client.Submit(ctx, c, write, draft{Topic: fmt.Sprint(g, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestEmbeddedURLIsShared(t *testing.T) {
	cfg := client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: "embedded://",
		Logger: slog.New(slog.DiscardHandler)}
	one, err := client.Connect(t.Context(), cfg)
	must.No(t, err)
	defer one.Close()
	two, err := client.Connect(t.Context(), cfg)
	must.No(t, err)
	defer two.Close()
	x, err := client.Submit(t.Context(), one, write, draft{Topic: "tides"})
	must.No(t, err)
	if _, err := two.Execution(x.ID()).Get(t.Context()); err != nil {
		t.Errorf("two clients of one process do not meet: %v", err)
	}
	two.Close()
	two.Close()
	if err := one.Ping(t.Context()); err != nil {
		t.Errorf("one client's Close stopped the other's server: %v", err)
	}
}

func TestProducerLinksNeitherFxNorZap(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip("no go command: ", err)
	}
	for dep := range strings.Lines(string(out)) {
		if strings.HasPrefix(dep, "go.uber.org/fx") || strings.HasPrefix(dep, "go.uber.org/zap") ||
			strings.HasPrefix(dep, "github.com/prometheus") {
			t.Errorf("a producer links %s", dep)
		}
	}
}

// Close ends a tail that is under way with the client's own error.
func TestCloseEndsTails(t *testing.T) {
	ctx, c, e := open(t)
	x, err := client.Submit(ctx, c, write, draft{Topic: "tides"})
	must.No(t, err)
	held := claim(ctx, t, e, x.ID())
	if _, err := e.AppendFrames(ctx, held.Fence, 1, []stream.Frame{{Type: "token", Payload: []byte("w")}}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	var last error
	for event, err := range x.Tail(ctx) {
		if last = err; err == nil && event.Kind == stream.TailFrame {
			wg.Go(c.Close)
		}
	}
	if want := "tail " + x.ID().String() + ": the client is closed"; !errors.Is(last, client.ErrClosed) ||
		last.Error() != want {
		t.Errorf("%v, want %s", last, want)
	}
}

// A deadline that has passed is no mistake of the submit: the execution expires.
func TestDeadlineInThePast(t *testing.T) {
	ctx, c, e := open(t)
	x, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, flowfabric.DeadlineAt(time.Now().Add(-time.Hour)))
	must.No(t, err)
	if _, err := e.Tick(ctx, x.ID().Partition(), engine.NewSessionID("tester"), false); err != nil {
		// as a worker would
		t.Fatal(err)
	}
	if _, err := x.Result(ctx); !errors.Is(err, flowfabric.ErrExpired) {
		t.Errorf("%v, want ErrExpired", err)
	}
}

// What was submitted can be read as long as the execution is there; an empty input is not a missing one.
func TestRawInput(t *testing.T) {
	ctx, c, _ := open(t)
	x, err := client.Submit(ctx, c, write, draft{Topic: "tides"})
	must.No(t, err)
	if raw, err := c.Execution(x.ID()).Input(ctx); string(raw) != `{"Topic":"tides"}` || err != nil {
		t.Errorf("input %q, %v", raw, err)
	}
	empty, err := client.Submit(ctx, c, handler.Define[[]byte, []byte]("raw"), nil)
	must.No(t, err)
	if raw, err := c.Execution(empty.ID()).Input(ctx); len(raw) != 0 || err != nil {
		t.Errorf("an empty input: %q, %v", raw, err)
	}
	must.No(t, errors.Join(c.Execution(x.ID()).Cancel(ctx, flowfabric.Reason("enough")),
		admin.New(c).Purge(ctx, x.ID(), 0)))
	for want, id := range map[error]flowfabric.ExecutionID{flowfabric.ErrResultPurged: x.ID(),
		flowfabric.ErrNotFound:     mint.ID(1),
		flowfabric.ErrInvalidInput: mint.ID(99)} {
		if _, err := c.Execution(id).Input(ctx); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
