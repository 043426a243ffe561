package invariant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// flowClass is the counter of a flow's header that counts members in a state (lua/lib/graph.lua).
func flowClass(code string) string {
	switch {
	case strings.HasPrefix(code, "R1"), strings.HasPrefix(code, "G1"), strings.HasPrefix(code, "R4"):
		return "mw"
	case strings.HasPrefix(code, "R2"):
		return "md"
	case strings.HasPrefix(code, "R3"):
		return "mb"
	case strings.HasPrefix(code, "A"):
		return "ma"
	case strings.HasPrefix(code, "S"):
		return "mu"
	}
	return "m" + endMark(code)
}

// endMark is the mark of an edge whose upstream ended in a state, "" for one that has not.
func endMark(code string) string {
	switch strings.TrimSuffix(code, "n") {
	case "T1":
		return "s"
	case "T2":
		return "f"
	case "T3":
		return "c"
	case "T4":
		return "e"
	case "T5":
		return "k"
	}
	return ""
}

// group is what a member waits for (lua/lib/group.lua).
type group struct {
	policy, after, state string
	k, n, s, f, x        int
	unneeded             int // -1: the member is not optional
}

func parseGroup(text string) (g group, ok bool) {
	n, err := fmt.Sscanf(text, "%s %d %s %d %d %d %d %s %d", &g.policy, &g.k, &g.after, &g.n, &g.s, &g.f, &g.x,
		&g.state, &g.unneeded)
	if n == 8 {
		g.unneeded, err = -1, nil
	}
	return g, n >= 8 && err == nil && (g.policy != "failed" || g.unneeded >= 0)
}

// watches: the member runs whatever its upstreams came to.
func (g group) watches() bool { return g.policy == "ended" || g.policy == "failed" }

// aside: its upstreams count for the flow as if it was not there.
func (g group) aside() bool { return g.policy == "ended" || g.unneeded >= 0 }

// mark is what those that depend on a member are told of its end.
func mark(core map[string]string) string {
	if m := endMark(core["s"]); m != "k" || core["fc"] != "not_needed" {
		return m
	}
	return "n"
}

// verdict is what the counters decide.
func (g group) verdict() string {
	if g.watches() {
		switch {
		case g.s+g.f+g.x < g.n:
			return "p"
		case g.policy == "failed" && g.f+g.x == g.unneeded:
			return "i"
		}
		return "s"
	}
	wants := map[string]int{"all": g.n, "any": 1, "quorum": g.k}[g.policy]
	switch {
	case g.s >= wants:
		return "s"
	case g.f+g.x > g.n-wants:
		return "i"
	}
	return "p"
}

func (l *look) core(id string) map[string]string { return l.Hashes[":x:"+id] }

// working tells whether the backlog has a piece of work.
func (l *look) working(kind, id string) bool { return l.Hashes[":work"][kind+":"+id] != "" }

// barred tells whether a flow was cancelled, and its members with it.
func (l *look) barred(flow string) bool {
	h := l.Hashes[":fw:"+flow]
	return h["st"] == "F4" && h["cp"] != "flow_only"
}

// flows verifies the headers against the members, and that the backlog has all that is left to do.
func (l *look) flows() {
	for id := range l.ZSets[":flows"] {
		if l.Hashes[":fw:"+id] == nil {
			l.wrong("flow %s is listed and has no header", id)
		}
	}
	for id := range l.ZSets[":flowdue"] {
		if l.Hashes[":fw:"+id] == nil {
			l.wrong("flow %s is due and has no header", id)
		}
	}
	backlog := map[string]int{}
	for name, text := range l.Hashes[":work"] {
		if _, filed := l.ZSets[":backlog"][name]; !filed {
			l.wrong("work %s is not in the backlog", name)
		}
		backlog[strings.SplitN(text, ",", 2)[0]]++
	}
	if len(l.ZSets[":backlog"]) != len(l.Hashes[":work"]) {
		l.wrong("the backlog has %d entries, and %d pieces of work", len(l.ZSets[":backlog"]), len(l.Hashes[":work"]))
	}
	members := map[string]map[string]int{}
	for key, core := range l.Hashes {
		id, ok := strings.CutPrefix(key, ":x:")
		if !ok || core["fl"] == "" {
			continue
		}
		if members[core["fl"]] == nil {
			members[core["fl"]] = map[string]int{}
		}
		members[core["fl"]][flowClass(core["s"])]++
		if _, listed := l.ZSets[":fx:"+core["fl"]][id]; !listed {
			l.wrong("%s is no member of its flow %s", id, core["fl"])
		}
	}
	for key, h := range l.Hashes {
		if id, ok := strings.CutPrefix(key, ":fw:"); ok {
			if len(l.Lists[":fu:"+id]) > 0 && h["st"] != "F0" && !l.working("r", id) {
				l.wrong("flow %s is %s and nobody releases its roots", id, h["st"])
			}
			l.flow(id, h, members[id], backlog[id])
		}
	}
	for _, owned := range [][]string{names(l.ZSets), names(l.Lists), names(l.Hashes)} {
		for _, key := range owned {
			family, _ := area(key)
			id := strings.TrimPrefix(key, family)
			if slices.Contains([]string{":fx:", ":fu:", ":ft:"}, family) && l.Hashes[":fw:"+id] == nil {
				l.wrong("%s has no header", key)
			}
		}
	}
}

