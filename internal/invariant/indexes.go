package invariant

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// indexes collects indexes and verifies that no entry lacks a core (X5), and that ready is exactly the queues that
// are not empty.
func (l *look) indexes() {
	var nonEmpty []string
	for key, z := range l.ZSets {
		family, _ := area(key)
		switch family {
		case ":q:":
			nonEmpty = append(nonEmpty, strings.TrimPrefix(key, ":q:"))
			if _, ok := l.Hashes[":routes"][strings.TrimPrefix(key, ":q:")]; !ok {
				l.wrong("queue %s has no route", key)
			}
		case ":delayed", ":alarms", ":done", ":unsuccessful", ":parked", ":blocked", ":paused", ":h:":
		default:
			continue
		}
		for id := range z {
			if _, ok := l.Hashes[":x:"+id]; !ok {
				l.wrong("%s holds %s, which has no core", key, id)
			}
			if family != ":alarms" && family != ":unsuccessful" {
				l.indexed[id] = append(l.indexed[id], key)
			}
		}
	}
	l.catalogue()
	l.ready(nonEmpty)
	for route, at := range l.ZSets[":closed"] {
		if at > float64(l.Now+86400000) {
			l.wrong("route %s is closed until %.0f, which is more than a day", route, at)
		}
		if _, why := l.Hashes[":closings"][route]; l.gates(route) == "" || !why {
			l.wrong("route %s is closed and has gates %q, a reason: %v", route, l.gates(route), why)
		}
	}
	for route, why := range l.Hashes[":closings"] {
		if id, woken := strings.CutPrefix(route, "w"); woken {
			if l.gates(id) == "" || !whole(why) {
				l.wrong("route %s with gates %q was woken %q times", id, l.gates(id), why)
			}
			continue
		}
		if id, measured := strings.CutPrefix(route, "m"); measured {
			l.measured(id, why)
			continue
		}
		if _, closed := l.ZSets[":closed"][route]; !closed {
			l.wrong("route %s has a reason to be closed and is open", route)
		}
	}
}

// catalogue verifies that every entry of the catalogue is of an execution that has the route, or the tag, and that the
// values of tags are those of the sets. That it lacks none is for each execution to say.
func (l *look) catalogue() {
	for key, z := range l.ZSets {
		family, _ := area(key)
		if family != ":cr:" && family != ":ct:" {
			continue
		}
		of := strings.TrimPrefix(key, family)
		tag, value, _ := strings.Cut(of, "=")
		for id := range z {
			if core := l.Hashes[":x:"+id]; core == nil || family == ":cr:" && core["r"] != of {
				l.wrong("%s holds %s, which is elsewhere", key, id)
			} else if have, ok := l.Hashes[":t:"+id][tag]; family == ":ct:" && (!ok || have != value) {
				l.wrong("%s holds %s, whose tag is %q", key, id, have)
			}
		}
		if family == ":ct:" && !slices.Contains(l.Sets[":cv:"+tag], value) {
			l.wrong("%s is there, and its value is not known", key)
		}
	}
	for key, values := range l.Sets {
		tag, ok := strings.CutPrefix(key, ":cv:")
		for _, value := range values {
			if _, there := l.ZSets[":ct:"+tag+"="+value]; ok && !there {
				l.wrong("%s has %q, which no execution has", key, value)
			}
		}
	}
}

// measured verifies what a route says that its gates measure, and those above them.
func (l *look) measured(route, text string) {
	gates := strings.Split(l.gates(route), ",")
	for part := range strings.SplitSeq(text, ",") {
		name, letters, _ := strings.Cut(part, "=")
		if text != "" && len(gates) > 0 && gates[0] == "" || !gateName.MatchString(name) ||
			!slices.Contains([]string{"a", "h", "ah"}, letters) {
			l.wrong("route %s with gates %q says that they measure %q", route, gates, text)
		}
	}
}

