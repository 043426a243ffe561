package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// laneOf finds a lane of the list.
func laneOf(ctx context.Context, t *testing.T, c *client.Client, name string) client.LaneInfo {
	t.Helper()
	lanes, err := c.Lanes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("lane %s is not listed: %+v", name, lanes)
	return client.LaneInfo{}
}

func TestLanesOnAServer(t *testing.T) { // spec 10 §1.1
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		submit(ctx, t, c, "other", client.Namespace("blue"))
		for _, step := range []struct {
			change func(context.Context, string, ...client.LaneOption) error
			state  engine.LaneState
			closed bool
		}{{c.PauseLane, engine.LanePaused, false}, {c.DrainLane, engine.LaneDraining, true}, {c.DisableLane, engine.LaneDisabled, true},
			{c.ResumeLane, engine.LaneActive, false}} {
			for range 2 { // the second changes nothing
				if err := step.change(ctx, flowfabric.DefaultLane, client.By("anna")); err != nil {
					t.Fatal(err)
				}
			}
			l := laneOf(ctx, t, c, "default")
			if l.State != step.state || l.By != "anna" || l.Mixed || l.Since.IsZero() || l.Namespace != "default" || len(l.Partitions) != 2 || l.Routes == 0 {
				t.Errorf("%s: %+v", step.state, l)
			}
			_, err := client.Submit(ctx, c, write, draft{"more"})
			if errors.Is(err, flowfabric.ErrLaneClosed) != step.closed || !step.closed && err != nil {
				t.Errorf("submit into a lane that is %s: %v", step.state, err)
			}
		}
		if err := c.LaneRetention(ctx, "default", time.Minute); err != nil {
			t.Fatal(err)
		}
		if l := laneOf(ctx, t, c, "default"); l.Retention != time.Minute || l.State != engine.LaneActive || l.By != "billing" {
			t.Errorf("%+v", l)
		}
		if err := x.Cancel(ctx, "no need"); err != nil {
			t.Fatal(err)
		}
		ended, err := c.ListPage(ctx, client.Filter{States: []flowfabric.PublicState{flowfabric.Cancelled}}, "", 10)
		if err != nil || len(ended.Executions) != 1 || ended.Executions[0].PurgeAt.Sub(ended.Executions[0].EndedAt) != time.Minute {
			t.Errorf("%+v, %v", ended, err)
		}
		if err := c.PauseLane(ctx, "default", client.Namespace("blue")); err != nil {
			t.Fatal(err)
		}
		if l := laneOf(ctx, t, c, "default"); l.State != engine.LaneActive {
			t.Errorf("the lane of another namespace was paused: %+v", l)
		}
		blue, err := c.Lanes(ctx, client.Namespace("blue"))
		if err != nil || len(blue) != 1 || blue[0].State != engine.LanePaused || blue[0].Waiting != 1 {
			t.Errorf("%+v, %v", blue, err)
		}
		all, err := c.Lanes(ctx, client.AllNamespaces())
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
	if err := e.FreezePartition(ctx, 2, "slot move"); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, flowfabric.ErrPartitionFrozen) || !strings.Contains(err.Error(), "1 of 4 partitions") || !strings.Contains(err.Error(), "(partition 2)") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("pause", c.PauseLane(ctx, "default"))
	lanes, err := c.Lanes(ctx)
	refused("lanes", err)
	if len(lanes) != 1 || len(lanes[0].Partitions) != 3 || lanes[0].Mixed || lanes[0].Waiting != 300 || lanes[0].State != engine.LanePaused {
		t.Errorf("%+v", lanes)
	}
	queues, err := c.Queues(ctx)
	refused("queues", err)
	if len(queues) != 1 || queues[0].Depth != 300 || len(queues[0].Partitions) != 3 {
		t.Errorf("%+v", queues)
	}
	if _, err := c.ListPage(ctx, client.Filter{}, "", 0); !errors.Is(err, flowfabric.ErrPartitionFrozen) || !strings.Contains(err.Error(), "partition 2: ") {
		t.Errorf("list: %v", err)
	}
	infos, err := c.Partitions(ctx)
	if err != nil || len(infos) != 4 { // describing works on a frozen one
		t.Fatalf("%+v, %v", infos, err)
	}
	for i, p := range infos {
		if int(p.Partition) != i || p.Frozen != (i == 2) || p.Err != nil || p.Routes != 1 || p.Now.IsZero() || (p.FrozenReason == "slot move") != (i == 2) {
			t.Errorf("%+v", p)
		}
	}
	if err := e.ThawPartition(ctx, 2); err != nil {
		t.Fatal(err)
	}
	l := laneOf(ctx, t, c, "default")
	if !l.Mixed || l.State != engine.LanePaused || l.Partitions[2].State != engine.LaneActive || l.Partitions[2].Partition != 2 || l.Partitions[1].State != engine.LanePaused {
		t.Errorf("%+v", l)
	}
	if queues, err := c.Queues(ctx); err != nil || !queues[0].Mixed || queues[0].State != engine.LanePaused {
		t.Errorf("%+v, %v", queues, err)
	}
	if err := c.PauseLane(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	if l := laneOf(ctx, t, c, "default"); l.Mixed || l.State != engine.LanePaused || l.Waiting != 400 {
		t.Errorf("%+v", l)
	}
	// A lane that only some partitions were told of differs from those that know nothing of it.
	if err := e.FreezePartition(ctx, 0, "again"); err != nil {
		t.Fatal(err)
	}
	if err := c.LaneRetention(ctx, "later", time.Hour); err == nil {
		t.Error("a frozen partition answered")
	}
	if err := e.ThawPartition(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if l := laneOf(ctx, t, c, "later"); !l.Mixed || l.Partitions[0].Retention != 0 || l.Partitions[3].Retention != time.Hour {
		t.Errorf("%+v", l)
	}
}

func TestLaneRefusals(t *testing.T) {
	ctx, c, _ := open(t)
	half, long, less := 1500*time.Millisecond, 11*365*24*time.Hour, -time.Second
	for what, x := range map[string]struct {
		lane   string
		change engine.LaneChange
		opts   []client.LaneOption
		says   string
	}{
		"nothing":        {"l", engine.LaneChange{}, nil, "neither State nor Retention"},
		"state":          {"l", engine.LaneChange{State: "closed"}, nil, `"closed"`},
		"lane":           {"", engine.LaneChange{State: engine.LanePaused}, nil, "lane"},
		"braces":         {"{l}", engine.LaneChange{State: engine.LanePaused}, nil, "lane"},
		"namespace":      {"l", engine.LaneChange{State: engine.LanePaused}, []client.LaneOption{client.Namespace("")}, "namespace"},
		"half a second":  {"l", engine.LaneChange{Retention: &half}, nil, "retention 1.5s"},
		"eleven years":   {"l", engine.LaneChange{Retention: &long}, nil, "10 years"},
		"less than none": {"l", engine.LaneChange{Retention: &less}, nil, "retention -1s"},
		"by":             {"l", engine.LaneChange{State: engine.LanePaused}, []client.LaneOption{client.By(strings.Repeat("a", 65))}, "By"},
	} {
		if err := c.SetLane(ctx, x.lane, x.change, x.opts...); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if lanes, err := c.Lanes(ctx); err != nil || len(lanes) != 0 {
		t.Errorf("%+v, %v", lanes, err)
	}
	if _, err := c.Lanes(ctx, client.Namespace("{")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if _, err := c.Queues(ctx, client.Namespace("")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	c.Close()
	_, lanes := c.Lanes(ctx)
	_, queues := c.Queues(ctx)
	_, partitions := c.Partitions(ctx)
	for what, err := range map[string]error{"set": c.PauseLane(ctx, "l"), "lanes": lanes, "queues": queues, "partitions": partitions} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestQueues(t *testing.T) { // spec 50 §11
	ctx, c, e := open(t)
	first := submit(ctx, t, c, "a", client.Lane("old"), client.Priority(3))
	submitMany(ctx, t, c, 300, client.Lane("old"), client.Priority(2))
	submitMany(ctx, t, c, 200, client.Capabilities("gpu", "eu"))
	submit(ctx, t, c, "b", client.Delay(time.Hour))
	submit(ctx, t, c, "c", client.Namespace("blue"))
	queues, err := c.Queues(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range queues {
		got = append(got, fmt.Sprint(q.Lane, q.Capabilities, q.State, q.Mixed, q.Depth, " ", q.Priority, " ", q.Retained, q.Oldest.IsZero()))
	}
	if want := "default[]activefalse 0 0 1 true default[eu gpu]activefalse 200 0 200 false old[]activefalse 301 3 301 false"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
	s, err := first.Get(ctx)
	if err != nil || !queues[2].Oldest.Equal(s.CreatedAt) || queues[2].Kind != "write-article" {
		t.Errorf("%+v, created %s, %v", queues[2], s.CreatedAt, err)
	}
	sum := 0
	for _, q := range queues[2].Partitions {
		sum += q.Depth
	}
	if sum != 301 || len(queues[2].Partitions) < 3 {
		t.Errorf("%+v", queues[2].Partitions)
	}
	claim(ctx, t, e, first.ID())
	all, err := c.Queues(ctx, client.AllNamespaces())
	if err != nil || len(all) != 4 || all[0].Namespace != "blue" || all[0].Depth != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if all[3].Depth+all[2].Depth+all[1].Depth != 501-10 { // claim takes ten
		t.Errorf("%+v", all)
	}
}
