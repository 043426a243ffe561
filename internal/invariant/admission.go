package invariant

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// admissionAreas gives the type of every key of a partition of gates.
var admissionAreas = map[string]string{
	"": "hash", ":gates": "zset", ":trail": "stream", ":ga:": "hash", ":gh:": "list", ":gu:": "hash", ":gx:": "zset",
	":gl:": "hash", ":gq:": "zset", ":gp:": "list", ":reserved": "zset", ":gr:": "string", ":gw:": "zset",
	":gt:": "zset", ":gs:": "zset", ":gc:": "zset", ":ge:": "zset", ":gv:": "hash", ":gk:": "zset", ":gy:": "zset",
	":gf:": "zset", ":gz:": "zset", ":gi:": "hash", ":go:": "hash",
}

var (
	gateName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$`)
	gateDim    = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
	holdText   = regexp.MustCompile(`^\d{1,5}\.[0-9a-f-]{36}:\d{1,16}$`)
	spenderID  = regexp.MustCompile(`^(0|[1-9]\d{0,4})\.[0-9a-f-]{36}$`)
	callText   = regexp.MustCompile(`^\d{1,5}\.[0-9a-f-]{36}:\d{1,16}\.\d{1,16}$`)
	openText   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63} \d{1,5}\.[0-9a-f-]{36}:\d{1,16}\.\d{1,16}$`)
	waiterText = regexp.MustCompile(`^\d{1,5} [1-9]\d{0,15}$`)
)

