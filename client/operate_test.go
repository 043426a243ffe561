package client

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// The event of the end before a replay may come after the replay has returned: it must not answer who waits for the
// new end, neither while the replay waits nor while it runs.
func TestResultIsNotAnsweredByTheEndBeforeAReplay(t *testing.T) {
	for _, code := range []flowfabric.Code{codes.WaitingReplay, codes.Active} {
		waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
			state, _ := flowfabric.Project(code)
			attempts := map[flowfabric.Code]uint32{codes.WaitingReplay: 1, codes.Active: 2}[code]
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
		f.end(e.ID(), codes.Completed, "")
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
	submitted, err := Submit(t.Context(), c, echo, "tides", flowfabric.IdempotencyKey("tides-1"))
	if err != nil || submitted.ID() != x.ID() {
		t.Errorf("submitted %s, attached %s: %v", submitted.ID(), x.ID(), err)
	}
	elsewhere, err := Submit(t.Context(), c, echo, "tides", flowfabric.IdempotencyKey("tides-1"), flowfabric.Namespace("blue"))
	if err != nil || elsewhere.ID() == x.ID() || elsewhere.ID() != AttachKey(c, echo, "tides-1", flowfabric.Namespace("blue")).ID() {
		t.Errorf("in another namespace: %s, %v", elsewhere.ID(), err)
	}
	if raw, err := c.RawInput(t.Context(), x.ID()); string(raw) != `"tides"` || err != nil {
		t.Errorf("input %q, %v", raw, err)
	}
	for name, bad := range map[string]*Execution[string]{"no key": AttachKey(c, echo, ""), "a long key": AttachKey(c, echo, strings.Repeat("k", 257)),
		"a namespace": AttachKey(c, echo, "k", flowfabric.Namespace("{}")), "no definition": AttachKey[string, string](c, nil, "k")} {
		if _, err := bad.Get(t.Context()); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
