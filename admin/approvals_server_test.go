package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// ask suspends an execution with a question to somebody; "" asks nothing. Only an operator ends it.
func ask(ctx context.Context, t *testing.T, e *engine.Engine, id flowfabric.ExecutionID, assignee string) {
	t.Helper()
	askHeld(ctx, t, e, claim(ctx, t, e, id).Fence, assignee)
}

func askHeld(ctx context.Context, t *testing.T, e *engine.Engine, f flowfabric.Fence, assignee string) {
	t.Helper()
	q := engine.Suspension{ID: mint.UUID(), Name: "it", Reason: "waiting_for_approval", Behaviour: "fail",
		Condition: "O"}
	if assignee != "" {
		q.Question = fmt.Sprintf(`{"title":"of %s","choices":[{"name":"a"},{"name":"b"}],"assignee":%q}`, assignee,
			assignee)
	}
	if _, err := e.SuspendExecution(ctx, f, q); err != nil {
		t.Fatal(err)
	}
}

// Open waits come oldest first, in pages that join without a gap, whatever is filtered out.
func TestApprovalsOnAServer(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a := admin.New(c)
		var want []string
		for i := range 7 {
			x := submit(ctx, t, c, "tides")
			ask(ctx, t, e, x.ID(), []string{"ann", "bob", ""}[i%3])
			want = append(want, x.ID().String())
		}
		submit(ctx, t, c, "not asked")
		list := func(f admin.ApprovalFilter, limit int) (ids []string) {
			t.Helper()
			var since time.Time
			for cursor := ""; ; {
				page, err := a.Approvals(ctx, f, cursor, limit)
				must.No(t, err)
				for _, x := range page.Items {
					if x.Since.Before(since) || len(x.Waitpoints) > 0 || x.Reason != "waiting_for_approval" ||
						x.Name != "it" || f.Assignee != "" && x.Question.Title != "of "+f.Assignee {
						t.Errorf("%+v", x)
					}
					ids, since = append(ids, x.ID.String()), x.Since
				}
				if cursor = page.Cursor; cursor == "" {
					return ids
				}
			}
		}
		for limit := range 8 {
			if got := list(admin.ApprovalFilter{}, limit); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("pages of %d: %v, want %v", limit, got, want)
			}
			if got := list(admin.ApprovalFilter{Assignee: "ann"}, limit); strings.Join(got,
				" ") != strings.Join([]string{want[0], want[3], want[6]}, " ") {
				t.Errorf("pages of %d to ann: %v", limit, got)
			}
			if got := list(admin.ApprovalFilter{Asked: true}, limit); strings.Join(got,
				" ") != strings.Join([]string{want[0], want[1], want[3], want[4], want[6]}, " ") {
				t.Errorf("pages of %d with a question: %v", limit, got)
			}
		}
		if got := list(admin.ApprovalFilter{Kind: "other"}, 0); len(got) != 0 {
			t.Errorf("%v", got)
		}
		page, err := a.Approvals(ctx, admin.ApprovalFilter{}, "", 2)
		must.No(t, err)
		for _, bad := range []func() error{
			func() error {
				_, err := a.Approvals(ctx, admin.ApprovalFilter{Assignee: "ann"}, page.Cursor, 0)
				return err
			},
			func() error {
				_, err := a.Approvals(ctx, admin.ApprovalFilter{Asked: true}, page.Cursor, 0)
				return err
			},
			func() error { _, err := a.Approvals(ctx, admin.ApprovalFilter{}, "", 101); return err },
			func() error {
				_, err := a.Approvals(ctx, admin.ApprovalFilter{Assignee: strings.Repeat("x", 129)}, "", 0)
				return err
			},
		} {
			if err := bad(); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%v", err)
			}
		}
	})
}

