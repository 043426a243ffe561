package admin

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestOperatorCallsCarryWhatWasAsked(t *testing.T) {
	f := newFake()
	a, id := f.admin(t), mint.ID(1)
	ctx, request := t.Context(), mint.UUID()
	tags := map[string]string{"team.name": "sea"}
	for _, step := range []struct {
		call func() error
		want any
	}{
		{func() error {
			return a.Replay(ctx, id, Replay{FromScratch: true, Force: true, Request: request}, flowfabric.By("anna"),
				flowfabric.Reason("fixed"))
		}, replayOf{engine.Replay{Request: request, DropSteps: true, Force: true}, "anna", "fixed"}},
		{func() error { return a.SetPriority(ctx, id, 0) }, repriority{0, ""}},
		{func() error { return a.SetPriority(ctx, id, 9000, flowfabric.By("anna")) }, repriority{9000, "anna"}},
		{func() error { return a.Revoke(ctx, id, "", flowfabric.Reason("stuck")) }, revoked{"", "", "stuck"}},
		{func() error {
			return a.Revoke(ctx, id, "w~1", flowfabric.Reason("stuck"), flowfabric.By("anna"))
		}, revoked{"w~1", "anna", "stuck"}},
		{func() error { return a.SetTags(ctx, id, tags, []string{"team.old", "team.older"}) },
			retag{tags, []string{"team.old", "team.older"}}},
		{func() error { return a.Hold(ctx, id, flowfabric.Reason("look")) }, "hold  look"},
		{func() error { return a.Unhold(ctx, id, flowfabric.By("anna")) }, "unhold anna"},
		{func() error { return a.Freeze(ctx, 3, flowfabric.By("anna"), flowfabric.Reason("move")) },
			"freeze 3 move anna"},
		{func() error { return a.Thaw(ctx, 3) }, "thaw 3"},
		{func() error { _, err := a.History(ctx, id); return err }, "history"},
		{func() error { return a.Purge(ctx, id, 0) }, 24 * time.Hour},
		{func() error { return a.Purge(ctx, id, limits.MaxTombstone) }, limits.MaxTombstone},
	} {
		f.asked = nil
		if err := step.call(); err != nil || len(f.asked) != 1 || !reflect.DeepEqual(f.asked[0], step.want) {
			t.Errorf("asked %+v, %v; want %+v", f.asked, err, step.want)
		}
	}
	a.conn.Creator, f.asked = "billing", nil
	for range 2 {
		must.No(t, a.Replay(ctx, id, Replay{}))
	}
	one, two := f.asked[0].(replayOf), f.asked[1].(replayOf)
	if one.Request.IsZero() || one.Request == two.Request || one.by != "billing" || one.DropSteps || one.Force {
		t.Errorf("%+v, then %+v; want a request of its own for each", one, two)
	}
}

func TestOperatorCallsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	a, id := f.admin(t), mint.ID(1)
	long := flowfabric.By(strings.Repeat("x", 65))
	for what, step := range map[string]struct {
		err  error
		says string
	}{
		"priority below":  {a.SetPriority(t.Context(), id, -1), "priority -1, want 0..9000"},
		"priority above":  {a.SetPriority(t.Context(), id, 9001), "priority 9001, want 0..9000"},
		"priority by":     {a.SetPriority(t.Context(), id, 1, long), "By has 65 bytes, want at most 64"},
		"replay by":       {a.Replay(t.Context(), id, Replay{}, long), "By has 65 bytes"},
		"revoke by":       {a.Revoke(t.Context(), id, "", long), "By has 65 bytes"},
		"tombstone below": {a.Purge(t.Context(), id, 24*time.Hour-1), "want 24h..10 years"},
		"tombstone above": {a.Purge(t.Context(), id, limits.MaxTombstone+1), "want 24h..10 years"},
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
	a, id := f.admin(t), mint.ID(1)
	verbs := map[string]func(context.Context) error{
		"replay":          func(ctx context.Context) error { return a.Replay(ctx, id, Replay{}) },
		"set priority of": func(ctx context.Context) error { return a.SetPriority(ctx, id, 1) },
		"revoke":          func(ctx context.Context) error { return a.Revoke(ctx, id, "") },
		"set tags of":     func(ctx context.Context) error { return a.SetTags(ctx, id, nil, nil) },
		"history of":      func(ctx context.Context) error { _, err := a.History(ctx, id); return err },
		"purge":           func(ctx context.Context) error { return a.Purge(ctx, id, 0) },
	}
	for verb, call := range verbs {
		for code, want := range map[string]error{
			"execution_not_found": flowfabric.ErrNotFound, "stale_lease": denied.StaleLease,
			"replay_not_allowed": denied.ReplayNotAllowed,
		} {
			f.refusal = denied.New("fake", code)
			if err := call(t.Context()); !errors.Is(err, want) ||
				!strings.HasPrefix(err.Error(), verb+" "+id.String()+": ") {
				t.Errorf("%s, %s: %v", verb, code, err)
			}
		}
		f.refusal = denied.New("fake", "execution_not_active", "T3n", "1", "0", "")
		err := call(t.Context())
		want := verb + " " + id.String() + ": " + flowfabric.ErrTerminal.Error() + ": it is cancelled"
		if !errors.Is(err, flowfabric.ErrTerminal) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		f.refusal = denied.New("fake", "execution_not_active", "R1f", "1", "0", "")
		if err := call(t.Context()); !errors.Is(err, denied.NotActive) || errors.Is(err, flowfabric.ErrTerminal) {
			t.Errorf("%s of one that waits: %v", verb, err)
		}
	}
}
