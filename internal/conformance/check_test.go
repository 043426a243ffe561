package conformance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// check holds the whole partition against the invariants and fails with everything it finds.
func (w *world) check() {
	w.Helper()
	if w.quiet {
		return
	}
	if bad := w.violations(w.dump()); len(bad) > 0 {
		w.Fatalf("the partition breaks invariants:\n%s", strings.Join(bad, "\n"))
	}
}

// checker collects violations of one dump.
type checker struct {
	*dump
	bad   []string
	homes map[string][]string // execution → homes it is in
	past  map[string]past
}

// past is what may never go back: the epoch and the number of attempts grow, an end is final.
type past struct {
	epoch, attempts float64
	ended           string
}

func (w *world) violations(d *dump) []string {
	c := &checker{dump: d, homes: map[string][]string{}, past: w.past}
	for _, k := range d.strange {
		c.wrong("key %s should not exist", k)
	}
	c.rootFields()
	c.routeTable()
	c.indexes()
	c.sessions()
	c.waiters()
	for key, core := range d.hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			(&execution{checker: c, id: id, core: core}).verify()
		}
	}
	c.satellites()
	c.lifetimes()
	slices.Sort(c.bad)
	return c.bad
}

func (c *checker) wrong(format string, args ...any) {
	c.bad = append(c.bad, fmt.Sprintf(format, args...))
}

func (c *checker) rootFields() {
	known := []string{"protocol", "booted", "frozen", "wake", "owner", "table", "clock_offset"}
	for f := range c.root {
		if !slices.Contains(known, f) {
			c.wrong("the root has a field %q", f)
		}
	}
	if c.root["protocol"] == "" {
		c.wrong("the root has no protocol")
	}
	// Somebody must be told to tick: wake is never later than the first thing due, unless that is overdue.
	first := math.Inf(1)
	for _, index := range []string{":sessions", ":delayed", ":alarms"} {
		for _, at := range c.zsets[index] {
			first = min(first, at)
		}
	}
	if math.IsInf(first, 1) && len(c.sets[":ready"]) == 0 {
		return
	}
	wake, err := strconv.ParseInt(c.root["wake"], 10, 64)
	if err != nil {
		c.wrong("there is something to wait for, but wake is %q", c.root["wake"])
	} else if float64(wake) > max(first, float64(c.now)) {
		c.wrong("wake %d is later than the first thing due %.0f", wake, first)
	}
	if float64(wake) > float64(c.now+1000) {
		c.wrong("wake %d is more than 1 s ahead of %d", wake, c.now)
	}
}

func (c *checker) routeTable() {
	rows, ids, log := c.hashes[":routes"], c.hashes[":routeids"], c.zsets[":routelog"]
	if len(rows) != len(ids) || len(rows) != len(log) {
		c.wrong("routes %d, route ids %d, route log %d", len(rows), len(ids), len(log))
	}
	newest := 0.0
	for id, row := range rows {
		if ids[row] != id {
			c.wrong("route %s has row %q, whose id is %q", id, row, ids[row])
		}
		if len(strings.Split(row, "\x1f")) != 5 {
			c.wrong("route %s has row %q", id, row)
		}
		newest = max(newest, log[id])
	}
	if table, _ := strconv.ParseFloat(c.root["table"], 64); table != newest {
		c.wrong("table version %v, newest route %v", table, newest)
	}
}

// indexes collects homes and verifies that no entry lacks a core (X5), and that ready is exactly the queues that
// are not empty.
func (c *checker) indexes() {
	var nonEmpty []string
	for key, z := range c.zsets {
		family, _ := area(key)
		switch family {
		case ":q:":
			nonEmpty = append(nonEmpty, strings.TrimPrefix(key, ":q:"))
			if _, ok := c.hashes[":routes"][strings.TrimPrefix(key, ":q:")]; !ok {
				c.wrong("queue %s has no route", key)
			}
		case ":delayed", ":alarms", ":done", ":h:":
		default:
			continue
		}
		for id := range z {
			if _, ok := c.hashes[":x:"+id]; !ok {
				c.wrong("%s holds %s, which has no core", key, id)
			}
			if family != ":alarms" {
				c.homes[id] = append(c.homes[id], key)
			}
		}
	}
	slices.Sort(nonEmpty)
	if !slices.Equal(nonEmpty, c.sets[":ready"]) {
		c.wrong("ready is %v, non-empty queues are %v", c.sets[":ready"], nonEmpty)
	}
}

