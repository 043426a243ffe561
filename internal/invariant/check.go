package invariant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Checker holds dumps against the rules. It remembers every execution it saw, by partition, so one Checker may
// follow all partitions of a server over several looks; it is for one goroutine.
type Checker struct {
	past map[uint16]map[string]past
}

// past is what may never go back: the epoch and the number of attempts grow, an end is final unless replayed.
// So do closed waitpoints and closed suspensions.
type past struct {
	course
	points     map[string]point
	suspension map[string]string
}

type course struct {
	links                    int // how often it continued, which starts the count of rewinds anew
	epoch, attempts, replays float64
	ended                    string
}

// NewChecker returns a Checker that has seen nothing.
func NewChecker() *Checker { return &Checker{past: map[uint16]map[string]past{}} }

// Violations tells, in order, everything that breaks a rule in the dump or between it and the last one of the same
// partition. An execution without a core is forgotten: its id may be used again once its tombstone is gone.
func (c *Checker) Violations(d *Dump) []string {
	l := &look{Dump: d, indexed: map[string][]string{}, results: map[string][]string{}, metas: map[string][]string{},
		logged: map[string][]string{},
		before: c.past[d.Partition], now: map[string]past{}}
	for _, k := range d.Strange {
		l.wrong("key %s should not exist", k)
	}
	l.rootFields()
	l.routeTable()
	l.indexes()
	l.sessions()
	l.waiters()
	l.tokens()
	l.satellites()
	l.tombstones()
	l.schedules()
	l.written()
	l.lifetimes()
	l.registry()
	l.times()
	l.triggers()
	l.expected()
	l.flows()
	l.gateTables()
	l.keyed()
	l.references()
	for key, core := range d.Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			(&execution{look: l, id: id, core: core}).verify()
		}
	}
	c.past[d.Partition] = l.now
	slices.Sort(l.bad)
	return l.bad
}

// look collects the violations of one dump.
type look struct {
	*Dump
	bad     []string
	indexed map[string][]string // execution → indexes it is in
	results map[string][]string // execution → attempts with a result
	metas   map[string][]string // execution → attempts with a stream
	logged  map[string][]string // execution → attempts with log lines
	before  map[string]past     // by execution: the last look, and this one
	now     map[string]past
}

func (l *look) wrong(format string, args ...any) {
	l.bad = append(l.bad, fmt.Sprintf(format, args...))
}

// tallies: at least what is kept ended as it did. Only damage makes records fewer than that.
func (l *look) tallies() {
	ended := map[string]int{}
	for key, core := range l.Hashes {
		if code := core["s"]; strings.HasPrefix(key, ":x:") && code != "" && code[0] == 'T' {
			ended[code[:2]]++
		}
	}
	for _, code := range []string{"T2", "T3", "T4", "T5"} {
		if n := atoi(l.Root["tally:"+code]); n < ended[code] {
			l.wrong("%d ended as %s, and %d are kept", n, code, ended[code])
		}
	}
}

var rootFields = []string{"protocol", "booted", "frozen", "wake", "owner", "ticked", "quiet", "table", "routes", "ring",
	"lanes", "feed", "fed", "noted", "revision", "purged", "recounts", "clock_offset", "clock_pin", "gates", "space",
	"spaces", "mixed", "urged", "subroutes", "told", "tally:again", "tally:T2", "tally:T3", "tally:T4", "tally:T5",
	"tally:F2", "tally:F3", "tally:F4", "tally:xc",
	"tally:xt", "tally:xn", "tally:xs", "index"}

