package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

func TestReplayFlow(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		fl := submitFlow(ctx, t, c, chain(200)) // more than a call takes, and than a call skips
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.Fail(h.Claim()["n000"])
		done, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"n000"}})
		if err != nil || done.Blocked != 199 || done.Runnable != 1 || len(done.Refused) != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		again, err := admin.New(c).ReplayFlow(ctx, fl.ID(),
			admin.FlowReplay{Nodes: []string{"n000"}, Replay: admin.Replay{Request: done.Request}})
		if err != nil || again.Already != 1 || again.Runnable != 1 || again.Blocked != 0 {
			t.Errorf("%+v, %v", again, err)
		}
		another, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"n000"}})
		if err != nil || len(another.Refused) != 1 || another.Refused[0].Node != "n000" ||
			!errors.Is(another.Refused[0], denied.NotTerminal) {
			t.Errorf("%+v, %v", another, err)
		}
		h.Complete("x", h.Claim()["n000"])
		if got := h.Claim(); len(got) != 1 ||
			got["n001"].Type != flowfabric.AttemptReplay && got["n001"].Type != flowfabric.AttemptInitial {
			t.Errorf("%+v", got)
		}
		if _, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"nobody"}}); !errors.Is(err,
			denied.NotInFlow) {
			t.Errorf("%v", err)
		}
	})
}

// One of two branches is replayed: the other stays as it is, and so does what succeeded.
func TestReplayFromANode(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("branches")
		a, b := flow.Add(f, "a", write, draft{Topic: "a"}), flow.Add(f, "b", write, draft{Topic: "b"})
		flow.Add(f, "a1", write, draft{Topic: "x"}, flow.After(a))
		flow.Add(f, "b1", write, draft{Topic: "x"}, flow.After(b))
		flow.Add(f, "ok", write, draft{Topic: "x"})
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		first := h.Claim()
		h.Fail(first["a"])
		h.Fail(first["b"])
		h.Complete("x", first["ok"])
		done, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"a"}})
		if err != nil || done.Blocked != 1 || done.Runnable != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		if s := snapshot(ctx, t,
			fl); states(s) != "completed:[ok] failed:[b] skipped:[b1] waiting:[a] waiting_children:[a1]" {
			t.Error(states(s))
		}
		done, err = admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"ok"}})
		if err != nil || len(done.Refused) != 1 || !errors.Is(done.Refused[0], denied.ReplayNotAllowed) {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err = admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"ok"},
			Replay: admin.Replay{Force: true, FromScratch: true}}); err != nil || done.Runnable != 1 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// A member that was skipped has a category of failure and was never attempted: it is listed, without a message.
func TestSkippedMembersAreListed(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		fl := submitFlow(ctx, t, c, chain(2))
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.Fail(h.Claim()["n000"])
		page, err := admin.New(c).ListPage(ctx, admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed,
			flowfabric.Skipped}, WithReasons: true}, "", 10)
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%+v, %v", page.Items, err)
		}
		for _, x := range page.Items {
			if x.State.Public == flowfabric.Skipped &&
				(x.Failure.Category == "" || x.Failure.Message != "" || x.Attempts != 0) {
				t.Errorf("%+v", x)
			}
		}
	})
}

// The losers of a race are not run again unless somebody asks for everything.
func TestReplayLeavesWhatNobodyNeeds(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("race")
		a, b := flow.Add(f, "a", write, draft{Topic: "a"}), flow.Add(f, "b", write, draft{Topic: "b"})
		flow.Add(f, "join", write, draft{Topic: "x"}, flow.After(a, b), flow.AnyOf(), flow.CancelRemaining())
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.Complete("x", h.Claim()["a"])
		h.Fail(h.Claim()["join"])
		s, err := fl.Wait(ctx)
		if err != nil || states(s) != "cancelled:[b] completed:[a] failed:[join]" || s.Siblings.Cancelled != 1 {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		done, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{})
		if err != nil || done.Runnable != 1 || done.Unneeded != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err = admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Everything: true}); err != nil ||
			done.Runnable != 1 || done.Unneeded != 0 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// Cleanup runs again after the work that is replayed, and what is for failures only if something fails again.
func TestReplayRunsCleanupAgain(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("cleaned")
		a := flow.Add(f, "a", write, draft{Topic: "a"})
		b := flow.Add(f, "b", write, draft{Topic: "b"}, flow.After(a))
		ok := flow.Add(f, "ok", write, draft{Topic: "ok"})
		clean := flow.Add(f, "clean", write, draft{Topic: "c"}, flow.After(a, b), flow.AllEnded())
		flow.Add(f, "undo", write, draft{Topic: "u"}, flow.After(b), flow.AnyFailed())
		flow.Add(f, "last", write, draft{Topic: "l"}, flow.After(clean), flow.AllEnded())
		flow.Add(f, "calm", write, draft{Topic: "n"}, flow.After(ok), flow.AnyFailed())
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		first := h.Claim()
		h.Complete("x", first["ok"])
		h.Fail(first["a"])
		second := h.Claim()
		h.Complete("x", second["clean"])
		h.Complete("x", second["undo"])
		h.Complete("x", h.Claim()["last"])
		s, err := fl.Wait(ctx)
		if err != nil || s.State != flowfabric.FlowFailed ||
			states(s) != "completed:[ok clean undo last] failed:[a] skipped:[b calm]" {
			t.Fatalf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		done, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{})
		if err != nil || done.Runnable != 1 || done.Blocked != 4 || len(done.Refused) != 0 || done.Unneeded != 0 {
			t.Errorf("%+v, %v", done, err)
		}
		h.Complete("x", h.Claim()["a"])
		h.Complete("x", h.Claim()["b"])
		h.Complete("x", h.Claim()["clean"])
		h.Complete("x", h.Claim()["last"])
		if s, err = fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted ||
			states(s) != "completed:[a b ok clean last] skipped:[undo calm]" {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		if done, err = admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{Nodes: []string{"clean"}}); err != nil ||
			len(done.Refused) != 1 {
			t.Errorf("a success that was named: %+v, %v", done, err)
		}
	})
}

