package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// next takes one event out of a running subscription.
func next(t *testing.T, ctx context.Context, s *admin.Subscription) (event flowfabric.FeedEvent) {
	t.Helper()
	for e, err := range s.Events(ctx) {
		must.No(t, err)
		return e
	}
	t.Fatal("the events ended")
	return event
}

// collect consumes n events, in whatever order partitions are found.
func collect(t *testing.T, ctx context.Context, s *admin.Subscription, n int) map[flowfabric.ExecutionID]int {
	t.Helper()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	enough := errors.New("enough")
	got, count := map[flowfabric.ExecutionID]int{}, 0
	for e, err := range s.Events(ctx) {
		if errors.Is(err, enough) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[e.Execution]++
		if count++; count == n { // ending by the context, not by break: the last event counts as consumed
			stop(enough)
		}
	}
	return got
}

// cancelled submits and cancels n executions, which spreads them over the partitions.
func cancelled(t *testing.T, ctx context.Context, c *client.Client, n int) (ids []flowfabric.ExecutionID) {
	t.Helper()
	for i := range n {
		x, err := client.Submit(ctx, c, write, draft{Topic: fmt.Sprint(i)})
		if err == nil {
			err = x.Cancel(ctx)
		}
		must.No(t, err)
		ids = append(ids, x.ID())
	}
	return ids
}

// Events of all partitions arrive at one who subscribed from now, and only those after it.
func TestSubscribeFromNow(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		earlier, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		old := cancelled(t, ctx, c, 8)
		s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		ids := cancelled(t, ctx, c, 8)
		got := collect(t, ctx, s, 8)
		for _, id := range ids {
			if got[id] != 1 {
				t.Errorf("%s came %d times", id, got[id])
			}
		}
		for _, id := range old {
			if got[id] > 0 {
				t.Errorf("%s was before the subscription", id)
			}
		}
		if got := collect(t, ctx, earlier, 16); len(got) != 16 {
			t.Errorf("who subscribed before got %d", len(got))
		}
		all, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{Oldest: true})
		must.No(t, err)
		if got := collect(t, ctx, all, 16); len(got) != 16 {
			t.Errorf("the oldest first: %d", len(got))
		}
	})
}

// A subscriber that was away goes on from its stored cursor and misses nothing.
func TestSubscribeGoesOn(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		first := cancelled(t, ctx, c, 3)
		collect(t, ctx, s, 3)
		cursor := s.Cursor()
		missed := cancelled(t, ctx, c, 20)
		if s, err = admin.New(c).Subscribe(ctx, admin.SubscribeOptions{From: cursor}); err != nil {
			t.Fatal(err)
		}
		got := collect(t, ctx, s, 20)
		for _, id := range missed {
			if got[id] != 1 {
				t.Errorf("%s came %d times", id, got[id])
			}
		}
		if got[first[0]]+got[first[1]]+got[first[2]] > 0 {
			t.Error("what was consumed came again")
		}
		if s.Cursor() == cursor {
			t.Error("the cursor stands still")
		}
	})
}

// Who asked for one kind of events gets no other, whatever others follow.
func TestSubscribeKinds(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		ends, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		leases, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{Leases: true})
		must.No(t, err)
		x, err := client.Submit(ctx, c, write, draft{Topic: "kinds"})
		must.No(t, err)
		claim(ctx, t, e, x.ID())
		must.No(t, x.Cancel(ctx))
		if got := next(t, ctx, leases); got.Kind != "lease" || got.State != flowfabric.Active ||
			got.Execution != x.ID() {
			t.Errorf("who follows leases got %+v", got)
		}
		if got := next(t, ctx, ends); got.Kind != "end" || got.Execution != x.ID() {
			t.Errorf("who follows ends got %+v", got)
		}
	})
}

// What the loop was left at comes again: it may not have been dealt with.
func TestSubscribeLeft(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		id := cancelled(t, ctx, c, 1)[0]
		for range 2 {
			if e := next(t, ctx, s); e.Execution != id || e.Kind != "end" || e.State != flowfabric.Cancelled {
				t.Fatalf("got %+v", e)
			}
		}
	})
}

// A cursor that is older than what is kept leads to a gap, once, and then to what is there.
func TestSubscribeGap(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
		must.No(t, err)
		cancelled(t, ctx, c, 4)
		collect(t, ctx, s, 4)
		lost := cancelled(t, ctx, c, 1)[0]
		for _, wish := range []engine.FeedWish{{}, {Ends: true, Keep: time.Hour}} { // forgets what is recorded
			for _, state := range e.SetFeed(ctx, wish) {
				if state.Err != nil {
					t.Fatal(state.Err)
				}
			}
		}
		var after flowfabric.ExecutionID
		for after.Partition() != lost.Partition() || after == (flowfabric.ExecutionID{}) {
			after = cancelled(t, ctx, c, 1)[0]
		}
		gaps := 0
		for event, err := range s.Events(ctx) {
			switch {
			case errors.Is(err, flowfabric.ErrFeedGap):
				gaps++
				continue
			case err != nil:
				t.Fatal(err)
			case event.Execution == lost:
				t.Fatal("what was trimmed came")
			}
			if event.Execution == after {
				break
			}
		}
		if gaps != 1 {
			t.Errorf("%d gaps", gaps)
		}
	})
}

