package waits_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// box is a mailbox in memory that records what the server would.
type box struct {
	opener
	queue []suspend.Message
	asked []engine.Receiving
	fail  error
}

func (o *opener) ReceiveMessages(context.Context, flowfabric.Fence, engine.Receiving) (engine.Receipt, bool, error) {
	return engine.Receipt{}, false, errors.New("no mailbox here")
}

func (o *opener) ExpectEvent(_ context.Context, x engine.Expectation) error {
	o.expected = append(o.expected, x)
	return o.lost
}

func (o *opener) CloseWaitpoint(_ context.Context, _ flowfabric.Fence, id flowfabric.UUID) (bool, error) {
	o.closes = append(o.closes, id)
	return false, o.lost
}

func (b *box) ReceiveMessages(_ context.Context, _ flowfabric.Fence, q engine.Receiving) (engine.Receipt, bool, error) {
	b.asked = append(b.asked, q)
	if b.fail != nil {
		return engine.Receipt{}, false, b.fail
	}
	var r engine.Receipt
	for len(b.queue) > 0 && len(r.Messages) < q.Limit {
		r.Messages, b.queue = append(r.Messages, b.queue[0]), b.queue[1:]
	}
	if len(r.Messages) == 0 {
		r.Why = q.Why
	}
	return r, len(r.Messages) > 0 || r.Why != "", nil
}

func (b *box) put(texts ...string) {
	for _, text := range texts {
		b.queue = append(b.queue, suspend.Message{Number: uint64(len(b.queue) + 1), Mailbox: "user", Encoding: "json",
			Payload: []byte(`"` + text + `"`)})
	}
}

func receive(t *testing.T, x task) (string, error) {
	t.Helper()
	return handler.Receive[string](t.Context(), x.Task, "user")
}

func TestReceiveTakesOneAfterTheOther(t *testing.T) {
	b := &box{}
	b.put("a", "b")
	x := newTask(t, tasks.Config{Waitpoints: b})
	for range 2 { // a second run under the same hold gets the same
		for _, want := range []string{"a", "b"} {
			if got, err := receive(t, x); got != want || err != nil {
				t.Fatalf("%q, %v, want %q", got, err, want)
			}
		}
		x.run.Begin()
	}
	if len(b.asked) != 2 || b.asked[0].Name != "user·1" || b.asked[1].Name != "user·2" || b.asked[1].Limit != 1 ||
		b.asked[1].Why != "" {
		t.Errorf("asked %+v", b.asked)
	}
	if unused := x.run.Unused(); !slices.Equal(unused, []string{"messages user·1", "messages user·2"}) {
		t.Errorf("unused: %q", unused)
	}
	_, _ = receive(t, x)
	if unused := x.run.Unused(); !slices.Equal(unused, []string{"messages user·2"}) {
		t.Errorf("unused after one: %q", unused)
	}
}

func TestReceiveWaits(t *testing.T) {
	b := &box{}
	x := newTask(t, tasks.Config{Waitpoints: b})
	_, err := receive(t, x)
	w, ok := errors.AsType[*waitwords.Wanted](err)
	if !ok || w.Name != "user·1" || w.Condition != "M\x1fuser" || len(w.Keys) != 0 || x.run.Wanted() != "user·1" {
		t.Fatalf("%v: %+v", err, w)
	}
	// A message that resumed it, and that somebody took: it waits again under the same name.
	x = newTask(t, tasks.Config{Waitpoints: b, Claim: &engine.Claim{Resume: answered(t, "user·1", "message")}})
	if _, err := receive(t, x); !handler.IsWait(err) {
		t.Errorf("%v", err)
	}
	if x.run.Unasked() != "" {
		t.Errorf("the answer %s was asked for", x.run.Unasked())
	}
	for cause, want := range map[string]error{"timeout": flowfabric.ErrWaitTimeout,
		"operator": flowfabric.ErrNoSignal} {
		b.queue = nil
		x = newTask(t, tasks.Config{Waitpoints: b, Claim: &engine.Claim{Resume: answered(t, "user·1", cause)}})
		for range 2 {
			if _, err := receive(t, x); !errors.Is(err, want) {
				t.Errorf("%s: %v", cause, err)
			}
			b.put("late") // comes too late for this receipt
			x.run.Begin()
		}
		if got := b.asked[len(b.asked)-1].Why; string(got) != cause {
			t.Errorf("recorded as %q, want %s", got, cause)
		}
		x = newTask(t, tasks.Config{Waitpoints: b, Claim: &engine.Claim{Resume: answered(t, "user·1", cause)}})
		if got, err := receive(t, x); got != "late" || err != nil {
			t.Errorf("%s, and a message is there: %q, %v", cause, got, err)
		}
	}
}

