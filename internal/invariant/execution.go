package invariant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// execution checks one core and everything that belongs to it.
type execution struct {
	*look
	id   string
	core map[string]string

	points map[string]point // its waitpoints
}

func (x *execution) say(format string, args ...any) {
	x.wrong("%s (%s): %s", x.id, x.core["s"], fmt.Sprintf(format, args...))
}

func (x *execution) number(field string) float64 {
	v, ok := x.core[field]
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n != math.Trunc(n) || n < 0 || strconv.FormatFloat(n, 'f', 0, 64) != v {
		x.say("field %s is %q", field, v)
	}
	return n
}

func (x *execution) has(field string) bool { _, ok := x.core[field]; return ok }

func (x *execution) want(field string, present bool) {
	if x.has(field) != present {
		x.say("field %s is %q, should be present: %v", field, x.core[field], present)
	}
}

// open tells whether the last attempt is still to be finished.
func open(code codes.Code) bool {
	return code[0] == 'S' || slices.Contains([]codes.Code{"A1", "A3", "R1i", "R2ai", "R2c", "R4i", "G1i"},
		code)
}

func (x *execution) verify() {
	code := codes.Code(x.core["s"])
	state, legal := codes.Project(code)
	if !legal || code == codes.LeaseExpired {
		x.say("is no code that may be stored")
		return
	}
	for f, v := range x.core {
		if v == "" {
			x.say("field %s is stored empty", f)
		}
	}
	if _, ok := x.Hashes[":routes"][x.core["r"]]; !ok {
		x.say("route %q does not exist", x.core["r"])
	}
	x.want("ct", true)
	x.index(code, state)
	x.member(code)
	x.timers(code, state)
	x.gate(code)
	x.replays(code)
	x.history()
	x.suspension(code, state)
	x.attempts(code)
	if x.has("pu") {
		x.purged(state)
		return
	}
	x.records(code)
	x.blobs()
	x.outcomes(code)
	x.stream(code)
}

// own is for how long its policy keeps what ended so; 0: it does not say.
func (x *execution) own(state codes.State) time.Duration {
	kept, _ := valid.UnpackRetentions(x.core["rt"])
	return valid.RetentionOf(kept, state.Public)
}

// kept is for how long it stays after its end, ms. A lane's retention holds for what ends after it was set.
func (x *execution) kept() float64 {
	state, _ := codes.Project(codes.Code(x.core["s"]))
	if own := x.own(state); own > 0 {
		return float64(own.Milliseconds())
	}
	_, text := x.lane(x.core["r"])
	if keep, _ := valid.UnpackRetentions(text); valid.RetentionOf(keep, state.Public) > 0 {
		return float64(valid.RetentionOf(keep, state.Public).Milliseconds())
	}
	if state.Public == flowfabric.Completed {
		return 86400000
	}
	return 14 * 86400000
}

// index: X1, X2, X3, I3, I4. A revoked execution waits for the tick: it is in no index but the alarms.
func (x *execution) index(code codes.Code, state codes.State) {
	indexes := x.indexed[x.id]
	want, score := "", 0.0
	switch {
	case state.Terminal():
		want, score = ":done", max(x.number("en")+x.kept(), heldTill(x.core["ky"]))
	case code == codes.Active:
		want, score = ":h:"+x.core["ss"], x.number("cl")
	case state.LifecyclePhase == "suspended":
		want = ":parked"
		score, _ = strconv.ParseFloat(x.Hashes[":u:"+x.id]["cr"], 64)
	case code == codes.Revoked:
		if len(indexes) > 0 {
			x.say("is in %v, belongs in none", indexes)
		}
	case granted(code):
		want, score = ":h:"+x.core["gs"], x.number("gn")
	case state.Eligibility == "blocked_by_operator":
		want, score = ":paused", x.pausedAt()
	case state.Eligibility == "eligible_now":
		want, score = ":q:"+x.core["r"], x.score()
	case state.Eligibility == "not_eligible_until_time":
		want, score = ":delayed", x.number("du")
	case state.Eligibility == "blocked_by_dependencies":
		want, score = ":blocked", x.number("ct")
	default:
		x.say("belongs in no index of this library")
		return
	}
	if want != "" && (len(indexes) != 1 || indexes[0] != want) {
		x.say("is in %v, belongs in %s", indexes, want)
	} else if got := x.ZSets[want][x.id]; got != score && !x.pinned(state, got, score) &&
		!(state.Terminal() && x.own(state) == 0 && x.configured(x.core["r"]) && got > x.number("en")) {
		x.say("is in %s at %.0f, belongs at %.0f", want, got, score)
	}
	if code != codes.BlockedFirst && code != "R4f" || !x.has("du") {
		// a member, and one that an operator holds, keep until when it is delayed
		x.want("du", state.Eligibility == "not_eligible_until_time")
	}
	x.want("en", state.Terminal())
	x.unsuccessful(state)
	x.listed()
}

