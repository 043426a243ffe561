package invariant

import (
	"strconv"
	"strings"
)

// span is how far ahead, in ms, the next tick may be while anything waits for its time (root.span in lua/lib/root.lua).
const span = 10000

// forgotten is how long after its expiry a worker's row is kept, ms.
const forgotten = 3600000

// registry verifies the rows of worker instances. A row and its record go about an hour after the expiry, one by the
// tick and the other by its TTL, which do not always agree on the time.
func (l *look) registry() {
	rows := l.ZSets[":workers"]
	for instance, at := range rows {
		if l.Hashes[":wk:"+instance] == nil && at+forgotten > float64(l.Now) {
			l.wrong("worker %s is listed but has no record", instance)
		}
	}
	for key, w := range l.Hashes {
		instance, ok := strings.CutPrefix(key, ":wk:")
		if !ok {
			continue
		}
		exp, _ := strconv.ParseFloat(w["exp"], 64)
		at, listed := rows[instance]
		if !listed && exp+forgotten > float64(l.Now) || listed && at != exp {
			l.wrong("worker %s expires at %s and is listed at %.0f (%v)", instance, w["exp"], at, listed)
		}
		if !whole(w["exp"]) || !whole(w["seen"]) || !whole(w["reg"]) || !whole(w["in"]) || !whole(w["stuck"]) ||
			w["token"] == "" || w["info"] == "" {
			l.wrong("worker %s: %v", instance, w)
		}
		if seen, _ := strconv.ParseFloat(w["seen"], 64); seen >= exp {
			l.wrong("worker %s was seen at %s, after its expiry %s", instance, w["seen"], w["exp"])
		}
		if w["why"] != "" && w["dead"] == "" {
			l.wrong("worker %s lives and tells why it was given up: %q", instance, w["why"])
		}
		if !l.Expires[key] {
			l.wrong("%s has no TTL", key)
		}
	}
}