func (c *checker) sessions() {
	open := c.zsets[":sessions"]
	for id, at := range open {
		s := c.hashes[":s:"+id]
		if s == nil {
			c.wrong("session %s is indexed but has no record", id)
			continue
		}
		if s["exp"] == "" || s["ttl"] != "" {
			c.wrong("session %s: %v", id, s)
		}
		if exp, _ := strconv.ParseFloat(s["exp"], 64); at > exp {
			c.wrong("session %s is indexed at %.0f, after its expiry %.0f: its death would be noticed late", id, at, exp)
		}
	}
	for key, s := range c.hashes {
		id, ok := strings.CutPrefix(key, ":s:")
		if !ok {
			continue
		}
		_, indexed := open[id]
		if s["dead"] == "" && !indexed {
			c.wrong("session %s lives but is not indexed", id)
		}
		generation, _ := strconv.Atoi(s["lg"])
		before, _ := strconv.Atoi(s["lb"])
		if _, lost := c.lists[":l:"+id]; s["dead"] == "" && len(c.lists[":l:"+id]) != generation-before {
			c.wrong("session %s has %d notices for generations (%d, %d]", id, len(c.lists[":l:"+id]), before, generation)
		} else if s["dead"] != "" && !indexed && lost {
			c.wrong("session %s is dead but keeps notices", id)
		}
		last, _ := strconv.ParseFloat(s["cl"], 64)
		for member, number := range c.zsets[":h:"+id] {
			if number < 1 || number > last {
				c.wrong("session %s holds %s under claim %.0f of %.0f", id, member, number, last)
			}
		}
	}
	for key := range c.zsets {
		if id, ok := strings.CutPrefix(key, ":h:"); ok {
			if _, indexed := open[id]; !indexed {
				c.wrong("session %s holds work but is not indexed", id)
			}
		}
	}
	for key := range c.lists {
		if _, ok := c.hashes[":s:"+strings.TrimPrefix(key, ":l:")]; !ok {
			c.wrong("%s has no session", key)
		}
	}
}

func (c *checker) waiters() {
	for key := range c.zsets {
		if digest, ok := strings.CutPrefix(key, ":w:"); ok && !slices.Contains(c.sets[":digests"], digest) {
			c.wrong("waiters of %s would never be rung", digest)
		}
	}
	for key, members := range c.sets {
		if strings.HasPrefix(key, ":int:") && !slices.Contains(members, "0") {
			c.wrong("%s lacks route 0", key)
		}
	}
}

// satellites verifies that nothing belongs to an execution that does not exist.
func (c *checker) satellites() {
	owner := func(key string) {
		family, _ := area(key)
		if !slices.Contains([]string{":i:", ":t:", ":k:", ":a:", ":o:", ":f:", ":fm:"}, family) {
			return
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(key, family), ":")
		if _, ok := c.hashes[":x:"+id]; !ok {
			c.wrong("%s has no core", key)
		}
	}
	for k := range c.hashes {
		owner(k)
	}
	for k := range c.texts {
		owner(k)
	}
	for k := range c.streams {
		owner(k)
	}
}

// lifetimes: only interests and the records of ended sessions expire by themselves.
func (c *checker) lifetimes() {
	for key := range c.expires {
		family, _ := area(key)
		if family == ":int:" || family == ":s:" && c.hashes[key]["dead"] != "" {
			continue
		}
		c.wrong("%s has a TTL", key)
	}
}
