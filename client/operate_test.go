package client

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

func TestOperatorCallsCarryWhatWasAsked(t *testing.T) {
	f := newFake()
	c := f.client(t)
	x := Attach(c, echo, flowfabric.NewExecutionID(1))
	ctx, request := t.Context(), uuid.New()
	tags := map[string]string{"team.name": "sea"}
	for _, step := range []struct {
		call func() error
		want any
	}{
		{func() error {
			return x.Replay(ctx, By("anna"), Reason("fixed"), FromScratch(), Force(), ReplayRequest(request))
		}, engine.Replay{Request: request, DropSteps: true, Force: true, By: "anna", Reason: "fixed"}},
		{func() error { return x.ChangePriority(ctx, 0) }, repriority{0, "client"}},
		{func() error { return x.ChangePriority(ctx, 9000, By("anna")) }, repriority{9000, "anna"}},
		{func() error { return x.Revoke(ctx, "stuck") }, revoked{"", "client", "stuck"}},
		{func() error { return x.Revoke(ctx, "stuck", By("anna"), HeldBy("w~1")) }, revoked{"w~1", "anna", "stuck"}},
		{func() error { return x.SetTags(ctx, tags, "team.old", "team.older") }, retag{tags, []string{"team.old", "team.older"}}},
		{func() error { _, err := x.History(ctx); return err }, "history"},
		{func() error { return x.Purge(ctx) }, 24 * time.Hour},
		{func() error { return x.Purge(ctx, Tombstone(MaxTombstone)) }, MaxTombstone},
	} {
		f.asked = nil
		if err := step.call(); err != nil || len(f.asked) != 1 || !reflect.DeepEqual(f.asked[0], step.want) {
			t.Errorf("asked %+v, %v; want %+v", f.asked, err, step.want)
		}
	}
	c.cfg.Creator, f.asked = "billing", nil
	for range 2 {
		if err := x.Replay(ctx); err != nil {
			t.Fatal(err)
		}
	}
	one, two := f.asked[0].(engine.Replay), f.asked[1].(engine.Replay)
	if one.Request == uuid.Nil || one.Request == two.Request || one.By != "billing" || one.DropSteps || one.Force {
		t.Errorf("%+v, then %+v; want a request of its own for each", one, two)
	}
}

func TestOperatorCallsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	x := Attach(f.client(t), echo, flowfabric.NewExecutionID(1))
	long := By(strings.Repeat("x", 65))
	for what, step := range map[string]struct {
		err  error
		says string
	}{
		"priority below":  {x.ChangePriority(t.Context(), -1), "priority -1, want 0..9000"},
		"priority above":  {x.ChangePriority(t.Context(), 9001), "priority 9001, want 0..9000"},
		"priority by":     {x.ChangePriority(t.Context(), 1, long), "By has 65 bytes, want at most 64"},
		"replay by":       {x.Replay(t.Context(), long), "By has 65 bytes"},
		"revoke by":       {x.Revoke(t.Context(), "", long), "By has 65 bytes"},
		"tombstone below": {x.Purge(t.Context(), Tombstone(24*time.Hour-1)), "want 24h..10 years"},
		"tombstone above": {x.Purge(t.Context(), Tombstone(MaxTombstone+1)), "want 24h..10 years"},
	} {
		if !errors.Is(step.err, flowfabric.ErrInvalidInput) || !strings.Contains(step.err.Error(), step.says) {
			t.Errorf("%s: %v, want %q", what, step.err, step.says)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the server was asked %+v", f.asked)
	}
}

