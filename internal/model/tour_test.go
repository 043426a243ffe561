package model_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/model"
)

// tour goes where chance seldom does: cancellation and deadline from every state, every kind of wrong fence in every
// fenced call, every gate before every call, and the limits. Model and server are compared as in the random part.
func (x *pair) tour() {
	x.wait, x.limit = 9000, 8000 // a delay is longer than the deadline
	for _, code := range slices.Sorted(maps.Keys(model.Legal)) {
		if code == "" {
			continue
		}
		x.reach(code)
		x.override("again") // of what has ended already, too
		x.reach(code)
		x.advance(begin + x.limit)
		x.tick()
		x.compare()
	}
	x.limit = 2500 // before the pause between reclaims is over
	x.reach("R2r")
	x.advance(begin + x.limit)
	x.tick()
	x.compare()
	x.limit = 8000
	x.renewed()
	x.rewound()
	x.exhausted()
	x.waits()
	for _, kind := range fenced {
		x.wrongFences(kind)
	}
	x.wrongFences("cancel")
	x.gates()
	x.bounds()
	x.refusals()
	x.sessions()
	x.closed()
	x.kept()
	x.held()
	x.bounced()
	if !x.s.ttls { // thousands of calls, and what they show does not depend on the server
		x.limits()
	}
}

const subject = "00000001-0000-4000-8000-000000000000"

// begin empties both sides and submits one execution with a deadline.
func (x *pair) begin(delay int64) {
	x.start()
	retry := flowfabric.RetryPolicy{MaxRetries: 5, Initial: time.Second, Max: time.Minute, Multiplier: 2}
	x.make(call{Kind: "create",
		Submit: model.Submission{ID: subject, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Delay: delay,
			Deadline: x.limit, Input: 1,
			Policy: flowfabric.Policy{MaxReclaims: 2, AttemptTimeout: flowfabric.Millis(time.Hour), Retry: retry}}})
}

func (x *pair) claim(ttl int64) model.Fence {
	x.t.Helper()
	q := model.ClaimRequest{Session: "tour~1", Number: 1, TTL: ttl, Max: 1, Subscription: "aa"}
	for {
		r := x.make(call{Kind: "claim", Claim: q})
		switch {
		case r.Code == "lease_expired":
			n, _ := strconv.Atoi(strings.TrimPrefix(q.Session, "tour~"))
			q.Session = "tour~" + strconv.Itoa(n+1)
		case r.Code == "claim_out_of_order" || len(r.Claims) == 0 || r.Slots[0] == "1":
			q.Number++
		default:
			return r.Claims[0].Fence
		}
	}
}

func (x *pair) tick() { x.make(call{Kind: "tick", Name: "t1"}) }

func (x *pair) override(reason string) {
	x.make(call{Kind: "cancel", ID: subject, Cancel: model.Cancellation{Source: "operator_override", Reason: reason}})
}

// reach brings a fresh execution into a state and returns the fence it was held under last.
func (x *pair) reach(code model.Code) (f model.Fence) {
	x.t.Helper()
	held := func(kind string) {
		x.begin(0)
		f = x.claim(30_000)
		x.stepping(f)
		if kind != "" {
			x.make(call{Kind: kind, ID: subject, Fence: f, Number: x.wait, Name: "me",
				Cancel: model.Cancellation{Source: "owner"},
				Failure: model.Failure{Category: "c1",
					After: map[model.Code]int64{"R1t": 0, "R2b": x.wait, "T2": 1}[code], Permanent: code == "T2"}})
		}
	}
	switch code {
	case "R2af":
		x.begin(x.wait)
	case "R1f":
		x.begin(0)
	case "A1":
		held("")
	case "R1t", "R2b", "T2":
		held("fail")
	case "R1i":
		held("release")
	case "R2ai":
		held("delay")
	case "A3":
		held("revoke")
	case "S1", "S2", "S5", "R2c":
		held("")
		from := code
		if code == "R2c" {
			from = "S1"
		}
		x.halt(f, from, 0, "fail", map[model.Code]int64{"R2c": x.wait}[code])
		if code == "R2c" {
			x.make(call{Kind: "signal", ID: subject})
		}
	case "T1":
		held("complete")
	case "T3", "R1p":
		held("cancel")
	case "R1r", "R2r":
		x.begin(0)
		for range map[model.Code]int{"R1r": 1, "R2r": 2}[code] {
			f = x.claim(1000)
			x.stepping(f)
			x.advance(x.p.Now + 1000)
			x.tick()
		}
	case "T3n":
		x.begin(0)
		x.override("")
	case "T4":
		held("")
		x.advance(begin + x.limit)
		x.tick()
	case "T4n":
		x.begin(0)
		x.advance(begin + x.limit)
		x.tick()
	}
	if code == "R1p" {
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: subject, Force: true}})
	}
	if got := x.p.Executions[subject].Code; got != code {
		x.t.Fatalf("the tour is in %s, want %s", got, code)
	}
	return f
}

