package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// laneOf finds a lane of the list.
func laneOf(ctx context.Context, t *testing.T, c *client.Client, name string) admin.Lane {
	t.Helper()
	lanes, err := admin.New(c).Lanes(ctx, "")
	must.No(t, err)
	for _, l := range lanes {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("lane %s is not listed: %+v", name, lanes)
	return admin.Lane{}
}

func TestLanesOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		submit(ctx, t, c, "other", flowfabric.Namespace("blue"))
		for _, step := range []struct {
			state  flowfabric.LaneState
			closed bool
		}{{flowfabric.LanePaused, false}, {flowfabric.LaneDraining, true}, {flowfabric.LaneDisabled, true},
			{flowfabric.LaneActive, false}} {
			for range 2 { // the second changes nothing
				must.No(t, admin.New(c).SetLane(ctx, limits.DefaultLane, admin.LaneChange{State: step.state},
					flowfabric.By("anna")))
			}
			l := laneOf(ctx, t, c, "default")
			if l.State != step.state || l.By != "anna" || l.Mixed || l.Since.IsZero() || l.Namespace != "default" ||
				l.Routes == 0 {
				t.Errorf("%s: %+v", step.state, l)
			}
			_, err := client.Submit(ctx, c, write, draft{Topic: "more"})
			if errors.Is(err, flowfabric.ErrLaneClosed) != step.closed || !step.closed && err != nil {
				t.Errorf("submit into a lane that is %s: %v", step.state, err)
			}
		}
		if err := admin.New(c).SetLane(ctx, "default", admin.LaneChange{Retention: everyOutcome(time.Minute)}); err !=
			nil {
			t.Fatal(err)
		}
		if l := laneOf(ctx, t, c, "default"); l.Retention != valid.RetainAll(time.Minute) ||
			l.State != flowfabric.LaneActive || l.By != "billing" {
			t.Errorf("%+v", l)
		}
		must.No(t, x.Cancel(ctx, flowfabric.Reason("no need")))
		ended, err := admin.New(c).ListPage(ctx, admin.Filter{States: []flowfabric.PublicState{flowfabric.Cancelled}},
			"", 10)
		if err != nil || len(ended.Items) != 1 || ended.Items[0].PurgeAt.Sub(ended.Items[0].EndedAt) != time.Minute {
			t.Errorf("%+v, %v", ended, err)
		}
		must.No(t, admin.New(c).SetLane(ctx, "default",
			admin.LaneChange{Namespace: "blue", State: flowfabric.LanePaused}))
		if l := laneOf(ctx, t, c, "default"); l.State != flowfabric.LaneActive {
			t.Errorf("the lane of another namespace was paused: %+v", l)
		}
		blue, err := admin.New(c).Lanes(ctx, "blue")
		if err != nil || len(blue) != 1 || blue[0].State != flowfabric.LanePaused || blue[0].Waiting != 1 {
			t.Errorf("%+v, %v", blue, err)
		}
		all, err := admin.New(c).Lanes(ctx, admin.AllNamespaces)
		if err != nil || len(all) != 2 || all[0].Namespace != "blue" || all[1].Namespace != "default" {
			t.Errorf("%+v, %v", all, err)
		}
		if s, err := e.ReadExecution(ctx, x.ID()); err != nil || s.State.Public != flowfabric.Cancelled {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// A partition that does not answer is named, the others do what was asked, and repeating the call settles it.
func TestPartialFailures(t *testing.T) {
	ctx, c, e := open(t) // four partitions
	submitMany(ctx, t, c, 400)
	must.No(t, e.FreezePartition(trail.As(ctx, "", "slot move"), 2))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, flowfabric.ErrPartitionFrozen) || !strings.Contains(err.Error(), "1 of 4 partitions") ||
			!strings.Contains(err.Error(), "(partition 2)") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("pause", admin.New(c).SetLane(ctx, "default", admin.LaneChange{State: flowfabric.LanePaused}))
	lanes, err := admin.New(c).Lanes(ctx, "")
	refused("lanes", err)
	if len(lanes) != 1 || lanes[0].Mixed || lanes[0].Waiting != 300 ||
		lanes[0].State != flowfabric.LanePaused {
		t.Errorf("%+v", lanes)
	}
	queues, err := admin.New(c).Queues(ctx, "")
	refused("queues", err)
	if len(queues) != 1 || queues[0].Waiting != 300 {
		t.Errorf("%+v", queues)
	}
	if _, err := admin.New(c).ListPage(ctx, admin.Filter{}, "", 0); !errors.Is(err, flowfabric.ErrPartitionFrozen) ||
		!strings.Contains(err.Error(), "partition 2: ") {
		t.Errorf("list: %v", err)
	}
	infos, err := admin.New(c).Partitions(ctx)
	if err != nil || len(infos) != 4 { // describing works on a frozen one
		t.Fatalf("%+v, %v", infos, err)
	}
	for i, p := range infos {
		if int(p.Partition) != i || p.Frozen != (i == 2) || p.Err != nil || p.Routes != 1 || p.Now.IsZero() ||
			(p.FrozenReason == "slot move") != (i == 2) {
			t.Errorf("%+v", p)
		}
	}
	must.No(t, e.ThawPartition(ctx, 2))
	l := laneOf(ctx, t, c, "default")
	if !l.Mixed || l.State != flowfabric.LanePaused {
		t.Errorf("%+v", l)
	}
	if queues, err := admin.New(c).Queues(ctx, ""); err != nil || !queues[0].Mixed ||
		queues[0].State != flowfabric.LanePaused {
		t.Errorf("%+v, %v", queues, err)
	}
	must.No(t, admin.New(c).SetLane(ctx, "default", admin.LaneChange{State: flowfabric.LanePaused}))
	if l := laneOf(ctx, t, c, "default"); l.Mixed || l.State != flowfabric.LanePaused || l.Waiting != 400 {
		t.Errorf("%+v", l)
	}
	// A lane that only some partitions were told of differs from those that know nothing of it.
	must.No(t, e.FreezePartition(trail.As(ctx, "", "again"), 0))
	if err := admin.New(c).SetLane(ctx, "later", admin.LaneChange{Retention: everyOutcome(time.Hour)}); err == nil {
		t.Error("a frozen partition answered")
	}
	must.No(t, e.ThawPartition(ctx, 0))
	if l := laneOf(ctx, t, c, "later"); !l.Mixed {
		t.Errorf("%+v", l)
	}
}

func TestLaneRefusals(t *testing.T) {
	ctx, c, _ := open(t)
	half, long, less := 1500*time.Millisecond, 11*365*24*time.Hour, -time.Second
	for what, x := range map[string]struct {
		lane   string
		change admin.LaneChange
		by     []flowfabric.ActOption
		says   string
	}{
		"nothing":        {"l", admin.LaneChange{}, nil, "no field of the change is set"},
		"state":          {"l", admin.LaneChange{State: "closed"}, nil, `"closed"`},
		"lane":           {"", admin.LaneChange{State: flowfabric.LanePaused}, nil, "lane"},
		"braces":         {"{l}", admin.LaneChange{State: flowfabric.LanePaused}, nil, "lane"},
		"namespace":      {"l", admin.LaneChange{State: flowfabric.LanePaused, Namespace: "{"}, nil, "namespace"},
		"half a second":  {"l", admin.LaneChange{Retention: everyOutcome(half)}, nil, "retention 1.5s"},
		"eleven years":   {"l", admin.LaneChange{Retention: everyOutcome(long)}, nil, "10 years"},
		"less than none": {"l", admin.LaneChange{Retention: everyOutcome(less)}, nil, "retention -1s"},
		"no outcome": {"l", admin.LaneChange{Retention: map[flowfabric.PublicState]time.Duration{
			flowfabric.Active: time.Hour}}, nil, "want completed, failed"},
		"by": {"l", admin.LaneChange{State: flowfabric.LanePaused},
			[]flowfabric.ActOption{flowfabric.By(strings.Repeat("a", 65))}, "By"},
	} {
		if err := admin.New(c).SetLane(ctx, x.lane, x.change, x.by...); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if lanes, err := admin.New(c).Lanes(ctx, ""); err != nil || len(lanes) != 0 {
		t.Errorf("%+v, %v", lanes, err)
	}
	if _, err := admin.New(c).Lanes(ctx, "{"); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if _, err := admin.New(c).Queues(ctx, "{"); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	c.Close()
	_, lanes := admin.New(c).Lanes(ctx, "")
	_, queues := admin.New(c).Queues(ctx, "")
	_, partitions := admin.New(c).Partitions(ctx)
	for what, err := range map[string]error{"set": admin.New(c).SetLane(ctx, "l",
		admin.LaneChange{State: flowfabric.LanePaused}), "lanes": lanes, "queues": queues, "partitions": partitions} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestQueues(t *testing.T) {
	ctx, c, e := open(t)
	first := submit(ctx, t, c, "a", flowfabric.Lane("old"), flowfabric.Priority(3))
	submitMany(ctx, t, c, 300, flowfabric.Lane("old"), flowfabric.Priority(2))
	submitMany(ctx, t, c, 200, flowfabric.Capabilities("gpu", "eu"))
	submit(ctx, t, c, "b", flowfabric.Delay(time.Hour))
	submit(ctx, t, c, "c", flowfabric.Namespace("blue"))
	queues, err := admin.New(c).Queues(ctx, "")
	must.No(t, err)
	var got []string
	for _, q := range queues {
		got = append(got, fmt.Sprint(q.Lane, q.Capabilities, q.State, q.Mixed, q.Waiting, " ", q.Priority, " ",
			q.Stored, q.OldestAt.IsZero()))
	}
	want := []string{"default[]activefalse 0 0 1 true", "default[eu gpu]activefalse 200 0 200 false",
		"old[]activefalse 301 3 301 false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s, err := first.Get(ctx)
	if err != nil || !queues[2].OldestAt.Equal(s.CreatedAt) || queues[2].Kind != "write-article" {
		t.Errorf("%+v, created %s, %v", queues[2], s.CreatedAt, err)
	}
	claim(ctx, t, e, first.ID())
	all, err := admin.New(c).Queues(ctx, admin.AllNamespaces)
	if err != nil || len(all) != 4 || all[0].Namespace != "blue" || all[0].Waiting != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if all[3].Waiting+all[2].Waiting+all[1].Waiting != 501-10 { // claim takes ten
		t.Errorf("%+v", all)
	}
}

// everyOutcome is a retention of d for all outcomes.
func everyOutcome(d time.Duration) map[flowfabric.PublicState]time.Duration {
	return map[flowfabric.PublicState]time.Duration{flowfabric.Completed: d, flowfabric.Failed: d,
		flowfabric.Cancelled: d, flowfabric.Expired: d}
}
