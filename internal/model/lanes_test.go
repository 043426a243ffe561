package model_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/model"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// usual is the lane of most executions; lanes are all there are.
var (
	usual = model.LaneName{Namespace: "n", Name: "l"}
	lanes = []model.LaneName{usual, {Namespace: "n", Name: "m"}, {Namespace: "n", Name: "z"}}
)

// every is the subscription in any route: those that are removed come back under ids that were not used before.
var every = func() (ids []int) {
	for id := 1; id <= 64; id++ {
		ids = append(ids, id)
	}
	return ids
}()

// lane draws the word of an operator about a lane; what is closed is mostly opened again.
func (h *hand) lane(t *rapid.T, c *call) {
	c.Lane = model.LaneChange{LaneName: one(t, "lane", usual, usual, usual, lanes[1], lanes[1], lanes[2]),
		Keep:  one(t, "keep", int64(-1), -1, 0, 1, 3, 20),
		State: one(t, "state", "active", "", "paused", "draining", "disabled"), By: h.who(t)}
	for _, name := range lanes {
		if l, ok := h.p.Lanes[name]; ok && l.State != "active" && !rarely(t, "stays", 3) {
			c.Lane.LaneName, c.Lane.State = name, "active"
		}
	}
	switch upto(t, "odd", 30) {
	case 0:
		c.Lane.State = "closed"
	case 1:
		c.Lane.Keep = 315_360_001
	case 2:
		c.Lane.Name = "{l}"
	}
}

// closed puts a lane into every state, with work that waits, runs, is delayed and suspended, and opens it again.
func (x *pair) closed() {
	set := func(state string, keep int64) {
		x.make(call{Kind: "set lane", Lane: model.LaneChange{LaneName: usual, State: state, Keep: keep, By: "me"}})
	}
	submit := func(id string) {
		x.make(call{Kind: "create",
			Submit: model.Submission{ID: id, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Digest: "d"}})
	}
	empty := func() {
		x.make(call{Kind: "claim", Claim: model.ClaimRequest{Session: "none~1", Number: 1, TTL: 30_000, Max: 1,
			Subscription: "aa", Wait: true}})
	}
	x.wait = 1500
	for _, from := range []string{"", "active", "paused", "draining", "disabled"} {
		for _, to := range []string{"active", "paused", "draining", "disabled"} {
			for _, code := range []model.Code{"R1f", "R2af", "A1", "S1", "T1"} {
				f := x.reach(code)
				set(from, -1)
				set(to, -1)
				set(to, -1)
				submit(unknown)
				submit(subject) // it is known, whatever its lane says
				if to == "paused" || to == "disabled" {
					empty()
				}
				if code == "A1" { // what runs goes on
					x.make(call{Kind: "release", ID: subject, Fence: f})
				}
				if code == "S1" {
					x.make(call{Kind: "signal", ID: subject})
				}
				x.advance(x.p.Now + 1500)
				x.tick()
				x.compare()
				if to == "draining" && code != "T1" { // it hands out what it has
					x.claim(30_000)
					x.compare()
				}
				set("active", -1)
				x.sound() // neither a forgotten wake nor an empty queue among the ready ones shows in replies
				x.tick()
				if to != "draining" && code != "T1" {
					x.claim(30_000)
				}
				x.compare()
			}
		}
	}
	set("paused", 5)
	set("", 0) // neither state nor time nor name change with a retention
	x.compare()
}

// kept follows what ended until it is purged: by its policy, its lane or the default, with a lane that changes its
// mind, and a route that goes with its last execution and comes back.
func (x *pair) kept() {
	route := model.Route{Namespace: "n", Lane: "l", Kind: "k"}
	const lives = time.Hour
	for _, c := range []struct {
		policy        time.Duration
		before, after int64 // s of the lane, at the end and later; 0 = never set
		at            int64 // ms after its end when it is purged
	}{
		{0, 0, 0, 86_400_000}, {2 * time.Second, 0, 0, 2000}, {48 * time.Hour, 0, 0, 172_800_000},
		{0, 7, 0, 86_400_000}, {0, 7, 9, 9000}, {0, 9, 7, 9000}, {2 * time.Second, 7, 9, 2000},
		{time.Second, 86_400, 1, 1000},
	} {
		x.start()
		keep := func(s int64) {
			x.make(call{Kind: "set lane", Lane: model.LaneChange{LaneName: usual, Keep: s}})
		}
		keep(c.before)
		submit := func(id string) string {
			return x.make(call{Kind: "create", Submit: model.Submission{ID: id, Route: route, Digest: "d", Input: 1,
				Tags: map[string]string{"a.b": "1"},
				Policy: flowfabric.Policy{Retention: valid.RetainAll(c.policy),
					AttemptTimeout: flowfabric.Millis(lives)}}}).Code
		}
		submit(subject)
		f := x.claim(30_000)
		x.make(call{Kind: "step", ID: subject, Fence: f, Name: "s", Value: "v"})
		x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 2, Number: 1})
		x.make(call{Kind: "complete", ID: subject, Fence: f, Number: 1})
		x.make(call{Kind: "close", Session: f.Session})
		x.tick() // there is nothing to do until then, and it knows
		ended := x.p.Now
		keep(c.after)
		x.advance(ended + c.at - 1)
		x.tick()
		x.compare()
		if x.p.Executions[subject] == nil {
			x.t.Fatalf("%+v: purged too soon", c)
		}
		x.advance(ended + c.at)
		x.tick()
		x.tick()
		x.compare()
		if x.p.Executions[subject] != nil || len(x.p.Routes) != 0 || x.p.Wake != 0 {
			x.t.Fatalf("%+v: not purged", c)
		}
		x.advance(ended + c.at + 86_399_999)
		if code := submit(subject); code != model.Duplicate { // the tombstone has its last millisecond
			x.t.Fatalf("%+v: the id is free too soon: %s", c, code)
		}
		submit(unknown) // the route comes back under another id
		x.advance(ended + c.at + 86_400_000)
		x.make(call{Kind: "subscription", Name: "aa", Routes: every}) // it may have run out
		submit(subject)
		second := x.claim(30_000)
		x.make(call{Kind: "complete", ID: subject, Fence: f}) // of its first life
		x.make(call{Kind: "complete", ID: unknown, Fence: second})
		if len(x.p.Routes) != 1 || x.p.Routes[2].Route != route {
			x.t.Fatalf("%+v: routes %v", c, x.p.Routes)
		}
		x.compare()
	}
	x.sound()
}

// TestLanesAndRetention is that part of the tour alone, for those who look for one bug.
func TestLanesAndRetention(t *testing.T) {
	t.Parallel()
	x := newPair(t, t, redisServer(t), newCoverage())
	x.closed()
	x.kept()
}