func (l *look) rootFields() {
	l.tallies()
	for f := range l.Root {
		if !slices.Contains(rootFields, f) && !strings.HasPrefix(f, "full:") {
			l.wrong("the root has a field %q", f)
		}
	}
	if l.Root["protocol"] == "" {
		l.wrong("the root has no protocol")
	}
	if ring, ok := l.Root["ring"]; ok && !whole(ring) {
		l.wrong("the root rings up to %q", ring)
	}
	if at, err := strconv.ParseInt(l.Root["ticked"], 10, 64); err == nil && at > l.Now+1000 {
		return // the clock stepped back: a tick is overdue, and then its time is right again
	} else if err != nil && l.Root["ticked"] != "" {
		l.wrong("the last tick was at %q", l.Root["ticked"])
	}
	l.quiet()
	// Somebody must be told to tick: wake is never later than the first thing due, unless that is overdue.
	first := math.Inf(1)
	for _, index := range []string{":sessions", ":delayed", ":alarms", ":pending"} {
		for _, at := range l.ZSets[index] {
			first = min(first, at)
		}
	}
	some := !math.IsInf(first, 1)
	soon := len(l.Sets[":ready"]) > 0 || len(l.Sets[":gready"]) > 0 || len(l.Outbox) > 0
	for _, at := range l.ZSets[":closed"] {
		first = min(first, at)
		soon = soon || at <= float64(l.Now+1000)
	}
	for _, at := range l.ZSets[":backlog"] {
		first = min(first, at)
		soon = true
	}
	for _, index := range []string{":done", ":schedules", ":flowdue", ":dsdue"} { // these wait for their time alone
		for _, at := range l.ZSets[index] {
			first = min(first, max(at, float64(l.Now+1000)))
		}
	}
	for _, at := range l.ZSets[":workers"] {
		first = min(first, max(at+forgotten, float64(l.Now+1000)))
	}
	if math.IsInf(first, 1) && !soon { // some says that first is not
		return
	}
	wake, err := strconv.ParseInt(l.Root["wake"], 10, 64)
	if err != nil {
		l.wrong("there is something to wait for, but wake is %q", l.Root["wake"])
	} else if float64(wake) > max(first, float64(l.Now)) && !l.Stepped {
		l.wrong("wake %d is later than the first thing due %.0f", wake, first)
	}
	latest := math.Inf(1)
	if some {
		latest = float64(l.Now + span)
	}
	if soon {
		latest = float64(l.Now + 1000)
	}
	if !l.Stepped && float64(wake) > latest { // a small step back is waited for, and one before the first tick
		l.wrong("wake %d is later than %.0f, when a tick has to look", wake, latest)
	}
}

// quiet: until then nothing comes due of what is kept for hours, but what is overdue.
func (l *look) quiet() {
	text, ok := l.Root["quiet"]
	if !ok {
		return
	}
	upto, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		l.wrong("the root is quiet until %q", text)
		return
	}
	if upto > l.Now+11_000 { // steps back of up to a second are waited for
		l.wrong("the root is quiet until %d, too far ahead of %d", upto, l.Now)
	}
	for _, index := range []string{":done", ":schedules", ":flowdue", ":dsdue", ":workers"} {
		for member, at := range l.ZSets[index] {
			if index == ":workers" {
				at += forgotten
			}
			if at < float64(upto) && upto > l.Now {
				l.wrong("the root is quiet until %d, but %s of %s is due at %.0f", upto, member, index, at)
			}
		}
	}
}

// whole tells whether a text is a whole number of at least 0, as the library writes them.
func whole(text string) bool {
	n, err := strconv.ParseUint(text, 10, 53)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// class is that of a route, and plain tells whether the route is the class's own.
func class(route string) string {
	if plain(route) {
		return route
	}
	return route[:len(route)-9]
}

func plain(route string) bool { return len(route) <= 9 }

func (l *look) routeTable() {
	rows, ids, log := l.Hashes[":routes"], l.Hashes[":routeids"], l.ZSets[":routelog"]
	classes := 0
	for id := range rows {
		if plain(id) {
			classes++
		}
	}
	if len(rows) != len(ids) || classes != len(log) {
		l.wrong("routes %d, route ids %d, classes %d, route log %d", len(rows), len(ids), classes, len(log))
	}
	for id := range l.Hashes[":makers"] {
		if rows[id] == "" || !plain(id) {
			l.wrong("a maker of class %s, which does not exist", id)
		}
	}
	l.used()
	l.laneTable()
	newest := 0.0
	for id, row := range rows {
		if ids[row] != id {
			l.wrong("route %s has row %q, whose id is %q", id, row, ids[row])
		}
		if len(strings.Split(row, "\x1f")) != 5 {
			l.wrong("route %s has row %q", id, row)
		}
		newest = max(newest, log[id])
		parts := strings.Split(row, "\x1f")
		own := append(append([]string{l.Root["space"]}, parts[1:4]...), "")
		if rows[class(id)] != strings.Join(own, "\x1f") {
			l.wrong("route %s has row %q, its class %q", id, row, rows[class(id)])
		}
	}
	if table, _ := strconv.ParseFloat(l.Root["table"], 64); table < newest {
		l.wrong("table version %v, newest route %v", table, newest)
	}
}