// Behind a node for failures that a replay skips, what failed is skipped, and what succeeded stays and is named.
func TestReplayBehindWhatIsForFailures(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("undone")
		a := flow.Add(f, "a", write, draft{Topic: "a"})
		undo := flow.Add(f, "undo", write, draft{Topic: "u"}, flow.After(a), flow.AnyFailed())
		tell := flow.Add(f, "tell", write, draft{Topic: "t"}, flow.After(undo))
		flow.Add(f, "page", write, draft{Topic: "p"}, flow.After(tell), flow.AnyFailed())
		flow.Add(f, "log", write, draft{Topic: "l"}, flow.After(undo))
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.Fail(h.Claim()["a"])
		h.Complete("x", h.Claim()["undo"])
		third := h.Claim()
		h.Complete("x", third["log"])
		h.Fail(third["tell"])
		h.Complete("x", h.Claim()["page"])
		s, err := fl.Wait(ctx)
		if err != nil || states(s) != "completed:[undo page log] failed:[a tell]" {
			t.Fatalf("%s, %v", states(s), err)
		}
		done, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{})
		if err != nil || done.Runnable != 1 || done.Blocked != 3 || len(done.Refused) != 0 ||
			!slices.Equal(done.Kept, []string{"log"}) {
			t.Fatalf("%+v, %v", done, err)
		}
		h.Complete("x", h.Claim()["a"])
		if s, err = fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted ||
			states(s) != "completed:[a log] skipped:[undo tell page]" {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
	})
}

func TestListFlows(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		var ids []flowfabric.FlowID
		for i := range 25 {
			kind := "even"
			if i%2 == 1 {
				kind = "odd"
			}
			f := flow.New(kind)
			flow.Add(f, "a", write, draft{Topic: "x"})
			ids = append(ids, submitFlow(ctx, t, c, f).ID())
		}
		f, _ := diamond("elsewhere")
		other := submitFlow(ctx, t, c, f, flowfabric.Namespace("other"))
		for _, id := range ids[:5] {
			if _, err := c.Flow(id).Cancel(ctx, flowfabric.CancelAll); err != nil {
				t.Fatal(err)
			}
		}
		list := func(q admin.FlowQuery, limit int) (out []flowfabric.FlowID) {
			t.Helper()
			for cursor := ""; ; {
				page, err := admin.New(c).FlowsPage(ctx, q, cursor, limit)
				if err != nil || len(page.Items) > limit {
					t.Fatalf("%d, %v", len(page.Items), err)
				}
				for _, x := range page.Items {
					out = append(out, x.ID)
				}
				if cursor = page.Cursor; cursor == "" {
					return out
				}
			}
		}
		sorted := func(all []flowfabric.FlowID) (names []string) {
			for _, id := range all {
				names = append(names, id.String())
			}
			slices.Sort(names)
			return names
		}
		for _, limit := range []int{1, 7, 100} {
			if got := list(admin.FlowQuery{}, limit); !slices.Equal(sorted(got), sorted(ids)) {
				t.Errorf("limit %d: %d flows", limit, len(got))
			}
		}
		var last time.Time
		for x, err := range admin.New(c).Flows(ctx, admin.FlowQuery{Namespace: admin.AllNamespaces}) {
			if err != nil || !last.IsZero() && x.CreatedAt.After(last) {
				t.Fatalf("%v after %v, %v", x.CreatedAt, last, err)
			}
			last = x.CreatedAt
		}
		if got := list(admin.FlowQuery{Oldest: true, Namespace: admin.AllNamespaces}, 10); len(got) != 26 {
			t.Errorf("%d flows", len(got))
		}
		for what, q := range map[string]struct {
			q admin.FlowQuery
			n int
		}{
			"kind":      {admin.FlowQuery{Kind: "odd"}, 12},
			"cancelled": {admin.FlowQuery{States: []flowfabric.FlowState{flowfabric.FlowCancelled}}, 5},
			"both": {admin.FlowQuery{Kind: "odd",
				States: []flowfabric.FlowState{flowfabric.FlowOpen, flowfabric.FlowStaging}}, 10},
			"other": {admin.FlowQuery{Namespace: "other"}, 1}, "nothing": {admin.FlowQuery{Kind: "none"}, 0},
		} {
			if got := list(q.q, 3); len(got) != q.n {
				t.Errorf("%s: %d flows, want %d", what, len(got), q.n)
			}
		}
		if got := list(admin.FlowQuery{Namespace: "other"}, 3); got[0] != other.ID() {
			t.Error(got)
		}
		page, err := admin.New(c).FlowsPage(ctx, admin.FlowQuery{}, "", 2)
		if err != nil || page.Cursor == "" {
			t.Fatal(err)
		}
		for what, bad := range map[string]func() error{
			"another query": func() error {
				_, err := admin.New(c).FlowsPage(ctx, admin.FlowQuery{Kind: "odd"}, page.Cursor, 2)
				return err
			},
			"no cursor": func() error { _, err := admin.New(c).FlowsPage(ctx, admin.FlowQuery{}, "x", 2); return err },
			"limit": func() error {
				_,
					err := admin.New(c).FlowsPage(ctx, admin.FlowQuery{}, "", 1001)
				return err
			},
			"state": func() error {
				_, err := admin.New(c).FlowsPage(ctx, admin.FlowQuery{States: []flowfabric.FlowState{"gone"}}, "", 1)
				return err
			},
		} {
			if err := bad(); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