// stepping records what is to be rewound, if something is.
func (x *pair) stepping(f model.Fence) {
	for _, name := range x.records {
		x.make(call{Kind: "step", ID: subject, Fence: f, Name: name, Value: "v"})
	}
}

// rewound rewinds from every state in which something may be recorded.
func (x *pair) rewound() {
	x.records = []string{"a", "b", "c"}
	defer func() { x.records = nil }()
	rewind := func(q model.Rewind) { x.make(call{Kind: "rewind", ID: subject, Rewind: q}) }
	for _, wait := range []int64{0, 1500} {
		for _, code := range []model.Code{"A1", "A3", "R1t", "R1i", "R1r", "R1p", "R2ai", "R2b", "R2r", "R2c", "S1",
			"S2",
			"S5", "T1", "T2", "T3", "T4"} {
			if x.wait = wait; wait == 0 && code[:2] == "R2" || wait != 0 && code == "R1t" {
				continue
			}
			f := x.reach(code)
			rewind(model.Rewind{Request: x.serial(), Step: "none"})
			rewind(model.Rewind{Request: x.serial(), Step: "b", Attempt: 9})
			q := model.Rewind{Request: x.serial(), Step: "b", By: "me", Reason: "another way"}
			if wait != 0 {
				q.Message = "hello"
			}
			rewind(q)
			rewind(q)
			x.make(call{Kind: "step", ID: subject, Fence: f, Name: "late", Value: "v"})
			x.compare()
			x.claim(30_000)
			x.compare()
		}
	}
	rewind(model.Rewind{Request: x.serial(), Step: "a", Message: strings.Repeat("x", 65537)})
	x.override("")
	for range 11 { // as often as its policy allows, and once more
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: x.serial()}})
		x.override("")
	}
	rewind(model.Rewind{Request: x.serial(), Step: "a"})
	x.compare()
}

// renewed replays what ended before it ever ran.
func (x *pair) renewed() {
	x.wait = 1500
	for _, from := range []model.Code{"T3n", "T4n"} {
		for _, cancel := range []bool{true, false} {
			x.reach(from)
			x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: subject}})
			if cancel {
				x.override("")
			} else {
				x.advance(x.p.Now + x.limit)
				x.tick()
			}
			x.compare()
		}
	}
	for _, cancel := range []bool{true, false} { // ends what waits with another input
		x.make(call{Kind: "continue", ID: subject, Fence: x.reach("A1"), Number: 3})
		if cancel {
			x.override("")
		} else {
			x.advance(x.p.Now + x.limit)
			x.tick()
		}
		x.compare()
	}
	for _, from := range []model.Code{"T1", "T2", "T3", "T4", "R2af", "R2b", "R2r", "R2ai"} { // and all goes on
		x.reach(from)
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: subject}})
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: unknown, Force: true}})
		x.advance(x.p.Now + 1500)
		x.tick()
		x.claim(30_000)
		x.compare()
	}
}

// exhausted reaches the reclaim cap, revoked and dead.
func (x *pair) exhausted() {
	for _, dead := range []bool{true, false} {
		x.reach("R2r")
		x.advance(x.p.Now + 1000)
		x.tick()
		x.claim(1000)
		if dead {
			x.advance(x.p.Now + 1000)
		} else {
			x.make(call{Kind: "revoke", ID: subject})
		}
		x.tick()
		x.compare()
	}
}

