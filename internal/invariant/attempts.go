package invariant

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

var (
	attemptTypes = []string{"initial", "retry", "reclaim", "replay", "continue"}
	attemptEnds  = []string{"ended_success", "ended_failure", "ended_cancelled", "interrupted_reclaimed", "continued",
		"rewound", "forked"}
)

// attempts: I1, I5, I6. A pending replay may or may not have run before.
func (x *execution) attempts(code codes.Code) {
	n := x.number("n")
	ran := open(code) || slices.Contains([]codes.Code{"R1t", "R1r", "R2b", "R2r", "G1t", "G1r", "R4t", "R4r", "T1",
		"T2", "T3", "T4", "T5"}, code) ||
		strings.HasSuffix(string(code), "p") && x.has("n") || strings.HasSuffix(string(code), "f") && x.has("lk")
	idle := x.has("bs") && n == x.number("bs") // a fork that has no attempt of its own yet
	for _, f := range []string{"ty", "la", "st", "ss", "cl"} {
		x.want(f, ran && !idle)
	}
	x.want("n", ran)
	x.want("e", ran)
	times, _ := x.link()
	now, before := course{epoch: x.number("e"), attempts: n, links: times, replays: x.takes()}, x.before[x.id].course
	if code[0] == 'T' {
		now.ended = x.core["s"] + " at " + x.core["en"]
	}
	if now.epoch < before.epoch || now.attempts < before.attempts || now.links < before.links ||
		now.links == before.links && (now.replays < before.replays ||
			before.ended != "" && now != before && now.replays == before.replays) {
		x.say("went back from %+v to %+v", before, now)
	}
	x.now[x.id] = past{course: now, points: x.points, suspension: x.Hashes[":u:"+x.id]}
	if ran && !x.has("fo") {
		// A replay and another input start both counts anew.
		others := x.number("rc") + x.number("lc")
		if n < others || x.takes() == 0 && !x.has("lk") && n > others+1 {
			x.say("%v attempts after %v retries, %v reclaims and %v replays", n, x.number("rc"), x.number("lc"),
				x.takes())
		}
		if !x.Stepped && (x.number("st") > x.number("la") || x.number("ct") > x.number("st")) {
			x.say("times out of order: %v", x.core)
		}
	}
	if s := x.Hashes[":s:"+x.core["ss"]]; code == codes.Active && (s == nil || s["exp"] == "") {
		x.say("is held under a session without a record")
	}
}

// link is how often it continued, and the first attempt of its link.
func (x *execution) link() (times, first int) {
	parts := strings.Split(x.core["lk"], ",")
	if len(parts) != 3 {
		return 0, 1
	}
	return atoi(parts[0]), atoi(parts[1])
}

// takes is how often it was replayed, or rewound in this link.
func (x *execution) takes() float64 { return x.number("pc") + x.number("rx") }

// records: every attempt that has ended has one, unless its end is that of the execution and a success. One that was
// revoked has ended.
func (x *execution) records(code codes.Code) {
	n := int(x.number("n"))
	folded, epoch, replays := x.Hashes[":a:"+x.id], 0.0, 0.0
	kept := x.links(n)
	_, first := x.link()
	for i := kept; i <= n; i++ {
		record, ok := folded[strconv.Itoa(i)]
		last := i == n && float64(i) > x.number("bs")
		if ok == (last && (open(code) && code != "A3" || code == codes.Completed)) {
			x.say("attempt %d of %v folded: %v", i, n, ok)
		}
		if !ok {
			continue
		}
		parts := strings.Split(record, "\x1f")
		if len(parts) != 9 || !slices.Contains(attemptTypes, parts[0]) || !slices.Contains(attemptEnds, parts[3]) ||
			!whole(parts[1]) || !whole(parts[2]) || parts[5] == "" || !whole(parts[6]) || !whole(parts[7]) ||
			!whole(parts[8]) {
			x.say("attempt %d is recorded as %q", i, record)
			continue
		}
		if parts[0] == "replay" && float64(i) > x.number("bs")+1 && i >= first {
			replays++
		}
		e, _ := strconv.ParseFloat(parts[6], 64)
		if own := float64(i) > x.number("bs"); own && (e <= epoch || e > x.number("e")) {
			x.say("attempt %d ended under epoch %.0f, the one before under %.0f, the core has %s", i, e, epoch,
				x.core["e"])
		}
		epoch = e
	}
	if replays > x.takes() {
		x.say("%v attempts are replays, the core counts %q and %q", replays, x.core["pc"], x.core["rx"])
	}
	for f, v := range folded {
		switch f {
		case "cancel", "categories":
		case "progress":
			x.progress(v, n)
		default:
			if strings.HasSuffix(f, "b") && x.stands(strings.TrimSuffix(f, "b"), v) {
				continue
			}
			if attempt, ok := strings.CutSuffix(f, "s"); ok {
				took, step, _ := strings.Cut(v, " ")
				if _, recorded := folded[attempt]; !recorded || !whole(took) || step == "" {
					x.say("attempt %q failed in the step %q", attempt, v)
				}
				continue
			}
			if i, err := strconv.Atoi(strings.TrimRight(f, "rw")); err != nil || i > n || i < kept {
				x.say("has a record %q of no attempt", f)
			}
		}
	}
}