// What is asked below an execution is listed by it, in pages, with the names of the children down to it.
func TestApprovalsBelowAnExecution(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a := admin.New(c)
		fences := map[flowfabric.ExecutionID]flowfabric.Fence{} // a claim brings others, too
		held := func(id flowfabric.ExecutionID) flowfabric.Fence {
			t.Helper()
			if _, has := fences[id]; !has {
				table, err := e.ClaimNext(ctx, engine.ClaimRequest{Partition: id.Partition(),
					Session: engine.NewSessionID("tester"), Number: 1, TTL: time.Hour, Max: 10})
				must.No(t, err)
				var routes []uint64
				for _, r := range table.Routes {
					routes = append(routes, r.ID)
				}
				digest, err := e.SetSubscription(ctx, id.Partition(), engine.Subscription{Classes: routes})
				must.No(t, err)
				reply, err := e.ClaimNext(ctx, engine.ClaimRequest{Partition: id.Partition(), Subscription: digest,
					Session: engine.NewSessionID("tester"), Number: 1, TTL: time.Hour, Max: 100, Table: table.Table})
				must.No(t, err)
				for _, x := range reply.Claims {
					fences[x.Fence.Execution] = x.Fence
				}
			}
			return fences[id]
		}
		makes := func(parent flowfabric.ExecutionID, names ...string) (ids []flowfabric.ExecutionID) {
			t.Helper()
			set := flow.Children("w")
			for _, name := range names {
				ids = append(ids, flow.Child(set, name, write, draft{}).ID(made(parent)))
			}
			q, err := set.Plan(flowplan.Parent{Execution: parent, Namespace: "default"}).Request()
			must.No(t, err)
			_, err = childtest.Wait(ctx, e, held(parent), q)
			must.No(t, err)
			return ids
		}
		list := func(f admin.ApprovalFilter, limit int) string {
			t.Helper()
			var all []string
			for cursor := ""; ; {
				page, err := a.Approvals(ctx, f, cursor, limit)
				must.No(t, err)
				for _, x := range page.Items {
					all = append(all, strings.Join(x.Path, " › "))
					if x.Root != f.Root {
						t.Errorf("%+v", x)
					}
				}
				if cursor = page.Cursor; cursor == "" {
					return strings.Join(all, ", ")
				}
			}
		}
		root, other := submit(ctx, t, c, "tides").ID(), submit(ctx, t, c, "waves").ID()
		alone := submit(ctx, t, c, "wind").ID()
		askHeld(ctx, t, e, held(alone), "ann")
		if got := list(admin.ApprovalFilter{Root: root}, 0); got != "" {
			t.Errorf("below one that waits for nothing: %s", got)
		}
		kids := makes(root, "a", "b", "c")
		below := makes(kids[1], "x", "y")
		for i, id := range append(kids[2:], below...) {
			askHeld(ctx, t, e, held(id), []string{"ann", "bob"}[i%2])
		}
		askHeld(ctx, t, e, held(makes(other, "z")[0]), "ann")
		for limit := range 4 {
			// the second child waits for its own
			if got, want := list(admin.ApprovalFilter{Root: root}, limit), "b, c, b › x, b › y"; got != want {
				t.Errorf("pages of %d: %s, want %s", limit, got, want)
			}
			if got, want := list(admin.ApprovalFilter{Root: root, Assignee: "ann"}, limit), "c, b › y"; got != want {
				t.Errorf("pages of %d to ann: %s, want %s", limit, got, want)
			}
		}
		why, err := a.Why(ctx, root)
		if err != nil || !strings.Contains(why.Sentence, `"b" is suspended`) {
			t.Errorf("%v, %v", why, err)
		}
		for want, err := range map[error]error{
			flowfabric.ErrNotFound: func() error {
				_, err := a.Approvals(ctx, admin.ApprovalFilter{Root: mint.ID(root.Partition())}, "", 0)
				return err
			}(),
			flowfabric.ErrInvalidInput: func() error {
				page, err := a.Approvals(ctx, admin.ApprovalFilter{Root: root}, "", 1)
				must.No(t, err)
				_, err = a.Approvals(ctx, admin.ApprovalFilter{Root: other}, page.Cursor, 1)
				return err
			}(),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	})
}

// made is an execution that makes children.
type made flowfabric.ExecutionID

func (m made) ID() flowfabric.ExecutionID { return flowfabric.ExecutionID(m) }
func (made) Continues() int               { return 0 }