// wrongFences makes a fenced call with every fence that is not the holder's.
func (x *pair) wrongFences(kind string) {
	if kind == "revoke" {
		return
	}
	c := call{Kind: kind, ID: subject, Name: "s", Number: 1, Number2: 1, Count: 1, Message: model.Message{Mailbox: "a"},
		Failure: model.Failure{Category: "c"}, Cancel: model.Cancellation{Source: "owner"},
		Claim: model.ClaimRequest{Session: "other~1", Number: 1, TTL: 1000, Max: 1}}
	try := func(change func(*call)) {
		x.t.Helper()
		c.Fence, c.ID = x.reach("A1"), subject
		change(&c)
		x.make(c)
	}
	try(func(c *call) { c.ID = unknown })
	try(func(c *call) { c.ID = "short" })
	try(func(c *call) { c.Fence = model.Fence{} })
	try(func(c *call) { c.Fence.Session = "" })
	try(func(c *call) { c.Fence.Claim = 0 })
	try(func(c *call) { c.Fence.Epoch = 0 })
	try(func(c *call) { c.Fence.Session = "other~1" })
	try(func(c *call) { c.Fence.Claim++ })
	try(func(c *call) { c.Fence.Epoch-- })
	try(func(c *call) { c.Fence.Epoch++ })
	try(func(c *call) { c.Fence.Attempt++ })
	try(func(*call) { x.advance(x.p.Now + 30_000) })
	try(func(*call) { x.advance(x.p.Now + 29_999) }) // the last moment
	for _, code := range []model.Code{"A3", "R1i", "R1t", "R1r", "R2r", "S1", "R2c", "T1", "T2", "T3", "T4"} {
		c.Fence = x.reach(code)
		x.make(c)
		c.Fence.Session = "other~1"
		x.make(c)
	}
	x.compare()
}

// gates makes every kind of call on a partition that refuses it.
func (x *pair) gates() {
	f := x.reach("A1")
	for kind := range kinds {
		c := call{Kind: kind, ID: subject, Fence: f, Name: "aa", Session: f.Session, Count: 1, Number: 1, Number2: 1,
			Failure: model.Failure{Category: "c"},
			Cancel:  model.Cancellation{Source: "owner"},
			Claim:   model.ClaimRequest{Session: "s~1", Number: 1, TTL: 1000, Max: 1}}
		for _, why := range []model.Gate{model.Missing, model.Frozen, model.Mismatch} {
			x.shut(why, c)
		}
	}
	x.compare()
}

// bounds makes every kind of call with something that is out of bounds.
func (x *pair) bounds() {
	f := x.reach("A1")
	long := strings.Repeat("x", 65)
	good := call{ID: subject, Fence: f, Name: "aa", Session: f.Session, Count: 1, Number: 1, Number2: 1,
		Failure: model.Failure{Category: "c"}, Cancel: model.Cancellation{Source: "owner"},
		Claim:  model.ClaimRequest{Session: "s~1", Number: 1, TTL: 1000, Max: 1},
		Replay: model.Replay{Request: subject}, Lane: model.LaneChange{LaneName: usual, State: "paused", Keep: 1}}
	for _, b := range []struct {
		kind  string
		spoil func(*call)
	}{
		{"claim", func(c *call) { c.Claim.TTL = 999 }}, {"claim", func(c *call) { c.Claim.TTL = 3_600_001 }},
		{"claim", func(c *call) { c.Claim.Max = 101 }},
		{"claim", func(c *call) { c.Claim.Max = 0 }}, {"claim", func(c *call) { c.Claim.Session = "none" }},
		{"claim", func(c *call) { c.Claim.Number = 0 }},
		{"claim", func(c *call) { c.Claim.Subscription = "xyz" }},
		{"complete and claim", func(c *call) { c.Claim.TTL = 999 }},
		{"fail", func(c *call) { c.Failure.Category = "" }}, {"fail", func(c *call) { c.Failure.Category = "a b" }},
		{"fail", func(c *call) { c.Failure.Reason = strings.Repeat("x", 1025) }},
		{"delay", func(c *call) { c.Number = -1 }},
		{"delay", func(c *call) { c.Number = 315_360_000_001 }}, {"continue",
			func(c *call) { c.Number = limits.MaxPayload + 1 }}, {"cancel", func(c *call) { c.Cancel.Source = "me" }},
		{"step", func(c *call) { c.Name = "" }},
		{"step", func(c *call) { c.Name = strings.Repeat("x", 129) }}, {"progress", func(c *call) { c.Number = 101 }},
		{"progress", func(c *call) { c.Name = strings.Repeat("x", 1025) }}, {"append", func(c *call) { c.Count = 0 }},
		{"append", func(c *call) { c.Count = 101 }}, {"append", func(c *call) { c.Number2 = 0 }},
		{"priority", func(c *call) { c.ID = "short" }}, {"set delay", func(c *call) { c.ID = "short" }},
		{"replay", func(c *call) { c.ID = "short" }},
		{"rewind", func(c *call) { c.ID = "short" }},
		{"replay", func(c *call) { c.Replay.Request = "short" }}, {"tags", func(c *call) { c.ID = "short" }},
		{"tags", func(c *call) { c.Set = map[string]string{"a.b": strings.Repeat("x", 257)} }},
		{"tags", func(c *call) { c.Set = map[string]string{"A": ""} }},
		{"purge", func(c *call) { c.Number = 86_399_999 }},
		{"purge", func(c *call) { c.ID, c.Number = "short", 86_400_000 }},
		{"revoke", func(c *call) { c.Name = long }}, {"revoke", func(c *call) { c.ID = "short" }},
		{"revoke", func(c *call) { c.Session = long }},
		{"mark dead", func(c *call) { c.Session = "" }},
		{"mark dead", func(c *call) { c.Value = strings.Repeat("x", 257) }},
		// notice 1 of none
		{"renew", func(c *call) { c.Session = "" }}, {"renew", func(c *call) { c.Number = 999 }},
		{"renew", func(c *call) { c.Number = 1000 }},
		{"held", func(c *call) { c.Session = long }}, {"close", func(c *call) { c.Session = "" }},
		{"subscription", func(c *call) { c.Name = "xyz" }},
		{"tick", func(c *call) { c.Name = "" }}, {"tick", func(c *call) { c.Name = long }},
		{"set lane", func(c *call) { c.Lane.Name = long }}, {"set lane", func(c *call) { c.Lane.Namespace = "" }},
		{"set lane", func(c *call) { c.Lane.State = "closed" }},
		{"set lane", func(c *call) { c.Lane.Keep = 315_360_001 }},
	} {
		c := good
		c.Kind = b.kind
		b.spoil(&c)
		x.make(c)
	}
	for how := range 9 {
		s := model.Submission{ID: unknown, Route: model.Route{Namespace: "n", Lane: "l", Kind: "new"}}
		spoil(how, &s)
		x.make(call{Kind: "create", Submit: s})
	}
	x.compare()
}

