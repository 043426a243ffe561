package waits_test

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// subjectID stands for a subject of tasks without a namespace.
func subjectID(text string) string {
	_, id := ids.Subject(1, "", text)
	return id.String()
}

func TestExpectOpensAndRegistersOnce(t *testing.T) {
	o := &opener{}
	x := newTask(t, tasks.Config{Waitpoints: o})
	for range 2 {
		if err := x.Expect(t.Context(), "paid", "order.paid", map[string]any{"order": 7}); err != nil {
			t.Fatal(err)
		}
		x.run.Begin()
	}
	if len(o.asked) != 1 || len(o.expected) != 1 || o.asked[0].Event.Text != "order.paid" {
		t.Fatalf("opened %+v, registered %+v", o.asked, o.expected)
	}
	if e, m := o.expected[0], o.asked[0]; e.Text != "order.paid" || len(e.Terms) != 1 || e.Execution != x.id ||
		e.Waitpoint != m.ID || e.Digest != m.Digest {
		t.Errorf("registered %+v of %+v", e, m)
	}
	_, err := handler.Await[int](t.Context(), x.Task, "paid")
	w, _ := errors.AsType[*waitwords.Wanted](err)
	if q, err := x.run.Suspension(w); err != nil || len(q.Bindings) != 1 || !q.Bindings[0].Pending {
		t.Errorf("the wait does not use it: %+v, %v", q.Bindings, err)
	}
}

// The step of the waitpoint says whether the event has come, so a later run knows what is left to do.
func TestExpectInALaterRun(t *testing.T) {
	o := &opener{}
	first := newTask(t, tasks.Config{Waitpoints: o})
	if err := first.Expect(t.Context(), "paid", "order.paid", nil); err != nil {
		t.Fatal(err)
	}
	m := o.asked[0]
	later := func(behindKey string) (*opener, error) {
		o := &opener{}
		kept := strings.Join([]string{m.ID.String(), m.Kid, m.Nonce, "1000", "paid" + behindKey}, " ")
		x := newTask(t, tasks.Config{Waitpoints: o, Claim: &engine.Claim{
			Fence: flowfabric.Fence{Execution: first.id},
			Steps: map[string][]byte{engine.StepWaitpoint + "paid": []byte(kept)}}})
		return o, x.Expect(t.Context(), "paid", "order.paid", nil)
	}
	mark := "\x1e1" + subjectID("order.paid")
	if o, err := later(mark); err != nil || len(o.asked) != 0 || len(o.expected) != 1 ||
		o.expected[0].Digest != m.Digest {
		t.Errorf("it has not come: %v, opened %v, registered %v", err, o.asked, o.expected)
	}
	if o, err := later("\x1e0" + mark[2:]); err != nil || len(o.asked)+len(o.expected) != 0 {
		t.Errorf("it has come: %v, opened %v, registered %v", err, o.asked, o.expected)
	}
	for _, other := range []string{"", "\x1e1" + subjectID("order.sent")} {
		if o, err := later(other); !errors.Is(err, flowfabric.ErrInvalidInput) || len(o.expected) != 0 {
			t.Errorf("opened for something else (%q): %v", other, err)
		}
	}
}

func TestExpectIsRefused(t *testing.T) {
	o := &opener{}
	x := newTask(t, tasks.Config{Waitpoints: o})
	for what, subject := range map[string]string{"subject": "", "where": "s"} {
		err := x.Expect(t.Context(), "paid", subject, map[string]any{"a": []int{1}})
		if !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), what) || !strings.HasPrefix(err.Error(), "expect paid: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := x.Expect(t.Context(), "", "s", nil); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("no key: %v", err)
	}
	o.lost = denied.TooManyExpected
	if err := x.Expect(t.Context(), "paid", "s", nil); !errors.Is(err, flowfabric.ErrLimit) {
		t.Errorf("too many: %v", err)
	}
	if len(o.expected) != 1 {
		t.Errorf("%d calls", len(o.expected))
	}
	alone := newTask(t, tasks.Config{}) // nobody can publish
	if err := alone.Expect(t.Context(), "paid", "s", nil); err != nil {
		t.Errorf("alone: %v", err)
	}
	x.run.End()
	if err := x.Expect(t.Context(), "late", "s", nil); !errors.Is(err, denied.TaskConsumed) {
		t.Errorf("late: %v", err)
	}
}
