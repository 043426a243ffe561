package admin_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// The actions of these tests.
var (
	runNow     = admin.BulkAction{RunNow: true}
	toSeven    = admin.BulkAction{Priority: new(7)}
	holdAll    = admin.BulkAction{Hold: true}
	unholdAll  = admin.BulkAction{Unhold: true}
	cancelEach = admin.BulkAction{Cancel: true}
	replayAll  = admin.BulkAction{Replay: &admin.Replay{}}
	purgeAll   = admin.BulkAction{Purge: new(time.Duration(0))}
)

// bulk is a bulk action that does not stop.
func bulk(ctx context.Context, t *testing.T, c *client.Client, f admin.Filter, action admin.BulkAction,
	o admin.BulkOptions) admin.BulkResult {
	t.Helper()
	got, err := admin.New(c).Bulk(ctx, f, action, o, flowfabric.Reason("test"))
	must.No(t, err)
	return got
}

func wantBulk(t *testing.T, what string, got admin.BulkResult, matched, done, skipped int) {
	t.Helper()
	if got.Matched != matched || got.Done != done || got.Skipped != skipped || got.Failed != 0 {
		t.Errorf("%s: %+v, want %d matched, %d done, %d skipped", what, got, matched, done, skipped)
	}
}

func TestABulkActionChangesAllThatMatchesAndResumes(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		submitMany(ctx, t, c, 30, flowfabric.Delay(time.Hour))
		submitMany(ctx, t, c, 5)
		wantBulk(t, "dry run", bulk(ctx, t, c, admin.Filter{}, runNow, admin.BulkOptions{DryRun: true}), 30,
			0, 0)

		pages := 0
		part := bulk(ctx, t, c, admin.Filter{}, runNow,
			admin.BulkOptions{Limit: 12, Progress: func(admin.BulkResult) { pages++ }})
		wantBulk(t, "limit", part, 12, 12, 0)
		if part.Cursor == "" || pages == 0 {
			t.Errorf("cursor %q, %d times progress", part.Cursor, pages)
		}
		if _, err := admin.New(c).Bulk(ctx, admin.Filter{}, cancelEach,
			admin.BulkOptions{Cursor: part.Cursor}); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("cursor of another action: %v", err)
		}
		wantBulk(t, "the rest",
			bulk(ctx, t, c, admin.Filter{}, runNow, admin.BulkOptions{Cursor: part.Cursor}), 18, 18, 0)
		wantBulk(t, "all again", bulk(ctx, t, c, admin.Filter{}, runNow, admin.BulkOptions{}), 0, 0, 0)

		wantBulk(t, "priority", bulk(ctx, t, c, admin.Filter{}, toSeven, admin.BulkOptions{}), 35, 35, 0)
		wantBulk(t, "priority again", bulk(ctx, t, c, admin.Filter{}, toSeven, admin.BulkOptions{}), 0, 0,
			0)
		wantBulk(t, "hold", bulk(ctx, t, c, admin.Filter{}, holdAll, admin.BulkOptions{Limit: 3}), 3, 3, 0)
		wantBulk(t, "unhold", bulk(ctx, t, c, admin.Filter{}, unholdAll, admin.BulkOptions{}), 3, 3, 0)
		wantBulk(t, "cancel", bulk(ctx, t, c, admin.Filter{}, cancelEach, admin.BulkOptions{}), 35, 35, 0)
		wantBulk(t, "replay of what failed",
			bulk(ctx, t, c, admin.Filter{}, replayAll, admin.BulkOptions{}), 0, 0, 0)
		cancelled := admin.Filter{States: []flowfabric.PublicState{flowfabric.Cancelled}}
		wantBulk(t, "replay",
			bulk(ctx, t, c, cancelled, replayAll, admin.BulkOptions{Limit: 10}), 10, 10, 0)
		wantBulk(t, "purge", bulk(ctx, t, c, admin.Filter{}, purgeAll, admin.BulkOptions{}), 25, 25, 0)
	})
}