// links are "<how often>,<first attempt of this link>,<first attempt that is kept>", and it returns the last. The
// attempt before the link ended because the execution continued.
func (x *execution) links(n int) (kept int) {
	if !x.has("lk") {
		return 1
	}
	parts := strings.Split(x.core["lk"], ",")
	if len(parts) != 3 || !whole(parts[0]) || !whole(parts[1]) || !whole(parts[2]) {
		x.say("has the links %q", x.core["lk"])
		return 1
	}
	times, first, kept := atoi(parts[0]), atoi(parts[1]), atoi(parts[2])
	if times < 1 || first <= times || first > n+1 || kept < 1 || kept >= first {
		x.say("has the links %q of %d attempts", x.core["lk"], n)
	}
	if before := strings.Split(x.Hashes[":a:"+x.id][strconv.Itoa(first-1)], "\x1f"); len(before) < 4 ||
		before[3] != "continued" {
		x.say("attempt %d, before its link, ended as %q", first-1, before)
	}
	for _, attempt := range slices.Concat(x.metas[x.id], x.results[x.id], x.logged[x.id]) {
		if atoi(attempt) < kept && x.Hashes[":fk:"+x.id][attempt] == "" {
			x.say("something of attempt %s is stored, the first one is %d", attempt, kept)
		}
	}
	return kept
}

// progress is "attempt ms percent message", the last of which is the handler's and may hold anything.
func (x *execution) progress(text string, n int) {
	parts := strings.SplitN(text, "\x1f", 4)
	attempt, err := strconv.Atoi(parts[0])
	if len(parts) != 4 || err != nil || attempt < 1 || attempt > n || !whole(parts[1]) ||
		parts[2] != "" && !whole(parts[2]) {
		x.say("has the progress %.100q of %d attempts", text, n)
	}
}

func (x *execution) blobs() {
	input, ok := x.Texts[":i:"+x.id]
	if ok != x.has("in") || float64(len(input)) != x.number("in") {
		x.say("input of %d bytes, the core says %q", len(input), x.core["in"])
	}
	if _, ok := x.Hashes[":t:"+x.id]; ok != x.has("tg") {
		x.say("tags stored: %v, the core says %q", ok, x.core["tg"])
	}
	x.stepLog()
	x.mailbox()
	x.talk()
	size := 0
	for name, value := range x.Hashes[":k:"+x.id] {
		size += len(name) + len(value)
		if strings.HasPrefix(name, "\x1f") {
			x.ownStep(name, value)
		}
	}
	if float64(size) != x.number("sb") {
		x.say("%d bytes of steps, the core says %q", size, x.core["sb"])
	}
}

// stepLog: what people are told of each step is of the steps that are recorded, and of attempts that began.
func (x *execution) stepLog() {
	log := x.Hashes[":kl:"+x.id]
	for name := range x.Hashes[":k:"+x.id] {
		if _, ok := log[name]; !ok {
			x.say("step %q is not in the log of steps", name)
		}
	}
	for name, text := range log {
		parts := strings.Split(text, " ")
		if _, ok := x.Hashes[":k:"+x.id][name]; !ok || !slices.Contains([]int{4, 6, 9}, len(parts)) ||
			!whole(parts[0]) || !whole(parts[1]) ||
			!whole(parts[2]) || !whole(parts[3]) || atoi(parts[0]) < 1 || float64(atoi(parts[0])) > x.number("n") ||
			float64(atoi(parts[3])) > x.number("so") {
			x.say("the log says of the step %q: %q", name, text)
		}
	}
}

// outcomes: a result belongs to an attempt that succeeded: the last of a completed execution, or one that was
// replayed since.
func (x *execution) outcomes(code codes.Code) {
	for _, attempt := range x.results[x.id] {
		parts := strings.Split(x.Hashes[":a:"+x.id][attempt], "\x1f")
		before := len(parts) > 3 && parts[3] == "ended_success"
		if !before && (code != codes.Completed || attempt != x.last()) {
			x.say("has a result :o:%s:%s", x.id, attempt)
		}
	}
}

// last is the number of the last attempt.
func (x *execution) last() string { return strconv.Itoa(int(x.number("n"))) }

func (x *execution) stream(code codes.Code) {
	for _, attempt := range x.logged[x.id] {
		x.lines(attempt)
	}
	latest := 0
	for _, attempt := range x.metas[x.id] {
		if strings.HasSuffix(x.Hashes[":fk:"+x.id][attempt], " x") {
			continue // it is there for forks alone
		}
		meta := x.Hashes[":fm:"+x.id+":"+attempt]
		i, _ := strconv.Atoi(attempt)
		latest = max(latest, i)
		if i < 1 || float64(i) > x.number("n") {
			x.say("stream of attempt %d of %s", i, x.core["n"])
		}
		x.logs(attempt, meta)
		closed := attempt != x.last() || !open(code) || code == codes.Revoked
		if (meta["z"] != "") != closed || (meta["y"] != "") != closed {
			x.say("stream of attempt %d: closed %q %q, should be %v", i, meta["z"], meta["y"], closed)
		}
	}
	if latest > 0 && x.core["fa"] != strconv.Itoa(latest) || latest == 0 && x.has("fa") {
		x.say("frames of attempt %q, the newest stream is %d", x.core["fa"], latest)
	}
}
