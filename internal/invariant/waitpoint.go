package invariant

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/record"
)

// point is one waitpoint as the layout writes it.
type point struct {
	state, key, kid, digest, nonce                  string
	created, activated, expires, suspension         string
	signals, matched, last, closed, reason, payload string
	event                                           string // what stands for the subject of the one that it takes
}

// open tells whether the waitpoint takes signals.
func (p point) open() bool { return p.state == "p" || p.state == "a" }

// endless is the place in :open: of a waitpoint that has no end.
const endless = 9999999999999

// end is the place of an open waitpoint in :open:.
func (p point) end() float64 {
	if p.expires == "" {
		return endless
	}
	at, _ := strconv.ParseFloat(p.expires, 64)
	return at
}

func parsePoint(text string) (p point, ok bool) {
	v := strings.Split(text, "\x1f")
	if len(v) != 15 {
		return p, false
	}
	key, event, _ := record.Event(v[1])
	return point{v[0], key, v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
		v[14], event}, true
}

// most is how many waitpoints an execution may be seen with: 64 pending and 16 fresh ones open, 64 closed.
const most = 144

// waitpoints verifies every record of an execution, its entries in the two indexes, and its log. It returns them by id.
func (x *execution) waitpoints(terminal bool) map[string]point {
	all, opened := map[string]point{}, 0
	for id, text := range x.Waitpoints[x.id] {
		p, ok := parsePoint(text)
		if !ok {
			x.say("waitpoint %s is %.200q", id, text)
			continue
		}
		all[id] = p
		if p.open() {
			opened++
		}
		x.waitpoint(id, p)
	}
	if float64(opened) != x.number("wp") || x.has("wp") != (opened > 0) {
		x.say("%d open waitpoints, the core says %q", opened, x.core["wp"])
	}
	if terminal && opened > 0 {
		x.say("has ended with %d open waitpoints", opened)
	}
	if len(all) > most {
		x.say("remembers %d waitpoints", len(all))
	}
	x.reopened(all)
	return all
}

func (x *execution) waitpoint(id string, p point) {
	say := func(what string) { x.say("waitpoint %s: %s: %q", id, what, p) }
	if len(id) != 36 || p.key == "" || p.kid == "" || len(p.digest) != 64 || len(p.nonce) != 32 || !whole(p.created) {
		say("identity")
	}
	if !whole(p.signals) || !whole(p.matched) || !whole(p.payload) || atoi(p.matched) > atoi(p.signals) ||
		(p.signals == "0") != (p.last == "") {
		say("counts")
	}
	if p.open() != (p.closed == "") || p.open() != (p.reason == "") || !p.open() && !whole(p.closed) {
		say("a closed one, and no other, tells when and why")
	}
	member := x.id + ":" + id
	expiry, pending := x.ZSets[":pending"][member]
	if pending != (p.state == "p") || pending && expiry != p.end() {
		x.say("waitpoint %s (%s) is in the pending ones: %v at %.0f, expires %q", id, p.state, pending, expiry,
			p.expires)
	}
	end, opened := x.ZSets[":open:"+p.kid][member]
	if opened != p.open() || opened && end != p.end() {
		x.say("waitpoint %s (%s) is in the open ones of %s: %v at %.0f, expires %q", id, p.state, p.kid, opened, end,
			p.expires)
	}
	switch p.state {
	case "p":
		if !whole(p.expires) || p.activated != "" || p.suspension != "" || p.matched != "0" {
			say("a pending one has an expiry and no suspension")
		}
	case "a":
		if p.activated == "" || len(p.suspension) != 36 {
			say("an active one belongs to a suspension")
		}
	case "x":
		if p.reason != "pending_expired" || p.suspension != "" || atof(p.closed) < atof(p.expires) {
			say("expired")
		}
	case "c":
		if (p.activated == "") != (p.suspension == "") {
			say("closed")
		}
	default:
		say("state")
	}
	x.log(id, p)
}

// passedOver are the effects of signals that a wait did not take.
var passedOver = map[string]bool{"no_op": true, "signal_ignored_matcher_failed": true,
	"appended_to_waitpoint_duplicate": true}