// CheckAdmission reads the partition of gates with this root and tells, in order, everything in it that breaks a rule.
// A partition that nobody has used yet breaks none.
func CheckAdmission(ctx context.Context, client rueidis.Client, root string) ([]string, error) {
	list, err := client.Do(ctx, client.B().Eval().Script(listing).Numkeys(1).Key(root).Build()).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", root, err)
	}
	d := empty(0)
	d.root, d.areas = root, admissionAreas
	var rest []string
	for i := 0; i+1 < len(list); i += 2 {
		key := strings.TrimPrefix(list[i], root)
		rest = append(rest, key)
		if list[i+1] == "1" {
			d.Expires[key] = true
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	if err := d.fill(ctx, client, rest); err != nil {
		return nil, err
	}
	a := &admission{look: &look{Dump: d}}
	a.verify()
	slices.Sort(a.bad)
	return a.bad, nil
}

// admission checks one partition of gates.
type admission struct{ *look }

func (a *admission) verify() {
	for _, k := range a.Strange {
		a.wrong("key %s should not exist", k)
	}
	if a.Root["protocol"] == "" {
		a.wrong("the root has no protocol")
	}
	for name := range a.ZSets[":gates"] {
		if a.Hashes[":ga:"+name] == nil {
			a.wrong(":gates lists %q, which is not defined", name)
		}
	}
	for key, h := range a.Hashes {
		name, is := strings.CutPrefix(key, ":ga:")
		if !is {
			continue
		}
		if _, listed := a.ZSets[":gates"][name]; !listed {
			a.wrong("%q is defined and not in :gates", name)
		}
		if !gateName.MatchString(name) {
			a.wrong("%q is no name", name)
		}
		a.amounts(name, h)
		a.starts(name, h)
		a.service(name, h)
	}
	for _, owned := range [][]string{names(a.Hashes), names(a.ZSets), names(a.Lists)} {
		for _, key := range owned {
			a.owned(key)
		}
	}
	for key := range a.Expires {
		if !passing(key) {
			a.wrong("%s has a TTL", key)
		}
	}
	for _, keys := range [][]string{names(a.Hashes), names(a.Texts), names(a.ZSets)} {
		for _, key := range keys {
			if passing(key) && !a.Expires[key] {
				a.wrong("%s stays for ever", key)
			}
		}
	}
}

// service verifies the line of a service: who is asking waits in a namespace, that has its turn, and what is waited for
// is the sum.
func (a *admission) service(name string, h map[string]string) {
	pace, asking := a.Hashes[":gv:"+name], a.Hashes[":gi:"+name]
	if _, is := h["sv"]; !is {
		if pace != nil || asking != nil {
			a.wrong("gate %s is none of a service, and has a line of calls", name)
		}
		return
	}
	sums, spaces := map[string]int64{}, map[string]int{}
	for id, text := range asking {
		head, amounts, ok := strings.Cut(text, "\x1f")
		parts := strings.SplitN(head, " ", 3)
		if !ok || len(parts) != 3 || !whole(parts[0]) || !slices.Contains([]string{"s", "a", "w"}, parts[1]) {
			a.wrong("service %s: %s asks %q", name, id, text)
			continue
		}
		if _, listed := a.ZSets[":gz:"+name+":"+parts[2]][id]; !listed {
			a.wrong("service %s: %s asks, and waits nowhere in %s", name, id, parts[2])
		}
		spaces[parts[2]]++
		for part := range strings.SplitSeq(amounts, ",") {
			dim, n, _ := strings.Cut(part, "=")
			amount, _ := strconv.ParseInt(n, 10, 64)
			sums[dim] += amount
		}
	}
	for space, n := range spaces {
		if _, has := a.ZSets[":gy:"+name][space]; !has {
			a.wrong("service %s: namespace %s has waiters and no turn", name, space)
		}
		if all := len(a.ZSets[":gz:"+name+":"+space]); all != n {
			a.wrong("service %s: %d wait in namespace %s, %d ask", name, all, space, n)
		}
	}
	if all := len(a.ZSets[":gy:"+name]); all != len(spaces) {
		a.wrong("service %s: %d namespaces have a turn, %d wait", name, all, len(spaces))
	}
	if pace == nil && len(asking) == 0 {
		return
	}
	if n, _ := strconv.Atoi(pace["wn"]); n != len(asking) {
		a.wrong("service %s: %d wait, %d ask", name, n, len(asking))
	}
	for field, text := range pace {
		if dim, is := strings.CutPrefix(field, "w:"); is && text != strconv.FormatInt(sums[dim], 10) {
			a.wrong("service %s: %s of %s are waited for, %d asked for", name, text, dim, sums[dim])
		}
	}
	for call := range a.ZSets[":gk:"+name] {
		if _, asked := a.ZSets[":reserved"][name+" "+call]; !asked {
			a.wrong("service %s: nobody asks whether the lease of call %s lasts", name, call)
		}
	}
}

// passing tells whether a key has a TTL: ledgers, reports, lines, hours, windows, what is kept of services, and who
// waits for a limit of a key.
func passing(key string) bool {
	return ofAny(key, ":gl:", ":gr:", ":gq:", ":gp:", ":go:", ":gt:", ":gc:@", ":ge:@", ":gv:", ":gk:", ":gy:", ":gf:",
		":gz:", ":gi:")
}

// owned verifies that what was counted for a gate has a definition, and is of its kind. Limits of keys have none.
func (a *admission) owned(key string) {
	family, _ := areaOf(key, admissionAreas)
	name := strings.TrimPrefix(key, family)
	if ofAny(family, ":gu:", ":gx:", ":gh:", ":gq:", ":go:", ":gw:", ":gt:", ":gs:", ":gc:", ":ge:") &&
		a.Hashes[":ga:"+name] == nil &&
		!ofAny(key, ":gt:@", ":gs:@", ":gc:@", ":ge:@") {
		a.wrong("%s belongs to nothing", key)
	}
	shape := map[string]*regexp.Regexp{":gw:": waiterText, ":gc:": waiterText, ":ge:": waiterText, ":gs:": holdText,
		":gt:": holdText, ":gx:": spenderID, ":gq:": spenderID, ":gk:": callText, ":gz:": spenderID,
		":reserved": openText}[family]
	for member := range a.ZSets[key] {
		if shape != nil && !shape.MatchString(member) {
			a.wrong("%s has %q", key, member)
		}
	}
	if n := len(a.Lists[key]); n > 256 {
		a.wrong("%s has %d entries", key, n)
	}
	for _, entry := range a.Lists[key] {
		if family == ":gh:" && len(strings.SplitN(entry, "\x1f", 4)) != 4 {
			a.wrong("%s has %q", key, entry)
		}
	}
}

// ofAny tells whether a key is in one of these areas.
func ofAny(key string, areas ...string) bool {
	return slices.ContainsFunc(areas, func(area string) bool { return strings.HasPrefix(key, area) })
}

// numbers reads whole fields, which must be there.
func (a *admission) numbers(what string, h map[string]string, fields ...string) map[string]int64 {
	out := map[string]int64{}
	for _, f := range fields {
		if !whole(h[f]) {
			a.wrong("%s has field %s %q", what, f, h[f])
		}
		out[f], _ = strconv.ParseInt(h[f], 10, 64)
	}
	return out
}

// amounts verifies the definition of a gate that says what may be used, and what was used.
func (a *admission) amounts(name string, h map[string]string) {
	what := "gate " + name
	n := a.numbers(what, h, "iv", "ct", "up", "rc", "ps", "bc", "bs")
	for field, legal := range map[string][]string{"md": {"strict", "warn"}, "hd": {"reject", "fail", "block", "ask"},
		"sf": {"allow", "warn"}, "st": {"0", "1"}} {
		if !slices.Contains(legal, h[field]) {
			a.wrong("%s has field %s %q", what, field, h[field])
		}
	}
	if next, set := h["nx"]; set != (n["iv"] > 0) || set && !whole(next) {
		a.wrong("%s of interval %d begins anew at %q", what, n["iv"], next)
	}
	for field, text := range h {
		dim, is := strings.CutPrefix(field, "h:")
		if !is {
			continue
		}
		l := a.numbers(what, h, field, "s:"+dim)
		if !gateDim.MatchString(dim) || l[field] > 0 && l["s:"+dim] > l[field] {
			a.wrong("%s limits %q to %s, softly %d", what, dim, text, l["s:"+dim])
		}
	}
	used := a.Hashes[":gu:"+name]
	for dim, text := range used {
		if !gateDim.MatchString(dim) || !whole(text) {
			a.wrong("%s has used %q of %q", what, text, dim)
		}
		if _, limited := h["h:"+dim]; !limited && h["st"] == "1" && a.unchanged(":gh:"+name) {
			a.wrong("%s counts only dimensions with limits, and has used %q", what, dim)
		}
	}
	a.ledgers(name, h, used)
	a.reserved(name, h, used)
}

// reserved: what is set aside of a gate is the sum of the open reservations of this period, is part of what is used
// unless somebody corrected that, and is known to whoever asks whether the leases last.
func (a *admission) reserved(name string, h, used map[string]string) {
	sums := map[string]int64{}
	for key, l := range a.Hashes {
		id, is := strings.CutPrefix(key, ":gl:"+name+":")
		if !is || l["b"] != h["ct"] {
			continue
		}
		for field, text := range l {
			number, open := strings.CutPrefix(field, "o:")
			words := strings.Split(text, " ")
			if !open {
				continue
			}
			if _, asked := a.ZSets[":reserved"][name+" "+id+":"+number]; !asked || len(words) != 3 {
				a.wrong("%s has reserved %q under %s, and nobody asks about it", key, text, number)
				continue
			}
			if number == "0.1" {
				a.share(key, words[2], l["sh"])
			}
			for part := range strings.SplitSeq(words[2], ",") {
				dim, amount, _ := strings.Cut(part, "=")
				n, err := strconv.ParseInt(amount, 10, 64)
				if err != nil {
					a.wrong("%s has reserved %q", key, part)
				}
				if words[0] == h["rc"] {
					sums[dim] += n
				}
			}
		}
	}
	for field, text := range h {
		if dim, is := strings.CutPrefix(field, "v:"); is {
			n, err := strconv.ParseInt(text, 10, 64)
			total, _ := strconv.ParseInt(used[dim], 10, 64)
			if err != nil || n != sums[dim] || n > total && a.unchanged(":gh:"+name) {
				a.wrong("gate %s has %s of %s reserved, want %d, and %d used", name, text, dim, sums[dim], total)
			}
			delete(sums, dim)
		}
	}
	for dim, n := range sums {
		if n > 0 {
			a.wrong("gate %s does not know of %d %s that are reserved", name, n, dim)
		}
	}
}

// share: what is left of a share is of its dimensions, and not more than it was.
func (a *admission) share(key, left, all string) {
	was := map[string]int64{}
	for part := range strings.SplitSeq(all, ",") {
		dim, amount, _ := strings.Cut(part, "=")
		was[dim], _ = strconv.ParseInt(amount, 10, 64)
	}
	for part := range strings.SplitSeq(left, ",") {
		dim, amount, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if most, is := was[dim]; err != nil || !is || n < 0 || n > most {
			a.wrong("%s has %q of its share %q", key, part, all)
		}
		delete(was, dim)
	}
	if len(was) > 0 {
		a.wrong("%s has lost %v of its share", key, was)
	}
}

// unchanged tells whether the audit log of a gate says that it is as it was made, and was not corrected.
func (a *admission) unchanged(log string) bool {
	entries := a.Lists[log]
	return len(entries) > 0 && strings.Contains(entries[0], "\x1fcreated\x1f") &&
		!slices.ContainsFunc(entries, func(e string) bool {
			return strings.Contains(e, "\x1fchanged\x1f") || strings.Contains(e, "\x1fadjusted\x1f")
		})
}

// ledgers: what executions reported in this period is part of what was used, unless somebody corrected that.
func (a *admission) ledgers(name string, h, used map[string]string) {
	sums := map[string]int64{}
	began, _ := strconv.ParseFloat(h["ps"], 64)
	for key, l := range a.Hashes {
		id, is := strings.CutPrefix(key, ":gl:"+name+":")
		if is && !spenderID.MatchString(id) {
			a.wrong("%s is of no execution", key)
		}
		if !is || l["p"] != h["rc"] || a.ZSets[":gx:"+name][id] < began {
			continue
		}
		for field, text := range l {
			if dim, is := strings.CutPrefix(field, "d:"); is {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil || n < 0 {
					a.wrong("%s has %q of %s", key, text, dim)
				}
				sums[dim] += n
			}
		}
	}
	for dim, sum := range sums {
		if n, _ := strconv.ParseInt(used[dim], 10, 64); sum > n && a.unchanged(":gh:"+name) {
			a.wrong("gate %s has used %d of %s, and executions reported %d", name, n, dim, sum)
		}
	}
}

// starts verifies how many a gate let start, and how many of them it holds.
func (a *admission) starts(name string, h map[string]string) {
	what := "gate " + name
	n := a.numbers(what, h, "rt", "wn", "cp", "jt")
	if n["rt"] > 0 && n["wn"] == 0 {
		a.wrong("%s has a rate of %d and no window", what, n["rt"])
	}
	if !a.unchanged(":gh:" + name) {
		return // it may have more than it would give now
	}
	if held := len(a.ZSets[":gs:"+name]); int64(held) > n["cp"] {
		a.wrong("%s has %d slots and %d holds", what, n["cp"], held)
	}
	started := int64(0)
	for _, at := range a.ZSets[":gt:"+name] {
		if at > float64(a.Now-n["wn"]) {
			started++
		}
	}
	if started > n["rt"] {
		a.wrong("%s has let %d start in its window, want at most %d", what, started, n["rt"])
	}
}
