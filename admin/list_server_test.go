package admin_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// submitMany creates n executions over all partitions.
func submitMany(ctx context.Context, t *testing.T, c *client.Client, n int,
	opts ...client.SubmitOption) (ids []flowfabric.ExecutionID) {
	t.Helper()
	inputs := make([]draft, n)
	all, err := client.SubmitMany(ctx, c, write, inputs, opts...)
	must.No(t, err)
	for _, x := range all {
		ids = append(ids, x.ID())
	}
	return ids
}

// pages reads all pages of a listing and calls between before each but the first.
func pages(ctx context.Context, t *testing.T, c *client.Client, f admin.Filter, limit int,
	between func(page int)) (all []admin.Listed, n int) {
	t.Helper()
	for cursor := ""; ; n++ {
		if n > 0 {
			between(n)
		}
		page, err := admin.New(c).ListPage(ctx, f, cursor, limit)
		must.No(t, err)
		if len(page.Items) > limit || n > 500 {
			t.Fatalf("page %d has %d, limit %d", n, len(page.Items), limit)
		}
		all = append(all, page.Items...)
		if cursor = page.Cursor; cursor == "" {
			return all, n + 1
		}
	}
}

// counts is how often each execution was listed.
func counts(listed []admin.Listed) map[flowfabric.ExecutionID]int {
	n := map[flowfabric.ExecutionID]int{}
	for _, x := range listed {
		n[x.ID]++
	}
	return n
}

func cancelAll(ctx context.Context, t *testing.T, c *client.Client, ids []flowfabric.ExecutionID) {
	t.Helper()
	for _, id := range ids {
		must.No(t, c.Execution(id).Cancel(ctx, flowfabric.Reason("test")))
	}
}

func TestListEverythingOnce(t *testing.T) { // a cursor over partitions
	ctx, c, e := openRedis(t)
	want := map[flowfabric.ExecutionID]flowfabric.PublicState{}
	put := func(state flowfabric.PublicState, ids []flowfabric.ExecutionID) {
		for _, id := range ids {
			want[id] = state
		}
	}
	put(flowfabric.Waiting, submitMany(ctx, t, c, 450, flowfabric.Tags(map[string]string{"team.name": "sea"})))
	put(flowfabric.Waiting, submitMany(ctx, t, c, 400, flowfabric.Lane("slow"), flowfabric.Priority(7)))
	put(flowfabric.Delayed, submitMany(ctx, t, c, 250, flowfabric.Delay(time.Hour)))
	ended := submitMany(ctx, t, c, 150, flowfabric.Lane("gone"))
	cancelAll(ctx, t, c, ended)
	put(flowfabric.Cancelled, ended)
	first := submit(ctx, t, c, "held", flowfabric.Lane("held"), flowfabric.Priority(limits.MaxPriority))
	claim(ctx, t, e, first.ID()) // and nine more of its partition
	held := 0
	for x, err := range admin.New(c).List(ctx, admin.Filter{Namespace: admin.AllNamespaces, HeldBy: "tester"}) {
		if err != nil || x.State.Public != flowfabric.Active || ids.Worker(x.Session) != "tester" {
			t.Fatalf("%+v, %v", x, err)
		}
		put(flowfabric.Active, []flowfabric.ExecutionID{x.ID})
		held++
	}
	if held != 10 {
		t.Errorf("%d are held, want 10", held)
	}
	submitMany(ctx, t, c, 20, flowfabric.Namespace("other"))

	for _, limit := range []int{97, 1000} {
		for _, newest := range []bool{false, true} {
			all, n := pages(ctx, t, c, admin.Filter{Newest: newest}, limit, func(int) {})
			if wantPages := (len(want) + limit - 1) / limit; n != wantPages {
				t.Errorf("limit %d: %d pages, want %d", limit, n, wantPages)
			}
			if len(all) != len(want) {
				t.Errorf("limit %d, newest %v: %d listed, want %d", limit, newest, len(all), len(want))
			}
			for _, x := range all {
				if x.State.Public != want[x.ID] || x.Drift != "" || x.Route.Namespace != "default" ||
					x.CreatedAt.IsZero() || x.Tags != nil {
					t.Fatalf("%+v, want %s", x, want[x.ID])
				}
			}
			if got := len(counts(all)); got != len(want) {
				t.Errorf("limit %d, newest %v: %d different ones, want %d", limit, newest, got, len(want))
			}
		}
	}
	for what, x := range map[string]struct {
		f admin.Filter
		n int
	}{
		"lane":          {admin.Filter{Lane: "slow"}, 400},
		"kind":          {admin.Filter{Kind: "none"}, 0},
		"tag":           {admin.Filter{Tags: map[string]string{"team.name": "sea"}}, 450},
		"other tag":     {admin.Filter{Tags: map[string]string{"team.name": "land"}}, 0},
		"state":         {admin.Filter{States: []flowfabric.PublicState{flowfabric.Delayed}}, 250},
		"ended":         {admin.Filter{States: []flowfabric.PublicState{admin.Ended}}, 150},
		"failed":        {admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed}}, 0},
		"two":           {admin.Filter{States: []flowfabric.PublicState{flowfabric.Cancelled, flowfabric.Active}}, 160},
		"held":          {admin.Filter{HeldBy: "tester"}, 10},
		"nobody":        {admin.Filter{HeldBy: "nobody"}, 0},
		"namespace":     {admin.Filter{Namespace: "other"}, 20},
		"all":           {admin.Filter{Namespace: admin.AllNamespaces}, len(want) + 20},
		"lane and kind": {admin.Filter{Lane: "gone", Kind: "write-article"}, 150},
	} {
		all, _ := pages(ctx, t, c, x.f, 300, func(int) {})
		if len(all) != x.n || len(counts(all)) != x.n {
			t.Errorf("%s: %d listed, %d different, want %d", what, len(all), len(counts(all)), x.n)
		}
		for _, l := range all {
			if len(x.f.Tags) > 0 && l.Tags["team.name"] != "sea" {
				t.Fatalf("%s: %+v", what, l)
			}
		}
	}
}

