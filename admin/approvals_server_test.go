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
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// ask suspends an execution with a question to somebody; "" asks nothing. Only an operator ends it.
func ask(ctx context.Context, t *testing.T, e *engine.Engine, id flowfabric.ExecutionID, assignee string) {
	t.Helper()
	q := engine.Suspension{ID: mint.UUID(), Name: "it", Reason: "waiting_for_approval", Behaviour: "fail",
		Condition: "O"}
	if assignee != "" {
		q.Question = fmt.Sprintf(`{"title":"of %s","choices":[{"name":"a"},{"name":"b"}],"assignee":%q}`, assignee,
			assignee)
	}
	if _, err := e.SuspendExecution(ctx, claim(ctx, t, e, id).Fence, q); err != nil {
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