// ready verifies that what claims look at is exactly the queues that are not empty, whose lane hands out and that no
// gate closed.
func (l *look) ready(nonEmpty []string) {
	want := map[string][]string{":ready": nil, ":gready": nil}
	add := func(key, member string) {
		if !slices.Contains(want[key], member) {
			want[key] = append(want[key], member)
		}
	}
	for _, route := range nonEmpty {
		namespace, _, _ := strings.Cut(l.Hashes[":routes"][route], "\x1f")
		_, closed := l.ZSets[":closed"][route]
		switch gated := l.gates(route) != ""; {
		case plain(route):
			if l.handsOut(route) {
				add(":ready", route)
			}
			if l.handsOut(route) && l.Root["spaces"] != "" {
				add(":ready", "c"+route)
				add(":ring:"+route, namespace)
			}
		case !gated && l.handsOut(route):
			add(":ready", "c"+class(route))
			add(":ring:"+class(route), namespace)
		case gated && !closed:
			add(":turns:"+class(route)+":"+namespace, route)
			if l.handsOut(route) {
				add(":gready", "c"+class(route))
				add(":gring:"+class(route), namespace)
			}
		}
	}
	for key := range l.ZSets {
		if family, _ := area(key); slices.Contains([]string{":ring:", ":gring:", ":turns:"}, family) {
			want[key] = want[key][:len(want[key]):len(want[key])]
		}
	}
	for key, members := range want {
		got := l.Sets[key]
		if z, ok := l.ZSets[key]; ok {
			got = names(z)
		}
		slices.Sort(members)
		slices.Sort(got)
		if !slices.Equal(members, got) {
			l.wrong("%s is %v, want %v", key, got, members)
		}
	}
}

// gates are those of a route.
func (l *look) gates(route string) string {
	row := strings.Split(l.Hashes[":routes"][route], "\x1f")
	return row[len(row)-1]
}

// ageing is how many ms of waiting are worth a step of priority in the lane of a route; 0 when nothing outweighs it.
func (l *look) ageing(route string) float64 {
	row := strings.SplitN(l.Hashes[":routes"][route], "\x1f", 3)
	if len(row) < 3 {
		return 0
	}
	words := strings.SplitN(l.Hashes[":lanes"][row[0]+"\x1f"+row[1]], " ", 3)
	if len(words) < 3 {
		return 0
	}
	_, age, _ := strings.Cut(words[1], ",")
	ms, _ := strconv.ParseFloat(age, 64)
	return ms
}

// lane is what an operator said of a route's lane: state and retention, "" when nothing.
func (l *look) lane(route string) (state, keep string) {
	row := strings.SplitN(l.Hashes[":routes"][route], "\x1f", 3)
	if len(row) < 3 {
		return "", ""
	}
	words := strings.SplitN(l.Hashes[":lanes"][row[0]+"\x1f"+row[1]], " ", 4)
	if len(words) < 4 {
		return "", ""
	}
	keep, _, _ = strings.Cut(words[1], ",")
	return words[0], keep
}

var laneRow = regexp.MustCompile(
	`(?s)^(active|paused|draining|disabled) ((?:0|[1-9]\d{0,8})(?:(?:/(?:0|[1-9]\d{0,8})){3})?)(,[1-9]\d{0,8})? (0|[1-9]\d{0,15}) .{0,64}$`)

// laneTable verifies what operators said of lanes, and that the root tells whether any of it is out of the ordinary.
func (l *look) laneTable() {
	special := ""
	for name, row := range l.Hashes[":lanes"] {
		if !laneRow.MatchString(row) || strings.Count(name, "\x1f") != 1 {
			l.wrong("lane %q is %q", name, row)
		}
		if !strings.HasPrefix(row, "active 0 ") {
			special = "1"
		}
	}
	if got := l.Root["lanes"]; got != special {
		l.wrong("the root says %q of lanes, want %q", got, special)
	}
}