// listed: the catalogue has it under its route, and under each tag that is kept.
func (x *execution) listed() {
	kept := x.Root["index"]
	if strings.HasPrefix(kept, "1") {
		x.entry(":cr:" + x.core["r"])
	}
	for _, word := range strings.Fields(kept)[min(1, len(strings.Fields(kept))):] {
		key, ready := strings.CutPrefix(word, "+")
		if value, tagged := x.Hashes[":t:"+x.id][key]; ready && tagged && x.Root["full:"+key] == "" {
			x.entry(":ct:" + key + "=" + value)
		}
	}
}

// entry: it is in a set of the catalogue, by when it was created.
func (x *execution) entry(key string) {
	if at, ok := x.ZSets[key][x.id]; !ok || at != x.number("ct") {
		x.say("is in %s at %.0f (%v), belongs at %.0f", key, at, ok, x.number("ct"))
	}
}

// unsuccessful: what ended other than completed, and nothing else, is listed by when it ended.
func (x *execution) unsuccessful(state codes.State) {
	at, listed := x.ZSets[":unsuccessful"][x.id]
	if want := state.Terminal() && state.Public != flowfabric.Completed; listed != want {
		x.say("is listed as unsuccessful: %v, want %v", listed, want)
	} else if listed && at != x.number("en") {
		x.say("is in :unsuccessful at %.0f, belongs at %.0f", at, x.number("en"))
	}
}

// pausedAt is when an operator paused it: its history tells, unless that was long ago.
func (x *execution) pausedAt() float64 {
	at := x.ZSets[":paused"][x.id]
	for _, entry := range x.Lists[":e:"+x.id] {
		if parts := strings.SplitN(entry, "\x1f", 3); parts[0] == "paused" && len(parts) == 3 {
			at, _ = strconv.ParseFloat(parts[1], 64)
		}
	}
	return at
}

// granted tells whether a worker asks its gates.
func granted(code codes.Code) bool { return strings.HasPrefix(string(code), "G1") }

// score is its place in its queue.
func (x *execution) score() float64 {
	step := 1e12
	if age := x.ageing(x.core["r"]); age > 0 {
		step = age
	}
	return x.number("ct") - x.number("pr")*step
}

// pinned tells whether an ended member is filed behind its own time, because its flow had not ended when that came.
func (x *execution) pinned(state codes.State, got, score float64) bool {
	h := x.Hashes[":fw:"+x.core["fl"]]
	if !state.Terminal() || h == nil || got < score {
		return false
	}
	ended, _ := strconv.ParseFloat(h["en"], 64)
	return got <= max(float64(x.Now+3600000), ended+x.kept())
}

// timers: X4, and that the one alarm is the earliest of what can fire. That of a revoked execution is its requeue,
// which may not wait longer than its deadline.
func (x *execution) timers(code codes.Code, state codes.State) {
	x.want("ta", code == codes.Active && x.has("to"))
	if x.has("tr") && (!x.has("to") || !open(code) || code == codes.Revoked) {
		x.say("keeps attempt time")
	}
	due := math.Inf(1)
	if x.has("dl") {
		due = x.number("dl")
	}
	for _, field := range []string{"gx", "gs", "gn"} {
		x.want(field, granted(code))
	}
	for _, timer := range []string{"ta", "tt", "gx"} {
		if x.has(timer) {
			due = min(due, x.number(timer))
		}
	}
	at, armed := x.ZSets[":alarms"][x.id]
	switch {
	case code == codes.Revoked:
		if !armed || at > max(due, float64(x.Now)) {
			x.say("has its alarm at %.0f (%v), nobody would requeue it by %.0f", at, armed, due)
		}
	case state.Terminal() || math.IsInf(due, 1):
		if armed {
			x.say("has an alarm at %.0f and nothing to wait for", at)
		}
	case !armed || at != due:
		x.say("has its alarm at %.0f, should be %.0f", at, due)
	}
}

// replays: what a replay leaves on the core, and the deadline span that the next one needs.
func (x *execution) replays(code codes.Code) {
	replays := x.number("pc")
	if x.has("pc") != (replays > 0) {
		x.say("has %q replays", x.core["pc"])
	}
	if x.has("ds") && x.number("ds") == 0 {
		x.say("has a deadline span of 0")
	}
	if x.has("rx") && x.number("rx") == 0 {
		x.say("has %q rewinds", x.core["rx"])
	}
	// Another input starts the count of rewinds anew.
	if id := x.core["rq"]; x.has("rq") && (len(id) != 36 || x.takes() == 0 && !x.has("lk")) {
		x.say("was last replayed by request %q, %v times", id, x.takes())
	}
	if code == codes.WaitingReplay && x.takes() == 0 && !x.has("fo") {
		x.say("waits for a replay that nobody asked for")
	}
}

// history is bounded.
func (x *execution) history() {
	if n := len(x.Lists[":e:"+x.id]); n > 1000 {
		x.say("has %d events in its history", n)
	}
}

// purged: what is purged in slices has ended; what of it is left is nobody's business any more.
func (x *execution) purged(state codes.State) {
	if !state.Terminal() {
		x.say("is being purged")
	}
	x.number("pu")
}
