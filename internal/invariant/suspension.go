package invariant

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// reasons are the codes that a suspension may have by its reason.
var reasons = map[string]codes.Code{
	"waiting_for_signal": "S1", "step_boundary": "S1", "waiting_for_approval": "S2", "waiting_for_callback": "S3",
	"waiting_for_tool_result": "S4", "waiting_for_operator_review": "S5", "manual_pause": "S5",
	"paused_by_policy": "S6", "paused_by_budget": "S7", "waiting_for_children": "S8",
}

var (
	closeReasons = []string{"resumed", "resumed_by_operator", "cancelled", "rewound", "expired:execution_deadline",
		"timed_out_fail", "timed_out_cancel", "timed_out_expire", "timed_out_auto_resume"}
	causes = []string{"signal", "message", "children", "operator", "timeout", "already_satisfied", "cancelled",
		"deadline", "rewound"}
)

// suspensionOf tells a suspension from others: by its id, when it began and who asked.
func suspensionOf(u map[string]string) string { return u["id"] + " " + u["cr"] + " " + u["ho"] }

// suspension: A suspended execution has an open record whose waitpoints are active; nobody else has
// either. What an ended suspension leaves for the next claim is counted in the core.
func (x *execution) suspension(code codes.Code, state codes.State) {
	points := x.waitpoints(state.Terminal())
	x.points = points
	u := x.Hashes[":u:"+x.id]
	x.want("uw", u != nil || len(points) > 0)
	suspended := state.LifecyclePhase == "suspended"
	open := u != nil && u["cl"] == ""
	if suspended != open {
		x.say("suspended %v, its record is open: %v", suspended, open)
	}
	due := firstDue(u, points)
	x.want("tt", open && due != "")
	if open && due != x.core["tt"] {
		x.say("the suspension ends at %q, the core says %q", due, x.core["tt"])
	}
	// A replay, or another input, may have dropped what the resumption told.
	resumed := slices.Contains([]string{"resumed", "resumed_by_operator", "timed_out_auto_resume"}, u["cs"])
	if x.has("sg") && (!resumed || x.number("sg") < 512) || !x.has("sg") && resumed && x.takes() == 0 && !x.has("lk") {
		x.say("a claim would bring %q bytes of the suspension %v", x.core["sg"], u)
	}
	x.active(u, open, points)
	if u != nil {
		x.record(code, u, open, points)
	}
	x.satisfied(u, open)
	x.matched(u)
	x.reclosed(u)
}

// active: the active waitpoints are those that the open record lists, as it says.
func (x *execution) active(u map[string]string, open bool, points map[string]point) {
	var listed []string
	if u["wp"] != "" {
		listed = strings.Split(u["wp"], ",")
	}
	for _, id := range listed {
		p, known := points[id]
		if left(u) && known && p.suspension != u["id"] { // it stayed open, and may have been closed since
			continue
		}
		if u["several"] != "" && known && p.suspension == u["id"] && p.state == "c" &&
			(p.reason == "answered" || p.reason == "timed_out") {
			if u["settled"] != "1" {
				x.say("waitpoint %s is closed as %q, unlike its suspension: %v", id, p.reason, u)
			}
			continue
		}
		if known && p.suspension != u["id"] || !known && open || known && (p.state == "a") != open ||
			known && p.state != "a" && p.state != "c" {
			x.say("the suspension %s (open %v) waits on %s: %q", u["id"], open, id, p)
		}
		if known && (p.expires != u["to"] && u["several"] == "" && open || !open && p.reason != u["cs"]) {
			x.say("waitpoint %s expires at %q, closed as %q, unlike its suspension: %v", id, p.expires, p.reason, u)
		}
	}
	for id, p := range points {
		if p.state == "a" && !slices.Contains(listed, id) {
			x.say("waitpoint %s is active, the suspension lists %v", id, listed)
		}
	}
}