// configured tells whether an operator ever said something of a route's lane: how long things were kept may have
// changed.
func (l *look) configured(route string) bool {
	state, _ := l.lane(route)
	return state != ""
}

func (l *look) handsOut(route string) bool {
	state, _ := l.lane(route)
	return state != "paused" && state != "disabled"
}

// used verifies how many retained executions each row of the route table counts.
func (l *look) used() {
	used := map[string]int{}
	for key, core := range l.Hashes {
		if strings.HasPrefix(key, ":x:") {
			used[core["r"]]++
		}
	}
	for id := range l.Hashes[":routes"] { // the others of a class are counted under a number of theirs
		if !plain(id) {
			used[class(id)+"000000000"]++
		}
	}
	for id, text := range l.Hashes[":routeuse"] {
		if n, _ := strconv.Atoi(text); n != used[id] || n == 0 {
			l.wrong("route %s counts %d uses, there are %d", id, n, used[id])
		}
	}
	for id, n := range used {
		if l.Hashes[":routeuse"][id] == "" {
			l.wrong("route %s counts no uses, there are %d", id, n)
		}
	}
	for id := range l.Hashes[":routes"] {
		if used[id] == 0 && used[id+"000000000"] == 0 {
			l.wrong("route %s is not used", id)
		}
	}
}

func (l *look) sessions() {
	open := l.ZSets[":sessions"]
	for id, at := range open {
		s := l.Hashes[":s:"+id]
		if s == nil {
			l.wrong("session %s is indexed but has no record", id)
			continue
		}
		if s["exp"] == "" || !whole(s["ttl"]) {
			l.wrong("session %s: %v", id, s)
		}
		if exp, _ := strconv.ParseFloat(s["exp"], 64); at > exp {
			l.wrong("session %s is indexed at %.0f, after its expiry %.0f: its death would be noticed late", id, at,
				exp)
		}
	}
	for key, s := range l.Hashes {
		if id, ok := strings.CutPrefix(key, ":s:"); ok {
			l.session(id, s)
		}
	}
	for key := range l.ZSets {
		if id, ok := strings.CutPrefix(key, ":h:"); ok {
			if _, indexed := open[id]; !indexed {
				l.wrong("session %s holds work but is not indexed", id)
			}
		}
	}
	for key := range l.Lists {
		if id, ok := strings.CutPrefix(key, ":l:"); ok && l.Hashes[":s:"+id] == nil {
			l.wrong("%s has no session", key)
		}
	}
}

// session verifies one record, its notices and what it holds.
func (l *look) session(id string, s map[string]string) {
	_, indexed := l.ZSets[":sessions"][id]
	if s["dead"] == "" && !indexed {
		l.wrong("session %s lives but is not indexed", id)
	}
	if why, told := s["why"]; told && s["dead"] == "" {
		l.wrong("session %s lives and tells why it died: %q", id, why)
	}
	generation, _ := strconv.Atoi(s["lg"])
	before, _ := strconv.Atoi(s["lb"])
	if _, lost := l.Lists[":l:"+id]; s["dead"] == "" && len(l.Lists[":l:"+id]) != generation-before {
		l.wrong("session %s has %d notices for generations (%d, %d]", id, len(l.Lists[":l:"+id]), before, generation)
	} else if s["dead"] != "" && !indexed && lost {
		l.wrong("session %s is dead but keeps notices", id)
	}
	last, _ := strconv.ParseFloat(s["cl"], 64)
	for member, number := range l.ZSets[":h:"+id] {
		if number < 1 || number > last {
			l.wrong("session %s holds %s under claim %.0f of %.0f", id, member, number, last)
		}
	}
}

