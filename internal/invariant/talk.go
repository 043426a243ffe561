package invariant

import (
	"regexp"
	"strings"
)

var (
	turnRow = regexp.MustCompile(`^\d+( over)?$`)
	stopRow = regexp.MustCompile(`(?s)^\+?[^\x1f]{36}\x1f[^\x1f]{0,64}\x1f.*$`)
	busyRow = regexp.MustCompile(`^(interrupt|refuse) [ -~]{1,96}$`)
)

// talk: who has ended has no turn, no stop and no mailbox that it minds, a turn begins behind a step that is recorded,
// and none is over while a stop waits.
func (x *execution) talk() {
	for field, row := range map[string]*regexp.Regexp{"tn": turnRow, "sp": stopRow, "bz": busyRow} {
		if x.has(field) && !row.MatchString(x.core[field]) {
			x.say("%s is %q", field, x.core[field])
		}
		if x.has(field) && x.core["s"][0] == 'T' {
			x.say("has ended, and %s is %q", field, x.core[field])
		}
	}
	turn, over := strings.CutSuffix(x.core["tn"], " over")
	if turn != "" && atoi(turn) > atoi(x.core["so"]) {
		x.say("its turn began behind step %s of %q", turn, x.core["so"])
	}
	if over && x.has("sp") {
		x.say("its turn is over, and a stop waits")
	}
}