// firstDue is when the first time limit of an open suspension is over: its own or, if it asks several things, that of a
// waitpoint; "" for never.
func firstDue(u map[string]string, points map[string]point) string {
	if u == nil {
		return ""
	}
	due := u["to"]
	for id, p := range points {
		if u["several"] != "" && p.state == "a" && strings.Contains(u["wp"], id) && p.expires != "" &&
			(due == "" || atoi(p.expires) < atoi(due)) {
			due = p.expires
		}
	}
	return due
}

// left tells whether a suspension ended in a way that leaves waitpoints of the handler open.
func left(u map[string]string) bool {
	return u["bh"] == "auto_resume_open" && u["cs"] == "timed_out_auto_resume" || u["cs"] == "rewound"
}

func (x *execution) record(code codes.Code, u map[string]string, open bool, points map[string]point) {
	say := func(what string) { x.say("%s: %v", what, u) }
	if len(u["id"]) != 36 || !whole(u["cr"]) || len(strings.Split(u["ho"], " ")) != 2 || u["c"] == "" ||
		reasons[u["rc"]] == "" {
		say("the suspension lacks something")
	}
	for field, value := range u {
		if value == "" {
			x.say("field %s of the suspension is stored empty", field)
		}
	}
	if open {
		if reasons[u["rc"]] != code {
			say("the state is not that of the reason")
		}
		for _, field := range []string{"cs", "ca", "tr", "cz", "by", "why", "re"} {
			if u[field] != "" {
				say("an open suspension tells how it ended")
			}
		}
	} else if !slices.Contains(closeReasons, u["cs"]) || !slices.Contains(causes, u["ca"]) || !whole(u["cl"]) {
		say("a closed suspension tells how it ended")
	}
	early := u["ca"] == "already_satisfied"
	if mixed := slices.ContainsFunc(strings.Split(u["c"], "\x1e"),
		arrives); (u["cz"] != "") != (u["ca"] == "signal" || early) && (!early || !mixed) {
		say("only what a signal ended has a closer")
	}
	x.counts(u, open, points)
}

// arrives tells whether a node of a condition is met by something else than signals.
func arrives(node string) bool { return node == "K" || strings.HasPrefix(node, "M\x1f") }

// counts: the record counts what its waitpoints count, as long as all of them are known and what was matched still
// tells.
func (x *execution) counts(u map[string]string, open bool, points map[string]point) {
	signals, matched, all := 0, 0, true
	for id := range strings.SplitSeq(u["wp"], ",") {
		p, known := points[id]
		all = all && (known || id == "")
		signals += atoi(p.signals)
		matched += atoi(p.matched)
	}
	if all && !left(u) && (signals != atoi(u["gn"]) || (open || u["cz"] != "") && matched != atoi(u["gm"])) {
		x.say("the waitpoints count %d signals, %d matched, the suspension %q and %q", signals, matched, u["gn"],
			u["gm"])
	}
	if atoi(u["gb"]) > 262144 || atoi(u["gn"]) > 10000+1000 || (u["gn"] != "") != (u["gl"] != "") {
		x.say("the suspension counts %v", u)
	}
}

// satisfied: the parts of the condition that are met, as long as it is open, are counted by node.
func (x *execution) satisfied(u map[string]string, open bool) {
	tokens := x.Hashes[":us:"+x.id]
	if !open && len(tokens) > 0 {
		x.say("no condition is open, %d parts are met", len(tokens))
	}
	if !open {
		return
	}
	counts := map[string]int{}
	for token, signal := range tokens {
		node, _, ok := strings.Cut(token, "\x1f")
		if !ok || len(signal) != 36 {
			x.say("the part %q of the condition is met by %q", token, signal)
		}
		counts[node]++
	}
	for i, text := range strings.Split(u["c"], "\x1e") {
		node := strconv.Itoa(i + 1)
		if arrives(text) {
			if u["n"+node] != "" && u["n"+node] != "1" {
				x.say("node %s is met %q times", node, u["n"+node])
			}
			continue
		}
		if counts[node] > atoi(u["n"+node]) || counts[node] < atoi(u["n"+node]) && u["settled"] == "" {
			x.say("%d parts of node %s are met, the suspension counts %q", counts[node], node, u["n"+node])
		}
		delete(counts, node)
	}
	if len(counts) > 0 {
		x.say("parts of no node are met: %v", counts)
	}
}