func (l *look) waiters() {
	for key := range l.ZSets {
		if digest, ok := strings.CutPrefix(key, ":w:"); ok && !slices.Contains(l.Sets[":digests"], digest) {
			l.wrong("waiters of %s would never be rung", digest)
		}
	}
	for key, members := range l.Sets {
		if strings.HasPrefix(key, ":sub:") && !slices.Contains(members, "0") {
			l.wrong("%s lacks class 0", key)
		}
	}
}

// satellites verifies that nothing belongs to an execution that does not exist, and sorts what belongs to attempts.
func (l *look) satellites() {
	for _, id := range names(l.Waitpoints) {
		if _, ok := l.Hashes[":x:"+id]; !ok {
			l.wrong("waitpoints of %s have no core", id)
		}
	}
	for _, owned := range [][]string{names(l.Hashes), names(l.Texts), names(l.Streams), names(l.Lists),
		names(l.ZSets)} {
		for _, key := range owned {
			family, _ := area(key)
			if !slices.Contains([]string{":i:", ":t:", ":k:", ":kl:", ":a:", ":o:", ":f:", ":fm:", ":e:", ":u:", ":us:",
				":um:", ":mb:", ":mk:", ":g:", ":gd:",
				":fd:", ":fl:", ":fs:", ":fe:", ":lg:", ":fo:", ":fi:", ":fc:", ":m:"}, family) {
				continue
			}
			id, attempt, _ := strings.Cut(strings.TrimPrefix(key, family), ":")
			if family == ":g:" || family == ":gd:" {
				if l.Waitpoints[id][attempt] == "" {
					l.wrong("%s has no waitpoint", key)
				}
				continue
			}
			if _, ok := l.Hashes[":x:"+id]; !ok && !(slices.Contains(logs, family) && l.referred(id, attempt)) {
				l.wrong("%s has no core", key)
			}
			switch family {
			case ":o:":
				l.results[id] = append(l.results[id], attempt)
			case ":f:", ":fd:", ":fl:", ":fs:", ":fe:":
				if _, ok := l.Hashes[":fm:"+id+":"+attempt]; !ok &&
					!(family == ":fs:" && l.Hashes[":a:"+id][attempt+"b"] != "") { // a fork has the document itself
					l.wrong("%s has no metadata", key)
				}
			case ":lg:":
				l.logged[id] = append(l.logged[id], attempt)
			case ":fm:":
				l.metas[id] = append(l.metas[id], attempt)
			}
		}
	}
}

func names[T any](m map[string]T) []string {
	list := make([]string, 0, len(m))
	for key := range m {
		list = append(list, key)
	}
	return list
}

// tombstones stand for executions that are gone, and go themselves. One whose time is over holds nobody's id any
// more, even if the server, which has its own clock, has not removed it yet.
func (l *look) tombstones() {
	for key, text := range l.Texts {
		id, ok := strings.CutPrefix(key, ":z:")
		if !ok {
			continue
		}
		parts := strings.SplitN(text, " ", 3)
		over := false
		if len(parts) == 3 {
			until, err := strconv.ParseInt(parts[1], 10, 64)
			over = err == nil && until <= l.Now
		}
		if _, lives := l.Hashes[":x:"+id]; lives && !over && !l.Stepped {
			// a clock that was set back may make it valid again
			l.wrong("%s stands beside a core", key)
		}
		if !l.Expires[key] {
			l.wrong("%s has no TTL", key)
		}
	}
}

// lifetimes: only subscriptions, tombstones, the records of ended sessions, those of workers, what these measured,
// events that were published and best-effort frames expire by themselves.
func (l *look) lifetimes() {
	for key := range l.Expires {
		family, _ := area(key)
		if family == ":sub:" || family == ":ins:" || family == ":z:" || family == ":fz:" || family == ":fl:" ||
			family == ":wk:" || family == ":tm:" || family == ":tk:" || family == ":tn:" || family == ":pb:" ||
			family == ":s:" && l.Hashes[key]["dead"] != "" {
			continue
		}
		l.wrong("%s has a TTL", key)
	}
}
