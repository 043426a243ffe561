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

// admissionAreas gives the type of every key of a partition of budgets or quotas.
var admissionAreas = map[string]string{
	"": "hash", ":budgets": "zset", ":trail": "stream", ":bd:": "hash", ":bu:": "hash", ":bx:": "zset", ":bl:": "hash",
	":br:": "string", ":bh:": "list", ":bw:": "zset", ":quotas": "zset", ":qd:": "hash", ":qw:": "zset", ":qs:": "zset",
	":qh:": "list", ":qc:": "zset", ":qr:": "zset",
}

var (
	gateName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	gateDim    = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
	holdText   = regexp.MustCompile(`^\d{1,5}\.[0-9a-f-]{36}:\d{1,16}$`)
	spenderID  = regexp.MustCompile(`^(0|[1-9]\d{0,4})\.[0-9a-f-]{36}$`)
	waiterText = regexp.MustCompile(`^\d{1,5} [1-9]\d{0,15}$`)
)

// CheckAdmission reads the partition of budgets or of quotas with this root and tells, in order, everything in it
// that breaks a rule. A partition that nobody has used yet breaks none.
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

// admission checks one partition of budgets or quotas.
type admission struct{ *look }

func (a *admission) verify() {
	for _, k := range a.Strange {
		a.wrong("key %s should not exist", k)
	}
	if a.Root["protocol"] == "" {
		a.wrong("the root has no protocol")
	}
	for _, index := range []struct{ name, area string }{{":budgets", ":bd:"}, {":quotas", ":qd:"}} {
		for name := range a.ZSets[index.name] {
			if a.Hashes[index.area+name] == nil {
				a.wrong("%s lists %q, which is not defined", index.name, name)
			}
		}
		for key := range a.Hashes {
			name, is := strings.CutPrefix(key, index.area)
			if _, listed := a.ZSets[index.name][name]; is && !listed {
				a.wrong("%q is defined and not in %s", name, index.name)
			}
			if is && !gateName.MatchString(name) {
				a.wrong("%q is no name", name)
			}
		}
	}
	for key, h := range a.Hashes {
		switch family, _ := areaOf(key, admissionAreas); family {
		case ":bd:":
			a.budget(strings.TrimPrefix(key, family), h)
		case ":qd:":
			a.quota(strings.TrimPrefix(key, family), h)
		}
	}
	for _, owned := range [][]string{names(a.Hashes), names(a.ZSets), names(a.Lists)} {
		for _, key := range owned {
			a.owned(key)
		}
	}
	for key := range a.Expires {
		if !strings.HasPrefix(key, ":bl:") && !strings.HasPrefix(key, ":br:") && !strings.HasPrefix(key, ":qw:") &&
			!ofLimit(key, ":qc:@", ":qr:@") {
			a.wrong("%s has a TTL", key)
		}
	}
	for _, keys := range [][]string{names(a.Hashes), names(a.Texts), names(a.ZSets)} {
		for _, key := range keys {
			if (strings.HasPrefix(key, ":qw:") || strings.HasPrefix(key, ":bl:") || strings.HasPrefix(key, ":br:") ||
				ofLimit(key, ":qc:@", ":qr:@")) && !a.Expires[key] {
				a.wrong("%s stays for ever", key)
			}
		}
	}
}

// owned verifies that what was counted for a budget or quota has a definition, and is of its kind.
func (a *admission) owned(key string) {
	family, _ := areaOf(key, admissionAreas)
	name := strings.TrimPrefix(key, family)
	definition := map[string]string{":bu:": ":bd:", ":bx:": ":bd:", ":bh:": ":bd:", ":bw:": ":bd:", ":qw:": ":qd:",
		":qs:": ":qd:", ":qh:": ":qd:", ":qc:": ":qd:", ":qr:": ":qd:"}[family]
	if definition != "" && a.Hashes[definition+name] == nil && !ofLimit(key, ":qw:@", ":qs:@", ":qc:@", ":qr:@") {
		a.wrong("%s belongs to nothing", key)
	}
	shape := map[string]*regexp.Regexp{":bw:": waiterText, ":qc:": waiterText, ":qr:": waiterText, ":qs:": holdText,
		":qw:": holdText, ":bx:": spenderID}[family]
	for member := range a.ZSets[key] {
		if shape != nil && !shape.MatchString(member) {
			a.wrong("%s has %q", key, member)
		}
	}
	if n := len(a.Lists[key]); n > 256 {
		a.wrong("%s has %d entries", key, n)
	}
	for _, entry := range a.Lists[key] {
		if len(strings.SplitN(entry, "\x1f", 4)) != 4 {
			a.wrong("%s has %q", key, entry)
		}
	}
}

// ofLimit tells whether a key counts for limits of keys, which have no definition.
func ofLimit(key string, areas ...string) bool {
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

func (a *admission) budget(name string, h map[string]string) {
	what := "budget " + name
	n := a.numbers(what, h, "iv", "ct", "up", "rc", "ps", "bc", "bs")
	for field, legal := range map[string][]string{"md": {"strict", "warn"}, "hd": {"reject", "fail", "block"},
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
	used := a.Hashes[":bu:"+name]
	for dim, text := range used {
		if !gateDim.MatchString(dim) || !whole(text) {
			a.wrong("%s has used %q of %q", what, text, dim)
		}
		if _, limited := h["h:"+dim]; !limited && h["st"] == "1" && a.unchanged(":bh:"+name) {
			a.wrong("%s counts only dimensions with limits, and has used %q", what, dim)
		}
	}
	a.ledgers(name, h, used)
}

// unchanged tells whether the audit log of a budget or quota says that it is as it was made, and was not corrected.
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
		id, is := strings.CutPrefix(key, ":bl:"+name+":")
		if is && !spenderID.MatchString(id) {
			a.wrong("%s is of no execution", key)
		}
		if !is || l["p"] != h["rc"] || a.ZSets[":bx:"+name][id] < began {
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
		if n, _ := strconv.ParseInt(used[dim], 10, 64); sum > n && a.unchanged(":bh:"+name) {
			a.wrong("budget %s has used %d of %s, and executions reported %d", name, n, dim, sum)
		}
	}
}

func (a *admission) quota(name string, h map[string]string) {
	what := "quota " + name
	n := a.numbers(what, h, "rt", "wn", "cp", "jt", "ct", "up")
	if n["rt"] > 0 && n["wn"] == 0 {
		a.wrong("%s has a rate of %d and no window", what, n["rt"])
	}
	if !a.unchanged(":qh:" + name) {
		return // it may have more than it would give now
	}
	if held := len(a.ZSets[":qs:"+name]); int64(held) > n["cp"] {
		a.wrong("%s has %d slots and %d holds", what, n["cp"], held)
	}
	started := int64(0)
	for _, at := range a.ZSets[":qw:"+name] {
		if at > float64(a.Now-n["wn"]) {
			started++
		}
	}
	if started > n["rt"] {
		a.wrong("%s has let %d start in its window, want at most %d", what, started, n["rt"])
	}
}