// matched: the signals that a condition took are kept whole. A repeat of a signal's id under another key counts twice
// and is kept once.
func (x *execution) matched(u map[string]string) {
	signals, size := x.Hashes[":um:"+x.id], 0
	for id, text := range signals {
		g, ok := parseSignal(text)
		if !ok || g.id != id || !strings.Contains(","+u["wp"]+",", ","+g.waitpoint+",") && g.effect != "timeout" {
			x.say("matched signal %s is %.200q", id, text)
		}
		if (g.effect == "timeout") != (id == u["id"]) ||
			g.effect == "timeout" && u["bh"] != "auto_resume_with_timeout_signal" {
			x.say("matched signal %s has effect %s", id, g.effect)
		}
		size += len(text)
	}
	if len(signals) > atoi(u["gm"]) || size > atoi(u["gb"]) || (len(signals) == 0) != (atoi(u["gm"]) == 0) {
		x.say("%d signals of %d bytes are matched, the suspension counts %q of %q", len(signals), size, u["gm"],
			u["gb"])
	}
	if u["cz"] != "" && signals[u["cz"]] == "" {
		x.say("signal %s closed the suspension and is not among the matched", u["cz"])
	}
}

// reclosed: the record of a suspension, once closed, changes no more; an open one only counts up.
func (x *execution) reclosed(u map[string]string) {
	before := x.before[x.id].suspension
	if before != nil && u == nil {
		x.say("forgot its last suspension %s", before["id"])
	}
	if before == nil || u == nil || suspensionOf(before) != suspensionOf(u) {
		return
	}
	if before["cl"] != "" && (before["cl"] != u["cl"] || before["cs"] != u["cs"] || before["ca"] != u["ca"] ||
		before["gm"] != u["gm"]) ||
		before["c"] != u["c"] || before["wp"] != u["wp"] || atoi(before["gn"]) > atoi(u["gn"]) {
		x.say("the suspension went back from %v to %v", before, u)
	}
}

// ownStep: steps of the library keep what a wait was answered, or a waitpoint that was handed out before its attempt
// waits. What the second tells makes the token, so it must be that of the record.
func (x *execution) ownStep(name, value string) {
	if strings.HasPrefix(name, "\x1fa:") {
		if parts := strings.SplitN(value, "\x1f", 10); len(parts) < 9 || parts[0] != name[3:] || len(parts[2]) != 36 {
			x.say("step %q is %.200q", name, value)
		}
		return
	}
	if strings.HasPrefix(name, "\x1fm:") { // what a receipt took, or why it took nothing
		why, messages, _ := strings.Cut(value, "\x1f")
		if (why == "") != (messages != "") {
			x.say("step %q is %.200q", name, value)
		}
		return
	}
	if strings.HasPrefix(name, "\x1fc:") { // how the children of a wait ended
		for part := range strings.SplitSeq(value, "\x1f") {
			if value != "" && len(strings.SplitN(part, ",", 4)) != 4 {
				x.say("step %q is %.200q", name, value)
			}
		}
		return
	}
	parts := strings.SplitN(value, " ", 5)
	if !strings.HasPrefix(name, "\x1fw:") || len(parts) != 5 || len(parts[0]) != 36 || !whole(parts[3]) {
		x.say("step %q is %.200q", name, value)
		return
	}
	p, known := x.points[parts[0]]
	key := p.key
	switch {
	case p.event != "" && p.open() && p.signals == "0":
		key += "\x1e1" + p.event
	case p.event != "":
		key += "\x1e0" + p.event
	}
	if known && (p.kid != parts[1] || p.nonce != parts[2] || key != parts[4]) {
		x.say("step %q is %.200q, its waitpoint %q", name, value, p)
	}
}