// log: a waitpoint keeps its last 1,000 signals in order, and knows each of them again; payloads wait only where
// nobody has evaluated them.
func (x *execution) log(id string, p point) {
	entries, delivered := x.Lists[":g:"+x.id+":"+id], x.Hashes[":gd:"+x.id+":"+id]
	if len(entries) != min(atoi(p.signals), 1000) || len(delivered) != atoi(p.signals) {
		x.say("waitpoint %s: %d signals in the log, %d known again, %s counted", id, len(entries), len(delivered),
			p.signals)
	}
	size, last := 0, 0
	for i, entry := range entries {
		g, ok := parseSignal(entry)
		if !ok || g.waitpoint != id || g.waitpointKey != p.key {
			x.say("waitpoint %s: signal %d is %.200q", id, i, entry)
			continue
		}
		if g.order <= last || float64(g.order) > x.number("gq") {
			x.say("waitpoint %s: signal %s has number %d after %d, and the execution has accepted %q", id, g.id,
				g.order, last, x.core["gq"])
		}
		last = g.order
		known := strings.Split(delivered[g.mark()], " ")
		if len(known) != 3 || known[0] != g.id || known[1] != g.effect || !whole(known[2]) {
			x.say("waitpoint %s: signal %s with effect %s is known as %q", id, g.id, g.effect, known)
		}
		buffered := g.effect == "buffered_for_pending_waitpoint"
		if buffered {
			size += len(entry)
		}
		// What an earlier wait has passed over stays so.
		if p.activated == "" && !buffered && !passedOver[g.effect] || p.state == "a" && buffered {
			x.say("waitpoint %s (%s): signal %s has effect %s", id, p.state, g.id, g.effect)
		}
		if !buffered && g.payload != "" {
			x.say("waitpoint %s: the log keeps the payload of signal %s", id, g.id)
		}
	}
	if p.activated == "" && size != atoi(p.payload) {
		x.say("waitpoint %s: %d bytes buffered, %s counted", id, size, p.payload)
	}
}

// reopened: what is closed stays closed, for the reason it had; a key is for good; counts grow.
func (x *execution) reopened(all map[string]point) {
	u := x.Hashes[":u:"+x.id]
	open := u["bh"] == "auto_resume_open" || u["cs"] == "rewound"
	for id, p := range all {
		before, known := x.before[x.id].points[id]
		if !known || open && before.state == "a" && p.state == "p" && p.digest == before.digest && p.key == before.key {
			// its wait was over without it
			continue
		}
		answered := before.state == "x" && p.state == "c" && p.reason == "resumed" // by what had come in time
		if !before.open() && !answered && (p.state != before.state || p.closed != before.closed ||
			p.reason != before.reason || p.digest != before.digest) ||
			before.state == "a" && p.state == "p" || p.key != before.key || p.event != before.event ||
			p.created != before.created ||
			atoi(p.signals) < atoi(before.signals) || atoi(p.matched) < atoi(before.matched) {
			x.say("waitpoint %s went back from %q to %q", id, before, p)
		}
	}
}

// tokens verifies the entries of the two indexes from their side, and the keys that tokens are signed with.
func (l *look) tokens() {
	for key, z := range l.ZSets {
		family, _ := area(key)
		if family != ":pending" && family != ":open:" {
			continue
		}
		for member := range z {
			id, waitpoint, _ := strings.Cut(member, ":")
			p, ok := parsePoint(l.Waitpoints[id][waitpoint])
			if !ok || family == ":pending" && p.state != "p" ||
				family == ":open:" && (!p.open() || ":open:"+p.kid != key) {
				l.wrong("%s holds %s, which is %q", key, member, p.state)
			}
		}
	}
	kids := l.Hashes[":kids"]
	for field, state := range kids {
		if field == "current" {
			continue
		}
		parts := strings.Split(state, " ")
		kid, ok := strings.CutPrefix(field, "k:")
		if !ok || len(parts) != 2 || len(parts[0]) != 16 || !whole(parts[1]) ||
			(parts[1] == "0") != (kid == kids["current"]) {
			l.wrong("token key %s is %q, the current one is %q", field, state, kids["current"])
		}
	}
	if current := kids["current"]; len(kids) > 0 && kids["k:"+current] == "" {
		l.wrong("the current token key %q has no state", current)
	}
}

// signalParts is one stored signal, as far as it is looked at.
type signalParts struct {
	id, waitpoint, waitpointKey, key, effect, payload string
	order                                             int
}

// mark is the field of :gd: under which its delivery is known again.
func (g signalParts) mark() string {
	if g.key != "" {
		return "k" + g.key
	}
	return "s" + g.id
}

var effects = []string{"buffered_for_pending_waitpoint", "appended_to_waitpoint", "no_op", "resume_condition_satisfied",
	"appended_to_waitpoint_duplicate", "signal_ignored_matcher_failed", "timeout"}

func parseSignal(text string) (g signalParts, ok bool) {
	p := strings.SplitN(text, "\x1f", 16)
	if len(p) != 16 || len(p[0]) != 36 || p[3] == "" || !whole(p[10]) || p[9] != "" && !whole(p[9]) ||
		!slices.Contains(effects, p[12]) || p[13] != "" && !whole(p[13]) || !whole(p[14]) {
		return g, false
	}
	return signalParts{id: p[0], waitpoint: p[1], waitpointKey: p[2], key: p[8], effect: p[12], order: atoi(p[14]),
		payload: p[15]}, true
}

func atoi(text string) int { n, _ := strconv.Atoi(text); return n }

func atof(text string) float64 { n, _ := strconv.ParseFloat(text, 64); return n }