func TestDrain(t *testing.T) {
	b := &box{}
	x := newTask(t, tasks.Config{Waitpoints: b})
	for i, want := range []int{0, 2, 0} {
		if i == 1 {
			b.put("a", "b")
		}
		got, err := x.Drain(t.Context(), "user")
		if err != nil || len(got) != want {
			t.Errorf("%d: %d messages, %v", i, len(got), err)
		}
	}
	if q := b.asked[2]; q.Name != "user·3" || q.Limit != 100 || q.Why != "looked" || x.run.Wanted() != "" {
		t.Errorf("asked %+v", q)
	}
	x.run.Begin()
	b.put("c") // what was found empty stays empty
	if got, err := x.Drain(t.Context(), "user"); err != nil || len(got) != 0 || len(b.asked) != 3 {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// What earlier runs received comes with the claim.
func TestReceiptsOfEarlierRuns(t *testing.T) {
	message := "7\x1fuser\x1f1000\x1fann\x1fjson\x1f\"a:\x1f\""
	value := "\x1f26:" + message
	b := &box{}
	x := newTask(t, tasks.Config{Waitpoints: b,
		Claim: &engine.Claim{Steps: map[string][]byte{engine.StepReceipt + "user·1": []byte(value),
			engine.StepReceipt + "user·2": []byte("timeout"), engine.StepReceipt + "user·3": []byte("\x1f9:torn")}}})
	m, err := handler.Receive[suspend.Message](t.Context(), x.Task, "user")
	if err != nil || m.Number != 7 || m.By != "ann" || m.SentAt.UnixMilli() != 1000 ||
		string(m.Payload) != "\"a:\x1f\"" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := receive(t, x); !errors.Is(err, flowfabric.ErrWaitTimeout) {
		t.Errorf("%v", err)
	}
	if _, err := receive(t, x); !errors.Is(err, denied.Reply) {
		t.Errorf("torn: %v", err)
	}
	if len(b.asked) != 0 {
		t.Errorf("asked %+v", b.asked)
	}
}

func TestReceiptsAreRefused(t *testing.T) {
	b := &box{}
	x := newTask(t, tasks.Config{Waitpoints: b})
	_, err := handler.Step(t.Context(), x.Task, "charge", func(ctx context.Context) (string, error) {
		return handler.Receive[string](ctx, x.Task, "user")
	})
	if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "inside step charge") {
		t.Errorf("%v", err)
	}
	x = newTask(t, tasks.Config{Waitpoints: b})
	for _, name := range []string{"", strings.Repeat("x", 97), "é", "a\n"} {
		if _, err := x.Drain(t.Context(), name); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(flowfabric.ErrDraining)
	if _, err := x.Drain(ctx, "user"); !errors.Is(err, flowfabric.ErrDraining) {
		t.Errorf("%v", err)
	}
	x.run.End()
	if _, err := receive(t, x); !errors.Is(err, denied.TaskConsumed) {
		t.Errorf("%v", err)
	}
	var refused error
	b.fail = flowfabric.ErrLeaseLost
	x = newTask(t, tasks.Config{Waitpoints: b, Cancel: func(err error) { refused = err }})
	if _, err := receive(t, x); !errors.Is(err, flowfabric.ErrLeaseLost) || refused == nil {
		t.Errorf("%v, told %v", err, refused)
	}
	if len(b.asked) != 1 {
		t.Errorf("asked %d times", len(b.asked))
	}
}

// stuck stores no frames.
type stuck struct{ err error }

func (s stuck) Append(context.Context, stream.Frame) error { return nil }
func (s stuck) Flush(context.Context) error                { return s.err }
func (s stuck) LastAcknowledged() uint64                   { return 0 }

// Frames are stored before messages are taken, as before a step is recorded.
func TestFramesComeFirst(t *testing.T) {
	b, flushed := &box{}, errors.New("away")
	x := newTask(t, tasks.Config{Waitpoints: b, Frames: stuck{flushed}})
	if _, err := receive(t, x); !errors.Is(err, flushed) || len(b.asked) != 0 {
		t.Errorf("%v, asked %d times", err, len(b.asked))
	}
}

// Without a store nobody can send.
func TestReceiveAlone(t *testing.T) {
	x := newTask(t, tasks.Config{})
	if got, err := x.Drain(t.Context(), "user"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := receive(t, x); !handler.IsWait(err) {
		t.Errorf("%v", err)
	}
}