func TestABulkActionSkipsWhatChangedAndStopsWithItsContext(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		finish(ctx, t, e, submit(ctx, t, c, "tides").ID(), "wet")
		wantBulk(t, "replay of a success", bulk(ctx, t, c, admin.Filter{States: []flowfabric.PublicState{admin.Ended}},
			replayAll,
			admin.BulkOptions{}), 1, 0, 1)

		submitMany(ctx, t, c, 1100)
		some, cancel := context.WithCancel(ctx)
		defer cancel()
		got, err := admin.New(c).Bulk(some, admin.Filter{}, cancelEach,
			admin.BulkOptions{Progress: func(admin.BulkResult) { cancel() }})
		if !errors.Is(err, context.Canceled) || got.Done != 1000 || got.Cursor == "" {
			t.Fatalf("%+v, %v", got, err)
		}
		wantBulk(t, "the rest",
			bulk(ctx, t, c, admin.Filter{}, cancelEach, admin.BulkOptions{Cursor: got.Cursor}), 100, 100, 0)
	})
}

// A bulk action over 300 executions, 100,000 with FLOWFABRIC_SOAK, that goes on from its cursor again and again
// changes each of them once. Every other call is cut short, if it has more than one page to do.
func TestALargeBulkActionGoesOnWhereItWasInterrupted(t *testing.T) {
	n := 300
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		n = 100_000
	}
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		for left := n; left > 0; left -= min(left, 5_000) {
			submitMany(ctx, t, c, min(left, 5_000))
		}
		matched, done, calls, cursor := 0, 0, 0, ""
		for ; ; calls++ {
			some, cancel := context.WithCancel(ctx)
			o := admin.BulkOptions{Cursor: cursor, Limit: n / 5}
			if calls%2 == 1 {
				o.Progress = func(admin.BulkResult) { cancel() }
			}
			r, err := admin.New(c).Bulk(some, admin.Filter{}, admin.BulkAction{Priority: new(3)}, o)
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			matched, done, cursor = matched+r.Matched, done+r.Done, r.Cursor
			if cursor == "" {
				break
			}
			if calls > n {
				t.Fatalf("%d calls, %d of %d done", calls, done, n)
			}
		}
		if matched != n || done != n {
			t.Errorf("%d matched and %d done of %d in %d calls", matched, done, n, calls+1)
		}
		count := 0
		for x, err := range admin.New(c).List(ctx, admin.Filter{}) {
			must.No(t, err)
			if count++; x.Priority != 3 {
				t.Fatalf("%s has priority %d", x.ID, x.Priority)
			}
		}
		if count != n {
			t.Errorf("%d are listed, want %d", count, n)
		}
		t.Logf("%d executions in %d calls", n, calls+1)
	})
}

func TestListsBetweenTwoTimes(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		yes := true
		_, err := admin.New(c).SetIndex(ctx, admin.IndexChange{All: &yes})
		must.No(t, err)
		x := submit(ctx, t, c, "tides")
		finish(ctx, t, e, x.ID(), "wet")
		s, err := x.Get(ctx)
		must.No(t, err)
		for _, w := range []struct {
			since, until time.Duration
			want         int
		}{{0, time.Millisecond, 1}, {-time.Hour, 0, 0}, {time.Millisecond, time.Hour, 0}} {
			ended := admin.Filter{Since: s.EndedAt.Add(w.since), Until: s.EndedAt.Add(w.until),
				States: []flowfabric.PublicState{flowfabric.Completed}}
			made := admin.Filter{Since: s.CreatedAt.Add(w.since), Until: s.CreatedAt.Add(w.until)}
			for what, f := range map[string]admin.Filter{"ended": ended, "made": made} {
				if page, err := admin.New(c).ListPage(ctx, f, "", 10); err != nil || len(page.Items) != w.want {
					t.Errorf("%s %s..%s: %d, %v", what, w.since, w.until, len(page.Items), err)
				}
			}
		}
		if _, err := admin.New(c).ListPage(ctx, admin.Filter{Since: s.EndedAt, Until: s.EndedAt}, "",
			10); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("an empty range: %v", err)
		}
	})
}