// What stays is listed exactly once, and what goes while pages are read stops nothing.
func TestListWhileThingsGo(t *testing.T) {
	ctx, c, _ := openRedis(t)
	stay := submitMany(ctx, t, c, 600)
	var goes []flowfabric.ExecutionID
	for range 6 {
		goes = append(goes, submitMany(ctx, t, c, 100)...)
	}
	waiting := admin.Filter{States: []flowfabric.PublicState{flowfabric.Waiting}}
	for _, newest := range []bool{false, true} {
		waiting.Newest = newest
		rest := goes
		all, _ := pages(ctx, t, c, waiting, 50, func(page int) {
			n := min(len(rest), 12)
			cancelAll(ctx, t, c, rest[:n])
			rest = rest[n:]
			if page%3 == 0 {
				submit(ctx, t, c, "came meanwhile")
			}
		})
		seen := counts(all)
		for _, id := range stay {
			if seen[id] != 1 {
				t.Fatalf("newest %v: %s was listed %d times", newest, id, seen[id])
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Fatalf("newest %v: %s was listed %d times", newest, id, n)
			}
		}
		goes = rest
	}
	// The entry that a cursor names is gone, every time, among many with the same score.
	last := flowfabric.ExecutionID{}
	cursor, seen := "", map[flowfabric.ExecutionID]bool{}
	for {
		page, err := admin.New(c).ListPage(ctx, admin.Filter{States: waiting.States}, cursor, 20)
		must.No(t, err)
		for _, x := range page.Items {
			if seen[x.ID] {
				t.Fatalf("%s was listed twice", x.ID)
			}
			seen[x.ID], last = true, x.ID
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
		cancelAll(ctx, t, c, []flowfabric.ExecutionID{last})
	}
	for _, id := range stay {
		if !seen[id] {
			t.Fatalf("%s was not listed", id)
		}
	}
}

func TestListNewestEndedOfTheWholeStore(t *testing.T) {
	ctx, c, _ := openRedis(t)
	ids := submitMany(ctx, t, c, 400) // over four partitions
	var ended []flowfabric.ExecutionID
	for i := range 100 { // one partition after the other
		for p := range 4 {
			ended = append(ended, ids[p*100+i])
		}
	}
	cancelAll(ctx, t, c, ended)
	all, _ := pages(ctx, t, c, admin.Filter{States: []flowfabric.PublicState{admin.Ended}, Newest: true}, 33,
		func(int) {})
	if len(counts(all)) != len(ended) ||
		!slices.IsSortedFunc(all, func(a, b admin.Listed) int { return b.EndedAt.Compare(a.EndedAt) }) {
		t.Errorf("%d of %d, or not the newest first", len(counts(all)), len(ended))
	}
	for _, x := range all {
		if x.PurgeAt.Sub(x.EndedAt) != 14*24*time.Hour || x.State.Public != flowfabric.Cancelled ||
			x.CancelledBy != "tests" || x.CancelSource != "operator_override" {
			t.Fatalf("%+v", x)
		}
	}
}

func TestListCursors(t *testing.T) {
	ctx, c, _ := openRedis(t)
	submitMany(ctx, t, c, 30)
	f := admin.Filter{States: []flowfabric.PublicState{flowfabric.Waiting, flowfabric.Active}}
	page, err := admin.New(c).ListPage(ctx, f, "", 10)
	if err != nil || page.Cursor == "" || len(page.Items) != 10 {
		t.Fatalf("%+v, %v", page, err)
	}
	reordered := admin.Filter{States: []flowfabric.PublicState{flowfabric.Active, flowfabric.Waiting},
		Namespace: "default", WithTags: true}
	if again, err := admin.New(c).ListPage(ctx, reordered, page.Cursor, 10); err != nil || len(again.Items) != 10 {
		t.Errorf("the same filter in other words: %+v, %v", again, err)
	}
	if again, err := admin.New(c).ListPage(ctx, f, page.Cursor, 0); err != nil || len(again.Items) != 20 ||
		again.Cursor != "" {
		t.Errorf("the default limit: %+v, %v", again, err)
	}
	_, other, _ := openRedis(t) // four partitions, too: nothing tells the stores apart
	if _, err := admin.New(other).ListPage(ctx, f, page.Cursor, 10); err != nil {
		t.Errorf("another store: %v", err)
	}
	damaged := []byte(page.Cursor)
	damaged[len(damaged)-3] ^= 1
	for what, cursor := range map[string]string{"garbage": "garbage", "another version": "ffl2" + page.Cursor[4:],
		"damaged": string(damaged), "cut": page.Cursor[:len(page.Cursor)-4],
		"long": page.Cursor + strings.Repeat("A", 1200), "no base64": "ffl3.{}", "empty": "ffl3."} {
		if _, err := admin.New(c).ListPage(ctx, f, cursor, 10); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), fmt.Sprintf("cursor %.40q", cursor)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, x := range map[string]admin.Filter{"newest": {States: f.States, Newest: true},
		"lane": {States: f.States, Lane: "slow"}, "tags": {States: f.States, Tags: map[string]string{"a.b": "c"}},
		"states": {}, "all": {States: f.States, Namespace: admin.AllNamespaces}} {
		if _, err := admin.New(c).ListPage(ctx, x, page.Cursor, 10); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), "another filter") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestListRefusals(t *testing.T) {
	ctx, c, _ := openRedis(t)
	for what, x := range map[string]struct {
		f     admin.Filter
		limit int
		says  string
	}{
		"limit":         {admin.Filter{}, 1001, "limit 1001, want 1..1000"},
		"negative":      {admin.Filter{}, -1, "limit -1"},
		"state":         {admin.Filter{States: []flowfabric.PublicState{"weird"}}, 1, `"weird"`},
		"no such state": {admin.Filter{States: []flowfabric.PublicState{"rate_limited"}}, 1, `"rate_limited"`},
		"namespace":     {admin.Filter{Namespace: "a{"}, 1, "Filter.Namespace"},
		"lane":          {admin.Filter{Lane: strings.Repeat("l", 65)}, 1, "Filter.Lane"},
		"kind":          {admin.Filter{Kind: "\x00"}, 1, "Filter.Kind"},
		"holder":        {admin.Filter{HeldBy: "w", States: []flowfabric.PublicState{admin.Ended}}, 1, "HeldBy"},
		"tag":           {admin.Filter{Tags: map[string]string{"A": "b"}}, 1, "A"},
	} {
		if _, err := admin.New(c).ListPage(ctx, x.f, "", x.limit); denied.ClassOf(err) != fault.Caller ||
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	n := 0
	submitMany(ctx, t, c, 5)
	for range admin.New(c).List(ctx, admin.Filter{}) {
		if n++; n == 2 {
			break
		}
	}
	c.Close()
	for _, err := range admin.New(c).List(ctx, admin.Filter{}) {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}

func TestListWhatDidNotSucceed(t *testing.T) { // by the time of the end, whatever is kept for how long
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		a := admin.New(c)
		var ended []flowfabric.ExecutionID
		var at []time.Time
		for i := range 20 {
			id := submit(ctx, t, c, "x", flowfabric.Retention(time.Duration(1+i%3)*time.Hour)).ID()
			cancelAll(ctx, t, c, []flowfabric.ExecutionID{id})
			s, err := c.Execution(id).Get(ctx)
			must.No(t, err)
			ended, at = append(ended, id), append(at, s.EndedAt)
			for time.Since(s.EndedAt) < 2*time.Millisecond {
				// the clock of a server of this machine: each end has its own time
				runtime.Gosched()
			}
		}
		stop := []flowfabric.PublicState{flowfabric.Failed, flowfabric.Cancelled}
		for what, x := range map[string]struct {
			f           admin.Filter
			first, last int
		}{
			"all":              {admin.Filter{}, 0, 20},
			"since":            {admin.Filter{Since: at[7]}, 7, 20},
			"just after":       {admin.Filter{Since: at[7].Add(time.Nanosecond)}, 8, 20},
			"until":            {admin.Filter{Until: at[12]}, 0, 12},
			"a nanosecond on":  {admin.Filter{Until: at[12].Add(time.Nanosecond)}, 0, 13},
			"both":             {admin.Filter{Since: at[3], Until: at[18]}, 3, 18},
			"all time":         {admin.Filter{Since: time.UnixMilli(-5), Until: time.UnixMilli(1 << 60)}, 0, 20},
			"before the first": {admin.Filter{Until: at[0]}, 0, 0},
			"after the last":   {admin.Filter{Since: at[19].Add(time.Hour)}, 0, 0},
		} {
			for _, newest := range []bool{false, true} {
				x.f.States, x.f.Newest = stop, newest
				want := slices.Clone(ended[x.first:x.last])
				if newest {
					slices.Reverse(want)
				}
				for _, limit := range []int{1, 3, 100} {
					all, _ := pages(ctx, t, c, x.f, limit, func(int) {})
					got := make([]flowfabric.ExecutionID, 0, len(all))
					for _, x := range all {
						got = append(got, x.ID)
						if x.PurgeAt.Before(x.EndedAt.Add(time.Hour)) || x.Drift != "" {
							t.Errorf("%s: %+v", what, x)
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s, newest %v, limit %d: %v, want %v", what, newest, limit, got, want)
					}
				}
			}
		}
		with, err := a.ListPage(ctx, admin.Filter{States: append(stop, flowfabric.Completed)}, "", 0)
		if err != nil || len(with.Items) != 20 ||
			!slices.IsSortedFunc(with.Items, func(a, b admin.Listed) int { return a.PurgeAt.Compare(b.PurgeAt) }) {
			t.Errorf("with completed ones: %d, %v, or not in the order of purges", len(with.Items), err)
		}
	})
}