// What the server refuses keeps its sentinel; only a change of what has ended is told in its own words.
func TestOperatorErrors(t *testing.T) {
	f := newFake()
	x := Attach(f.client(t), echo, flowfabric.NewExecutionID(1))
	verbs := map[string]func(context.Context) error{
		"replay":             func(ctx context.Context) error { return x.Replay(ctx) },
		"change priority of": func(ctx context.Context) error { return x.ChangePriority(ctx, 1) },
		"revoke":             func(ctx context.Context) error { return x.Revoke(ctx, "") },
		"set tags of":        func(ctx context.Context) error { return x.SetTags(ctx, nil) },
		"history of":         func(ctx context.Context) error { _, err := x.History(ctx); return err },
		"purge":              func(ctx context.Context) error { return x.Purge(ctx) },
	}
	for verb, call := range verbs {
		for code, want := range map[string]error{
			"execution_not_found": flowfabric.ErrNotFound, "stale_lease": flowfabric.ErrStaleLease, "replay_not_allowed": flowfabric.ErrReplayNotAllowed,
		} {
			f.refusal = flowfabric.NewError("fake", code)
			if err := call(t.Context()); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), verb+" "+x.ID().String()+": ") {
				t.Errorf("%s, %s: %v", verb, code, err)
			}
		}
		f.refusal = flowfabric.NewError("fake", "execution_not_active", "T3n", "1", "0", "")
		err := call(t.Context())
		want := verb + " " + x.ID().String() + ": " + flowfabric.ErrTerminal.Error() + ": it is cancelled"
		if !errors.Is(err, flowfabric.ErrTerminal) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		f.refusal = flowfabric.NewError("fake", "execution_not_active", "R1f", "1", "0", "")
		if err := call(t.Context()); !errors.Is(err, flowfabric.ErrNotActive) || errors.Is(err, flowfabric.ErrTerminal) {
			t.Errorf("%s of one that waits: %v", verb, err)
		}
	}
}

// The event of the end before a replay may come after the replay has returned: it must not answer who waits for the
// new end, neither while the replay waits nor while it runs.
func TestResultIsNotAnsweredByTheEndBeforeAReplay(t *testing.T) {
	for _, code := range []flowfabric.Code{flowfabric.CodeWaitingReplay, flowfabric.CodeActive} {
		waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
			state, _ := flowfabric.Project(code)
			attempts := map[flowfabric.Code]uint32{flowfabric.CodeWaitingReplay: 1, flowfabric.CodeActive: 2}[code]
			f.ended[e.ID()] = engine.Snapshot{ID: e.ID(), State: state, Attempts: attempts}
			f.attempt(e.ID(), 0, `"old"`)
			var wg sync.WaitGroup
			w := result(&wg, t.Context(), e)
			f.publish(e.ID(), "T1 0")
			synctest.Wait()
			if w.done {
				t.Fatalf("%s: answered %q, %v", code, w.value, w.err)
			}
			f.attempt(e.ID(), 1, `"new"`)
			f.publish(e.ID(), "T1 1")
			wg.Wait()
			if w.value != "new" || w.err != nil || w.took != 0 {
				t.Errorf("%s: %+v", code, w)
			}
		})
	}
}

// A result that is gone when it is read is an empty one only if the execution is still there.
func TestResultPurgedBetweenTwoReads(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, c *Client, e *Execution[string]) {
		f.end(e.ID(), flowfabric.CodeCompleted, "")
		f.readErr = func() error {
			if f.reads == 2 {
				return flowfabric.NewError("fake", "result_purged", "T1")
			}
			return nil
		}
		if b, err := c.RawResult(t.Context(), e.ID()); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A key names an execution before and after it was submitted, in its namespace.
func TestAttachKey(t *testing.T) {
	f := newFake()
	c := f.client(t)
	x := AttachKey(c, echo, "tides-1")
	if _, err := x.Get(t.Context()); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("before the submit: %v", err)
	}
	submitted, err := Submit(t.Context(), c, echo, "tides", IdempotencyKey("tides-1"))
	if err != nil || submitted.ID() != x.ID() {
		t.Errorf("submitted %s, attached %s: %v", submitted.ID(), x.ID(), err)
	}
	elsewhere, err := Submit(t.Context(), c, echo, "tides", IdempotencyKey("tides-1"), Namespace("blue"))
	if err != nil || elsewhere.ID() == x.ID() || elsewhere.ID() != AttachKey(c, echo, "tides-1", Namespace("blue")).ID() {
		t.Errorf("in another namespace: %s, %v", elsewhere.ID(), err)
	}
	if raw, err := c.RawInput(t.Context(), x.ID()); string(raw) != `"tides"` || err != nil {
		t.Errorf("input %q, %v", raw, err)
	}
	for name, bad := range map[string]*Execution[string]{"no key": AttachKey(c, echo, ""), "a long key": AttachKey(c, echo, strings.Repeat("k", 257)),
		"a namespace": AttachKey(c, echo, "k", Namespace("{}")), "no definition": AttachKey[string, string](c, nil, "k")} {
		if _, err := bad.Get(t.Context()); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
