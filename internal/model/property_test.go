package model_test

import (
	"context"
	"flag"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/model"
)

// soak is the number in FLOWFABRIC_SOAK, 0 when it is not set: how many histories are checked; a tenth of it is how
// many random sequences run on Redis, a hundredth on the embedded server.
func soak() int {
	n, _ := strconv.Atoi(os.Getenv("FLOWFABRIC_SOAK"))
	return n
}

// TestProperty makes sequences of calls on a server and in the model, random ones and a tour: every reply is the same,
// and so is every execution as it is read.
func TestProperty(t *testing.T) {
	t.Parallel()
	random, tour, servers := newCoverage(), newCoverage(), 0
	for _, on := range []struct {
		name   string
		start  func(testing.TB) *server
		checks int
	}{{"embedded", embeddedServer, max(5, soak()/100)}, {"redis", redisServer, max(60, soak()/10)}} {
		t.Run(on.name, func(t *testing.T) {
			s := on.start(t)
			servers++
			newPair(t, t, s, tour).tour()
			set(t, "rapid.steps", "150")
			set(t, "rapid.shrinktime", "10s")
			set(t, "rapid.checks", strconv.Itoa(on.checks))
			rapid.Check(t, func(rt *rapid.T) { newPair(t, rt, s, random).run(rt) })
		})
	}
	if !t.Failed() && servers == 2 { // not only one of them was asked for
		random.verifyRandom(t)
		tour.verify(t)
	}
}

// set gives a flag of rapid a value for this test, unless the command line did.
func set(t *testing.T, name, value string) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if f := flag.Lookup(name); !given && f.Value.Set(value) != nil {
		t.Fatalf("flag %s", name)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // the seed is printed; no files in the tree
		panic(err)
	}
	os.Exit(m.Run())
}

// pair is the model and the server in step.
type pair struct {
	*hand
	t        tester
	ctx      context.Context
	s        *server
	cover    *coverage
	steps    int
	wait     int64    // of the delays of the tour, ms
	limit    int64    // deadline of the executions of the tour, ms
	requests uint64   // made up for revocations
	records  []string // steps that the tour records as soon as something is claimed
}

// tester is what tests and properties have in common.
type tester interface {
	failer
	Logf(format string, args ...any)
}

func newPair(t *testing.T, rt tester, s *server, cover *coverage) *pair {
	x := &pair{t: rt, ctx: t.Context(), s: s, cover: cover}
	x.start()
	return x
}

// start empties both sides.
func (x *pair) start() {
	x.t.Helper()
	p := model.New(begin)
	p.ClockTTL = x.s.ttls
	p.Moved = func(from, to model.Code) {
		x.cover.moved(from, to)
	}
	x.hand = newHand(p)
	x.s.reset(x.ctx, x.t)
	x.make(call{Kind: "subscription", Name: "aa", Routes: every})
	x.make(call{Kind: "subscription", Name: "bb", Routes: []int{1, 2}})
}

func (x *pair) run(rt *rapid.T) {
	rt.Repeat(map[string]func(*rapid.T){
		"step": func(t *rapid.T) {
			switch n := upto(t, "step", 64); {
			case n < 56:
				x.make(x.draw(t))
			case n < 61:
				if !x.s.ttls && rarely(t, "clock steps back", 10) { // the embedded server's keys expire by its clock
					x.stepBack(one(t, "step", int64(900), 1001, 5000, 30_000, 3_600_000))
				} else {
					x.advance(x.instant(t))
				}
			default:
				x.shut(one(t, "why", model.Missing, model.Frozen, model.Mismatch), x.draw(t))
			}
		},
		"": func(*rapid.T) {
			if x.steps++; x.steps%8 == 0 {
				x.compare()
			}
		},
	})
	x.compare()
	x.drain()
	x.sound()
}

// make makes one call on both sides.
func (x *pair) make(c call) model.Reply { return x.makeOn(root, c) }

func (x *pair) makeOn(key string, c call) model.Reply {
	x.t.Helper()
	if c.Kind == "revoke" && c.Number2 == 0 {
		x.requests++
		c.Number2 = 1000 + x.requests
	}
	got, err := x.s.do(x.ctx, x.s.raw, key, c)
	if err != nil {
		x.t.Fatalf("%v: %v", c, err)
	}
	want := c.apply(x.p)
	if _, random := x.t.(*rapid.T); random {
		x.t.Logf("%v\n    %v", c, got)
	}
	if !reflect.DeepEqual(got, want) {
		x.t.Fatalf("%v\nanswered %+v\n    want %+v", c, show(got), show(want))
	}
	x.cover.called(c, got)
	x.learn(c, got)
	return got
}