// Who looks for failures finds what timed out, and chooses by the message.
func TestABulkActionChoosesByTheMessageOfTheFailure(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		end := func(category, reason string, permanent bool) flowfabric.ExecutionID {
			x := submit(ctx, t, c, "tides", flowfabric.Retries(3))
			f := engine.Failure{Category: flowfabric.Category(category), Reason: reason, Permanent: permanent}
			if _, err := e.FailExecution(ctx, claim(ctx, t, e, x.ID()).Fence, f); err != nil {
				t.Fatal(err)
			}
			return x.ID()
		}
		full, busy := end("io", "the disk is FULL", true), end("io", "the mail server is busy", true)
		end("io", "the disk is full again", false) // is retried
		for text, want := range map[string][]flowfabric.ExecutionID{"disk is full": {full}, "busy": {busy},
			"the": {full, busy}, "nothing": nil} {
			page, err := admin.New(c).ListPage(ctx,
				admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed}, ErrorText: text}, "", 10)
			if err != nil || len(page.Items) != len(want) {
				t.Errorf("%s: %v, %v", text, page.Items, err)
			}
			for _, x := range page.Items {
				if !slices.Contains(want, x.ID) || !strings.Contains(strings.ToLower(x.Failure.Message), text) {
					t.Errorf("%s: %s %q", text, x.ID, x.Failure.Message)
				}
			}
		}
		page, err := admin.New(c).ListPage(ctx, admin.Filter{ErrorText: "full again"}, "", 10)
		if err != nil || len(page.Items) != 1 || page.Items[0].State.Public == flowfabric.Failed {
			t.Errorf("of one that is retried: %+v, %v", page.Items, err)
		}
		wantBulk(t, "replay by message", bulk(ctx, t, c,
			admin.Filter{ErrorText: "Disk is full", States: []flowfabric.PublicState{flowfabric.Failed}},
			replayAll, admin.BulkOptions{}), 1, 1, 0)
		slow := submit(ctx, t, c, "tides", flowfabric.Retries(0), flowfabric.Timeout(time.Millisecond))
		claim(ctx, t, e, slow.ID())
		for {
			if _, err := e.Tick(ctx, slow.ID().Partition(), "tests", false); err != nil {
				t.Fatal(err)
			}
			if s, err := slow.Get(ctx); err != nil || s.State.Terminal() {
				break
			}
		}
		wantBulk(t, "what timed out is a failure",
			bulk(ctx, t, c, admin.Filter{Categories: []flowfabric.Category{causes.Timeout}}, replayAll,
				admin.BulkOptions{}), 1, 1, 0)
		if _, err := admin.New(c).ListPage(ctx, admin.Filter{ErrorText: strings.Repeat("x", 1025)}, "",
			10); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("a long text: %v", err)
		}
	})
}

// The members of a flow are listed by its id, in any state, and nothing else.
func TestListsTheMembersOfAFlow(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		submitMany(ctx, t, c, 5)
		f := submitFlow(ctx, t, c, chain(7))
		seen := map[flowfabric.ExecutionID]flowfabric.PublicState{}
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, err := admin.New(c).ListPage(ctx, admin.Filter{Flow: f.ID()}, cursor, 3)
			must.No(t, err)
			for _, x := range page.Items {
				seen[x.ID] = x.State.Public
			}
			cursor = page.Cursor
		}
		if len(seen) != 7 {
			t.Errorf("%d members: %v", len(seen), seen)
		}
		for state, want := range map[flowfabric.PublicState]int{flowfabric.Waiting: 1, flowfabric.WaitingChildren: 6,
			flowfabric.Failed: 0} {
			page, err := admin.New(c).ListPage(ctx, admin.Filter{Flow: f.ID(), States: []flowfabric.PublicState{state}},
				"", 10)
			if err != nil || len(page.Items) != want {
				t.Errorf("%s: %d, %v", state, len(page.Items), err)
			}
		}
		for _, bad := range []admin.Filter{{Flow: flowfabric.FlowID(mint.ID(60000))},
			{Flow: f.ID(), HeldBy: "w1"}} {
			if _, err := admin.New(c).ListPage(ctx, bad, "", 10); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if page, err := admin.New(c).ListPage(ctx, admin.Filter{Flow: flowfabric.FlowID(mint.ID(0))},
			"", 10); err != nil || len(page.Items) > 0 {
			t.Errorf("nobody's flow: %v, %v", page.Items, err)
		}
	})
}