// refusals reaches what is refused for the state of things and has nothing to do with fences.
func (x *pair) refusals() {
	claim := model.ClaimRequest{Session: "tour~1", Number: 3, TTL: 30_000, Max: 1, Subscription: "aa"}
	id := func(kind string, all ...string) {
		for _, id := range append(all, subject) {
			x.make(call{Kind: kind, ID: id, Number: 86_400_000, Replay: model.Replay{Request: unknown},
				Set: map[string]string{"a.b": "1"}})
		}
	}
	x.begin(0)
	x.make(call{Kind: "claim", Claim: claim}) // no such session yet
	for _, digest := range []string{"d1", "d2", "d1"} {
		x.make(call{Kind: "create", Submit: model.Submission{ID: unknown,
			Route: model.Route{Namespace: "n", Lane: "l", Kind: "k2"}, Digest: digest}})
	}
	x.claim(30_000)
	x.make(call{Kind: "claim", Claim: claim})
	claim.Number, claim.Subscription = 2, "ff"
	x.make(call{Kind: "claim", Claim: claim})
	x.make(call{Kind: "close", Session: "tour~1"})
	x.make(call{Kind: "mark dead", Session: "none~1"})
	x.make(call{Kind: "revoke", ID: subject, Session: "none~1"})
	nobody := "eeeeeeee-0000-4000-8000-000000000000"
	for _, kind := range []string{"tags", "priority", "set delay", "replay", "purge", "revoke"} {
		id(kind, nobody)
	}
	x.make(call{Kind: "rewind", ID: nobody, Rewind: model.Rewind{Request: x.serial(), Step: "a"}})
	for i, from := range []model.Code{"R2af", "R2b"} {
		x.reach(from)
		for n, delay := range []int64{1500, 1500, 0, 0} {
			x.make(call{Kind: "set delay", ID: subject, Number: delay, Number2: uint64(10*i + n)})
		}
	}
	f := x.reach("A1")
	step := call{Kind: "step", ID: subject, Fence: f, Name: "s", Value: "a"}
	x.make(step)
	x.make(step)
	step.Value = "b"
	x.make(step)
	step.Value = strings.Repeat("v", limits.MaxStepBytes+1)
	x.make(step)
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 2, Count: 1, Number: 1})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 3, Number: 1, Modes: "lsd"})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 3, Number: 1, Modes: "lsd"})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 4, Count: 1, Number: 1, Modes: "s"})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 2, Count: 4, Number: 1, Modes: "sdsl"})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 6, Count: 1, Number: 1, Modes: "s", Base: 2})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 7, Count: 1, Number: 1, Modes: "s", Base: 3,
		Document: limits.MaxSummary - 1})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 7, Count: 1, Number: 1, Modes: "s", Base: 3,
		Document: limits.MaxSummary - 2})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 1, Number: limits.MaxFrame + 1})
	x.make(call{Kind: "complete", ID: subject, Fence: f, Number: limits.MaxPayload + 1})
	x.make(call{Kind: "complete", ID: subject, Fence: f})
	x.make(call{Kind: "complete", ID: subject, Fence: f})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 1, Number: 1})
	for range 2 {
		for _, kind := range []string{"replay", "priority", "set delay", "revoke", "messages", "purge"} {
			id(kind)
		}
		x.make(call{Kind: "send", ID: subject, Message: model.Message{ID: subject, Mailbox: "a"}})
	}
	x.compare()
	x.replayed()
}