// show follows the pointer for the message.
func show(r model.Reply) []model.Reply {
	if r.Next != nil {
		return []model.Reply{r, *r.Next}
	}
	return []model.Reply{r}
}

func (x *pair) advance(now int64) {
	x.t.Helper()
	if now < x.p.Now {
		return
	}
	x.t.Logf("now %d", now)
	x.p.Advance(now)
	if err := x.s.setClock(x.ctx, x.s.raw, x.p.Now); err != nil {
		x.t.Fatalf("set the clock: %v", err)
	}
}

// stepBack sets the clock back.
func (x *pair) stepBack(ms int64) {
	x.t.Helper()
	x.p.StepBack(ms)
	x.t.Logf("back to %d", x.p.Now)
	if err := x.s.setClock(x.ctx, x.s.raw, x.p.Now); err != nil {
		x.t.Fatalf("set the clock: %v", err)
	}
}

// shut makes a call on a partition that is missing, frozen, or of a newer protocol.
func (x *pair) shut(why model.Gate, c call) {
	x.t.Helper()
	before, key := x.past, root
	freeze := func(on string) {
		if _, code, _, err := x.s.fcall(x.ctx, x.s.raw, root, "ff_freeze_partition", strconv.Itoa(limits.Protocol),
			on); err != nil || code != model.OK {
			x.t.Fatalf("freeze %s: %s %v", on, code, err)
		}
	}
	protocol := func(n string) {
		if err := x.s.raw.Do(x.ctx,
			x.s.raw.B().Hset().Key(root).FieldValue().FieldValue("protocol", n).Build()).Error(); err != nil {
			x.t.Fatalf("protocol: %v", err)
		}
	}
	x.p.Gate = why
	switch why {
	case model.Missing:
		key = elsewhere
	case model.Frozen:
		freeze("1")
		defer freeze("0")
	case model.Mismatch:
		protocol(strconv.Itoa(limits.Protocol + 1))
		defer protocol(strconv.Itoa(limits.Protocol))
	}
	x.makeOn(key, c)
	x.p.Gate, x.past = "", before
}

// compare reads every execution and the lanes on both sides.
func (x *pair) compare() {
	x.t.Helper()
	x.make(call{Kind: "lanes"})
	for _, id := range append(slices.Clone(x.ids), unknown) {
		got, code, err := x.s.view(x.ctx, id)
		if err != nil {
			x.t.Fatalf("read %s: %v", id, err)
		}
		want, wantCode := x.p.View(id)
		for i, stream := range want.Streams {
			if stream.Sequence == 0 && stream.Reason == "lease_revoked" && i < len(got.Streams) {
				// without a frame, the library tells how the attempt ended later
				want.Streams[i].Reason = got.Streams[i].Reason
			}
		}
		if code != wantCode || !reflect.DeepEqual(got, want) {
			x.t.Fatalf("%s is %s %+v\nwant %s %+v", id, code, got, wantCode, want)
		}
	}
}

// drain claims all that waits, one at a time, in the model's order.
func (x *pair) drain() {
	x.t.Helper()
	for _, name := range lanes {
		x.make(call{Kind: "set lane", Lane: model.LaneChange{LaneName: name, State: "active", Keep: -1}})
	}
	for worker := range 20 {
		q := model.ClaimRequest{Session: "drain~" + strconv.Itoa(worker), Number: 1, TTL: 30_000, Max: 1,
			Subscription: "aa", Table: x.p.Table}
		r := x.make(call{Kind: "claim", Claim: q})
		if r.Code == "subscription_unknown" {
			x.make(call{Kind: "subscription", Name: "aa", Routes: every})
		} else if len(r.Claims) == 0 {
			return
		}
	}
	x.t.Fatalf("the queue has no end")
}

// sound looks for what neither replies nor snapshots show.
func (x *pair) sound() {
	x.t.Helper()
	d, err := invariant.Read(x.ctx, x.s.raw, partition)
	if err != nil {
		x.t.Fatalf("read the partition: %v", err)
	}
	d.Now, d.Stepped = x.p.Now, !x.s.ttls
	if bad := invariant.NewChecker().Violations(d); len(bad) > 0 {
		x.t.Fatalf("the partition is not sound: %q", bad)
	}
}