func counter(h map[string]string, field string) int {
	n, _ := strconv.Atoi(h[field])
	return n
}

func (l *look) flow(id string, h map[string]string, members map[string]int, backlog int) {
	say := func(format string, args ...any) {
		l.wrong("flow %s (%s): %s", id, h["st"], fmt.Sprintf(format, args...))
	}
	for field, value := range h {
		if value == "" || len(value) > 64 && field != "cw" {
			say("field %s is %q", field, value)
		}
	}
	if _, ok := engine.FlowStateOf(h["st"]); !ok {
		say("is no state")
	}
	if _, listed := l.ZSets[":flows"][id]; !listed {
		say("is not listed")
	}
	if got, want := counter(h, "bl"), backlog; got != want {
		say("counts %d pieces of work, there are %d", got, want)
	}
	left := len(l.ZSets[":fx:"+id])
	if counter(h, "nn") != left+counter(h, "pu") {
		say("has had %d members, %d are left and %d purged", counter(h, "nn"), left, counter(h, "pu"))
	}
	unended, ended := 0, 0
	for _, field := range []string{"mb", "mw", "md", "ma", "mu"} {
		unended += counter(h, field)
		if counter(h, field) != members[field] {
			say("counts %s %s, there are %d", field, h[field], members[field])
		}
	}
	for _, field := range []string{"ms", "mf", "mc", "me", "mk"} {
		ended += counter(h, field)
		if n := counter(h, field); n != members[field] && (counter(h, "pu") == 0 || n < members[field]) {
			say("counts %s %s, there are %d", field, h[field], members[field])
		}
	}
	if unended+ended != counter(h, "nn") {
		say("counts %d members by state, %d in all", unended+ended, counter(h, "nn"))
	}
	sealed := h["sl"] != "" && h["st"] != "F0"
	switch done := unended == 0; {
	case h["st"] == "F4" && done != (h["en"] != ""):
		say("%d members have not ended, its end is %q", unended, h["en"])
	case (h["st"] == "F2" || h["st"] == "F3") && (!done || h["en"] == ""):
		say("has ended at %q with %d members left", h["en"], unended)
	case h["st"] == "F1" && (h["en"] != "" || done && sealed):
		say("all members have ended, and it has not (%q)", h["en"])
	}
	if l.barred(id) && !l.working("c", id) {
		l.leftovers(id, h, say)
	}
	l.ends(id, h, say)
}

// leftovers: once the cancellation has gone through, nothing is left that it covers.
func (l *look) leftovers(id string, h map[string]string, say func(string, ...any)) {
	for member := range l.ZSets[":fx:"+id] {
		code := l.core(member)["s"]
		if endMark(code) == "" && !(h["cp"] == "cancel_pending" && strings.HasPrefix(code, "A")) &&
			!l.working("x", member) {
			say("member %s (%s) was not cancelled", member, code)
		}
	}
}

// ends verifies the count of members without dependants that did not succeed.
func (l *look) ends(id string, h map[string]string, say func(string, ...any)) {
	failing := 0
	for member := range l.ZSets[":fx:"+id] {
		core := l.core(member)
		if mark := mark(core); mark != "" && mark != "s" && mark != "n" && l.leads[member] == l.aside[member] {
			failing++
		}
	}
	if n := counter(h, "lv"); n != failing && (counter(h, "pu") == 0 || n < failing) {
		say("counts %d ends without success, there are %d", n, failing)
	}
}

// member verifies what a member of a flow waits for.
func (x *execution) member(code codes.Code) {
	x.awaited(code)
	flow, incoming, outgoing := x.core["fl"], x.Hashes[":fi:"+x.id], x.Lists[":fo:"+x.id]
	if flow == "" {
		if incoming != nil || outgoing != nil || x.leads[x.id] > 0 || x.Hashes[":fc:"+x.id] != nil &&
			x.Hashes[":fc:"+x.id]["others"] == "" || code[:1] == "R" && code[:2] == "R3" {
			x.say("is in no flow, and depends on others or others on it")
		}
		x.children(code)
		return
	}
	if x.core["nd"] == "" {
		x.say("has no node")
	}
	if len(outgoing) != x.leads[x.id] {
		x.say("counts %d dependants, there are %d", x.leads[x.id], len(outgoing))
	}
	if aside := strings.Count("\n"+strings.Join(outgoing, "\n"), "\no"); aside != x.aside[x.id] {
		x.say("counts %d dependants that stand aside, there are %d", x.aside[x.id], aside)
	}
	for _, edge := range outgoing {
		to, hash := edge[1:], ":fi:"
		if edge[0] == 'w' {
			continue // a parent may have another wait by now
		}
		if x.core2(to) && x.Hashes[hash+to][x.id] == "" {
			x.say("has an edge to %s, which does not know of it", to)
		}
	}
	x.group(code, flow, incoming)
	x.children(code)
}

