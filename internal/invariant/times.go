package invariant

import (
	"strconv"
	"strings"

	durations "github.com/flowfabric/flowfabric-go/internal/spread"
)

// times verifies what workers measured: each minute is filed under its place in the day and can be read, a namespace
// has at most 256 kinds, and all of it has a TTL.
func (l *look) times() {
	for key, h := range l.Hashes {
		family, _ := area(key)
		if family != ":tm:" && family != ":tk:" {
			continue
		}
		if !l.Expires[key] {
			l.wrong("%s has no TTL", key)
		}
		if family == ":tk:" {
			if len(h) > 256 {
				l.wrong("%s has %d kinds", key, len(h))
			}
			continue
		}
		for field, text := range h {
			minute, tally, _ := strings.Cut(text, ";")
			n, err := strconv.ParseInt(minute, 10, 53)
			if _, bad := durations.ParseTally(tally); err != nil || bad != nil ||
				strconv.FormatInt(n%1440, 10) != field {
				l.wrong("%s has %.80q at %s", key, text, field)
			}
		}
	}
}