// sessions follows a worker that loses what it holds, hears of it, and ends.
func (x *pair) sessions() {
	for _, ending := range []string{"close", "mark dead", "expire"} {
		f := x.reach("A3")
		renew := call{Kind: "renew", Session: f.Session, Number: 30_000}
		x.make(renew)
		renew.Number2 = 1
		x.make(renew)
		x.make(call{Kind: "held", Session: f.Session})
		x.tick() // what was revoked waits again
		x.make(call{Kind: "tick", Name: "t1", Flag: true})
		if ending == "expire" {
			x.advance(x.p.Now + 30_000)
		} else {
			x.make(call{Kind: ending, Session: f.Session})
			x.make(call{Kind: ending, Session: f.Session})
		}
		x.make(renew)
		x.tick()
		x.make(call{Kind: "held", Session: f.Session})
		x.compare()
	}
}

// replayed replays as often as the default allows, and once more.
func (x *pair) replayed() {
	x.begin(0)
	for n := range 11 {
		x.override("")
		x.make(call{Kind: "replay", ID: subject,
			Replay: model.Replay{Request: "00000000-0000-4000-8000-" + strings.Repeat("0", 10) + strconv.Itoa(10+n)}})
	}
	f := x.reach("A1")
	for _, name := range []string{"b", "a", "c"} {
		x.make(call{Kind: "step", ID: subject, Fence: f, Name: name, Value: "v"})
	}
	for _, from := range []string{"none", "a", "a", "b"} {
		x.override("")
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: x.serial(), From: from}})
		x.compare()
	}
	f = x.reach("A1")
	x.make(call{Kind: "step", ID: subject, Fence: f, Name: "before", Value: "v"})
	x.make(call{Kind: "pend", ID: subject, Fence: f, Name: "a", Point: point(1), Number: 20_000})
	x.make(call{Kind: "step", ID: subject, Fence: f, Name: "mail", Value: "v"})
	wait := model.Wait{ID: x.serial(), Name: "a", Reason: "waiting_for_signal", Behaviour: "fail", Timeout: 1000,
		Point: point(1), Pending: true, Need: 1, Names: []string{"go"}}
	x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait})
	x.advance(x.p.Now + 1000)
	x.tick()
	x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: x.serial()}}) // asks again
	x.claim(30_000)
	x.compare()
}

// limits reaches what takes many calls or much text.
func (x *pair) limits() {
	f := x.reach("A1")
	step := func(name string, value int) {
		x.make(call{Kind: "step", ID: subject, Fence: f, Name: name, Value: strings.Repeat("v", value)})
	}
	step("s", limits.MaxStepBytes+1)
	for i := range limits.MaxStepTotal / limits.MaxStepBytes { // the last one is too much, because names count
		step("s"+strconv.Itoa(i), limits.MaxStepBytes)
	}
	step("s0", 1)
	step("s0", limits.MaxStepBytes)
	x.compare()
	f = x.reach("A1")
	for i := range limits.MaxSteps + 1 {
		step(strconv.Itoa(i), 1)
	}
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: 1, Number: limits.MaxFrame + 1})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: 1, Count: limits.MaxAppendFrames, Number: 1})
	x.make(call{Kind: "append", ID: subject, Fence: f, Number2: limits.MaxAppendFrames, Count: 2, Number: 1})
	x.make(call{Kind: "complete", ID: subject, Fence: f, Number: limits.MaxPayload + 1})
	x.make(call{Kind: "complete", ID: subject, Fence: f, Number: limits.MaxPayload})
	x.compare()
	x.start()
	for i := range limits.MaxOwnClasses + 1 {
		x.make(call{Kind: "create",
			Submit: model.Submission{ID: "00000000-0000-4000-8000-" + strings.Repeat("0", 8) + text(int64(i+1000)),
				Route: model.Route{Namespace: "n", Lane: "l", Kind: "k" + strconv.Itoa(i)}}})
	}
	x.ids = slices.Clone(x.ids[:3])
	x.compare()
}