func (x *execution) core2(id string) bool { return x.look.core(id) != nil }

func (x *execution) group(code codes.Code, flow string, incoming map[string]string) {
	barred, staging := x.barred(flow), x.Hashes[":fw:"+flow]["st"] == "F0"
	if staging && flowClass(string(code)) != "mb" && endMark(string(code)) == "" {
		x.say("may run, and its flow is not released")
	}
	root := slices.Contains(x.Lists[":fu:"+flow], x.id)
	g, ok := parseGroup(x.Texts[":m:"+x.id])
	if !x.has("g") && x.Texts[":m:"+x.id] == "" {
		if incoming != nil {
			x.say("depends on %d others and has no group", len(incoming))
		}
		if (code == codes.BlockedFirst || code == codes.BlockedReplay) && !root && !barred {
			x.say("waits for nothing, and is not to be released")
		}
		return
	}
	if !ok || len(incoming) != g.n || x.core["g"] != strconv.Itoa(g.n) {
		x.say("depends on %s, and has the group %q and %d edges", x.core["g"], x.Texts[":m:"+x.id], len(incoming))
		return
	}
	var s, f, skipped, unneeded int
	entry := map[bool]string{false: "d", true: "o"}[g.aside()] + x.id
	for from, record := range incoming {
		mark := record[:1]
		switch mark {
		case "s", "l":
			s++
		case "f", "c", "e":
			f++
		case "k", "n":
			skipped++
			unneeded += strings.Count(mark, "n")
		}
		up := x.look.core(from)
		if up != nil && endMark(up["s"]) == "s" && (mark == "." || mark == "~") && !barred && !x.working("u", from) {
			x.say("was not told that %s succeeded", from)
		}
		if up != nil && !slices.Contains(x.Lists[":fo:"+from], entry) {
			x.say("depends on %s, which does not know of it", from)
		}
	}
	if s != g.s || f != g.f || skipped != g.x || g.unneeded >= 0 && unneeded != g.unneeded {
		x.say("has the group %q, its edges say %d succeeded, %d failed, %d skipped, %d of them unneeded",
			x.Texts[":m:"+x.id], s, f, skipped, unneeded)
	}
	if g.state == "p" && g.verdict() != "p" && !barred {
		x.say("has the group %q, which is decided", x.Texts[":m:"+x.id])
	}
	blocked := code == codes.BlockedFirst || code == codes.BlockedReplay
	if blocked && !barred &&
		(g.state == "s" && !(root && (staging || x.working("r", flow))) || g.state == "i" && !x.working("k", x.id)) {
		x.say("is blocked by the group %q", x.Texts[":m:"+x.id])
	}
	if g.state == "p" && !blocked && endMark(string(code)) == "" {
		x.say("runs with the group %q", x.Texts[":m:"+x.id])
	}
}

func (x *execution) children(code codes.Code) {
	hash := x.Hashes[":fc:"+x.id]
	if !x.has("wt") {
		return
	}
	var mode, after, state, rest string
	var n, s, o int
	if k, _ := fmt.Sscanf(x.core["wt"], "%s %d %d %d %s %s %s", &mode, &n, &s, &o, &after, &state, &rest); k != 7 ||
		hash["name"] == "" {
		x.say("waits for %q, name %q", x.core["wt"], hash["name"])
		return
	}
	if state == "d" && after == "cancel" {
		x.remaining(hash)
	}
	if state != "p" {
		return // what ends later is not counted any more
	}
	if s := code[0]; s != 'S' && s != 'T' {
		x.say("waits for %q and is in %s", x.core["wt"], code)
	}
	var ended, succeeded int
	for id, record := range hash {
		if len(id) < 36 {
			continue
		}
		switch mark := record[:1]; mark {
		case ".", "~":
			if c := x.look.core(id); c != nil && endMark(c["s"]) != "" && !x.working("u", id) &&
				!x.barred(x.core["fl"]) {
				x.say("was not told that its child %s ended", id)
			}
		case "s":
			succeeded++
			ended++
		default:
			ended++
		}
	}
	listed := len(hash) - 1
	if hash["others"] != "" {
		listed--
	}
	if succeeded != s || ended != s+o || listed != n {
		x.say("waits for %q, of %d children %d succeeded and %d ended", x.core["wt"], listed, succeeded, ended)
	}
	if ended >= n || mode == "first" && ended > 0 || mode == "success" && s > 0 || mode == "fast" && o > 0 {
		x.say("waits for %q, which is decided", x.core["wt"])
	}
}

// remaining: the children that were open when a wait was over that cancels them are cancelled, or will be.
func (x *execution) remaining(hash map[string]string) {
	for name := range x.look.Hashes[":work"] {
		if strings.HasPrefix(name, "o:"+x.id) {
			return
		}
	}
	for id, record := range hash {
		if c := x.look.core(id); len(id) == 36 && record[:1] == "." && c != nil && endMark(c["s"]) == "" &&
			!x.barred(x.core["fl"]) {
			x.say("its wait is over, and nobody cancels its child %s", id)
		}
	}
}
