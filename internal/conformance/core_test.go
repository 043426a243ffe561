package conformance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// execution checks one core and everything that belongs to it.
type execution struct {
	*checker
	id   string
	core map[string]string
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

func (x *execution) verify() {
	code := flowfabric.Code(x.core["s"])
	state, legal := flowfabric.Project(code)
	if !legal || code == flowfabric.CodeLeaseExpired {
		x.say("is no code that may be stored")
		return
	}
	for f, v := range x.core {
		if v == "" {
			x.say("field %s is stored empty", f)
		}
		if len(v) > 64 {
			x.say("field %s has %d bytes and breaks the compact encoding", f, len(v))
		}
	}
	if _, ok := x.hashes[":routes"][x.core["r"]]; !ok {
		x.say("route %q does not exist", x.core["r"])
	}
	x.want("ct", true)
	x.home(code, state)
	x.timers(code, state)
	x.attempts(code)
	x.blobs(code)
	x.stream(code)
}

// home: X1, X2, X3, I3, I4.
func (x *execution) home(code flowfabric.Code, state flowfabric.State) {
	homes := x.homes[x.id]
	want, score := "", 0.0
	switch {
	case state.Terminal():
		want, score = ":done", x.number("en")+86400000
	case code == flowfabric.CodeActive:
		want, score = ":h:"+x.core["ss"], x.number("cl")
	case state.Eligibility == "eligible_now":
		want, score = ":q:"+x.core["r"], x.number("ct")-x.number("pr")*1e12
	case state.Eligibility == "not_eligible_until_time":
		want, score = ":delayed", x.number("du")
	default:
		x.say("has no home in this library")
		return
	}
	if len(homes) != 1 || homes[0] != want {
		x.say("is in %v, belongs in %s", homes, want)
	} else if got := x.zsets[want][x.id]; got != score {
		x.say("is in %s at %.0f, belongs at %.0f", want, got, score)
	}
	x.want("du", state.Eligibility == "not_eligible_until_time")
	x.want("en", state.Terminal())
}

// timers: X4, and that the one alarm is the earliest of what can fire.
func (x *execution) timers(code flowfabric.Code, state flowfabric.State) {
	active := code == flowfabric.CodeActive
	x.want("ta", active && x.has("to"))
	if x.has("tr") && (!x.has("to") || !slices.Contains([]flowfabric.Code{"A1", "R1i", "R2ai"}, code)) {
		x.say("keeps attempt time")
	}
	due := math.Inf(1)
	if x.has("dl") {
		due = x.number("dl")
	}
	if x.has("ta") {
		due = min(due, x.number("ta"))
	}
	at, armed := x.zsets[":alarms"][x.id]
	switch {
	case state.Terminal() || math.IsInf(due, 1):
		if armed {
			x.say("has an alarm at %.0f and nothing to wait for", at)
		}
	case !armed || at != due:
		x.say("has its alarm at %.0f, should be %.0f", at, due)
	}
}

// attempts: I1, I5, I6.
func (x *execution) attempts(code flowfabric.Code) {
	n := x.number("n")
	ran := slices.Contains([]flowfabric.Code{"A1", "R1i", "R1t", "R1r", "R2ai", "R2b", "T1", "T2", "T3", "T4"}, code)
	for _, f := range []string{"n", "e", "ty", "la", "st", "ss", "cl"} {
		x.want(f, ran)
	}
	now, before := past{epoch: x.number("e"), attempts: n}, x.past[x.id]
	if code[0] == 'T' {
		now.ended = x.core["s"] + " at " + x.core["en"]
	}
	if now.epoch < before.epoch || now.attempts < before.attempts || before.ended != "" && now != before {
		x.say("went back from %+v to %+v", before, now)
	}
	x.past[x.id] = now
	if ran {
		if others := x.number("rc") + x.number("lc"); n != others && n != others+1 {
			x.say("%v attempts after %v retries and %v reclaims", n, x.number("rc"), x.number("lc"))
		}
		if x.number("st") > x.number("la") || x.number("ct") > x.number("st") {
			x.say("times out of order: %v", x.core)
		}
	}
	if s := x.hashes[":s:"+x.core["ss"]]; code == flowfabric.CodeActive && (s == nil || s["exp"] == "") {
		x.say("is held under a session without a record")
	}
	folded := x.hashes[":a:"+x.id]
	open := slices.Contains([]flowfabric.Code{"A1", "R1i", "R2ai", "T1"}, code)
	for i := range int(n) {
		record, ok := folded[strconv.Itoa(i)]
		if last := i == int(n)-1; ok == (last && open) {
			x.say("attempt %d of %v folded: %v", i, n, ok)
		}
		if !ok {
			continue
		}
		parts := strings.Split(record, "\x1f")
		if len(parts) != 6 || !slices.Contains([]string{"ended_failure", "interrupted_reclaimed", "ended_cancelled"}, parts[3]) ||
			!slices.Contains([]string{"initial", "retry", "reclaim"}, parts[0]) {
			x.say("attempt %d is recorded as %q", i, record)
		}
	}
	for f := range folded {
		i, err := strconv.Atoi(strings.TrimSuffix(f, "r"))
		if f != "cancel" && f != "categories" && (err != nil || i >= int(n)) {
			x.say("has a record %q of no attempt", f)
		}
	}
}

func (x *execution) blobs(code flowfabric.Code) {
	input, ok := x.texts[":i:"+x.id]
	if ok != x.has("in") || float64(len(input)) != x.number("in") {
		x.say("input of %d bytes, the core says %q", len(input), x.core["in"])
	}
	if _, ok := x.hashes[":t:"+x.id]; ok != x.has("tg") {
		x.say("tags stored: %v, the core says %q", ok, x.core["tg"])
	}
	size := 0
	for name, value := range x.hashes[":k:"+x.id] {
		size += len(name) + len(value)
	}
	if float64(size) != x.number("sb") {
		x.say("%d bytes of steps, the core says %q", size, x.core["sb"])
	}
	for key := range x.texts {
		if rest, ok := strings.CutPrefix(key, ":o:"+x.id+":"); ok && (code != flowfabric.CodeCompleted || rest != x.last()) {
			x.say("has a result %s", key)
		}
	}
}

// last is the index of the last attempt.
func (x *execution) last() string { return strconv.Itoa(int(x.number("n")) - 1) }

func (x *execution) stream(code flowfabric.Code) {
	latest := -1
	for key, meta := range x.hashes {
		attempt, ok := strings.CutPrefix(key, ":fm:"+x.id+":")
		if !ok {
			continue
		}
		i, _ := strconv.Atoi(attempt)
		latest = max(latest, i)
		if float64(i) >= x.number("n") {
			x.say("stream of attempt %d of %s", i, x.core["n"])
		}
		entries := x.streams[":f:"+x.id+":"+attempt]
		count, _ := strconv.Atoi(meta["c"])
		if meta["q"] != meta["c"] || len(entries) > count || len(entries) == 0 || entries[len(entries)-1].ID != meta["i"] {
			x.say("stream of attempt %d: %v with %d entries", i, meta, len(entries))
		}
		for j, entry := range entries {
			if entry.FieldValues["q"] != strconv.Itoa(count-len(entries)+j+1) {
				x.say("frame %s of attempt %d has sequence %s", entry.ID, i, entry.FieldValues["q"])
			}
		}
		closed := attempt != x.last() || !slices.Contains([]flowfabric.Code{"A1", "R1i", "R2ai"}, code)
		if (meta["z"] != "") != closed || (meta["y"] != "") != closed {
			x.say("stream of attempt %d: closed %q %q, should be %v", i, meta["z"], meta["y"], closed)
		}
	}
	if latest >= 0 && x.core["fa"] != strconv.Itoa(latest) || latest < 0 && x.has("fa") {
		x.say("frames of attempt %q, the newest stream is %d", x.core["fa"], latest)
	}
}