// What is trimmed before a subscriber ever read anything is a gap to one who subscribed before it, and none to one
// who did later.
func TestSubscribeGapAtTheBeginning(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		subscribed := func(o admin.SubscribeOptions) *admin.Subscription {
			s, err := admin.New(c).Subscribe(ctx, o)
			must.No(t, err)
			return s
		}
		early := subscribed(admin.SubscribeOptions{})
		spread(t, ctx, c)
		for _, state := range e.SetFeed(ctx, engine.FeedWish{}) { // forgets what is recorded
			if state.Err != nil {
				t.Fatal(state.Err)
			}
		}
		now, oldest := subscribed(admin.SubscribeOptions{}), subscribed(admin.SubscribeOptions{Oldest: true})
		spread(t, ctx, c)
		late := subscribed(admin.SubscribeOptions{Oldest: true})
		for what, s := range map[string]*admin.Subscription{"early": early, "now": now, "oldest": oldest,
			"late": late} {
			s := subscribed(admin.SubscribeOptions{From: s.Cursor()}) // places without an entry are stored, too
			gaps, seen := 0, map[uint16]bool{}
			for event, err := range s.Events(ctx) {
				if errors.Is(err, flowfabric.ErrFeedGap) {
					gaps++
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				if seen[event.Execution.Partition()] = true; len(seen) == 2 {
					break
				}
			}
			if want := map[bool]int{true: 2}[what == "early"]; gaps != want {
				t.Errorf("%s: %d gaps in two partitions, want %d", what, gaps, want)
			}
		}
	})
}

// spread cancels executions until each of two partitions has had some.
func spread(t *testing.T, ctx context.Context, c *client.Client) {
	t.Helper()
	for seen := map[uint16]bool{}; len(seen) < 2; {
		for _, id := range cancelled(t, ctx, c, 2) {
			seen[id.Partition()] = true
		}
	}
}

// Bad wishes and cursors are refused before anything is recorded.
func TestSubscribeRefuses(t *testing.T) {
	ctx, c, _ := open(t)
	for what, o := range map[string]admin.SubscribeOptions{
		"keep too short": {Keep: time.Second}, "keep too long": {Keep: 8 * 24 * time.Hour},
		"length": {Length: 999}, "a cursor over two partitions": {From: "f1 1-1.1 "},
	} {
		if _, err := admin.New(c).Subscribe(ctx, o); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, text := range []string{"f2 1-1.1", "f1", "1-1.1", "f1 1-1", "f1 x", "f1 1-1.-1", "f1 1-1.1x", "t1 1-1.1"} {
		if _, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{From: text}); !errors.Is(err,
			flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c.Close()
	if _, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A loop ends with its context's cause, and with the client.
func TestSubscribeEnds(t *testing.T) {
	ctx, c, _ := open(t)
	s, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
	must.No(t, err)
	why := errors.New("why")
	ended, stop := context.WithCancelCause(ctx)
	stop(why)
	last := error(nil)
	for _, err := range s.Events(ended) {
		last = err
	}
	if !errors.Is(last, why) {
		t.Errorf("ended by %v", last)
	}
	cancelled(t, ctx, c, 1)
	last = nil
	for _, err := range s.Events(ctx) {
		last = err
		if err == nil {
			c.Close()
		}
	}
	if !errors.Is(last, client.ErrClosed) {
		t.Errorf("closed by %v", last)
	}
}

// Who asks for a namespace, lane, kind or tag hears of nothing else.
func TestSubscribeChoosesExecutions(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, _ *engine.Engine) {
		red := map[string]string{"ink.colour": "red"}
		options := map[string]admin.SubscribeOptions{"lane": {Lane: "batch"}, "tag": {Tags: red},
			"kind": {Kind: write.Kind(), Lane: "batch", Tags: red}, "namespace": {Namespace: "blue"}}
		subs := map[string]*admin.Subscription{}
		for name, o := range options {
			s, err := admin.New(c).Subscribe(ctx, o)
			must.No(t, err)
			subs[name] = s
		}
		want := map[string][]flowfabric.ExecutionID{}
		for i, opts := range [][]client.SubmitOption{{}, {flowfabric.Lane("batch")}, {flowfabric.Tags(red)},
			{flowfabric.Lane("batch"), flowfabric.Tags(red)},
			{flowfabric.Namespace("blue")}, {}} {
			x, err := client.Submit(ctx, c, write, draft{Topic: "x"}, opts...)
			if err == nil {
				err = x.Cancel(ctx)
			}
			must.No(t, err)
			for _, name := range [][]string{nil, {"lane"}, {"tag"}, {"lane", "tag", "kind"}, {"namespace"}, nil}[i] {
				want[name] = append(want[name], x.ID())
			}
		}
		for name, s := range subs {
			got := collect(t, ctx, s, len(want[name]))
			for _, id := range want[name] {
				if got[id] != 1 || len(got) != len(want[name]) {
					t.Errorf("%s: %v, want %v", name, got, want[name])
				}
			}
		}
		for _, bad := range []admin.SubscribeOptions{{Lane: "no {braces}"}, {Tags: map[string]string{"nodot": "x"}}} {
			if _, err := admin.New(c).Subscribe(ctx, bad); !errors.Is(err, flowfabric.ErrInvalidInput) &&
				!errors.Is(err, denied.TagKey) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}
