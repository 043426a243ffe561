package invariant

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

var (
	attachedRow = regexp.MustCompile(`(?s)^[\w.:/@+=%-]+(?:,[\w.:/@+=%-]+)* (\d{1,16}) .{0,64}$`)
	shareRow    = regexp.MustCompile(`^\d{1,16}$`)
	urgedRow    = regexp.MustCompile(`^\d{1,16} [1-9]\d{0,3} \d{1,18}$`)
	weightRow   = regexp.MustCompile(`^[1-9]\d{0,3}$`)
	noticeGate  = regexp.MustCompile(`^([A-Za-z0-9][\w.-]{0,63}|@\d+\.\d+\.\d+@[\w.:/@+=%-]{1,128}) ([0-9a-f-]{36}) ` +
		`(gone|never|failed|cancelled|expired|purged) (\d{1,16})$`)
	noticeAwaited = regexp.MustCompile(
		`^([ank] \d{1,5}\.[0-9a-f-]{36} [0-9a-f-]{36} \d+\.\d+|w \d{1,5}\.[0-9a-f-]{36} [0-9a-f-]{36} \d+\.\d+ [sfceknx],\d*)$`)
)

// gateTables verifies what a partition knows of gates and shares besides its routes.
func (l *look) gateTables() {
	level, spaces, lanes := 0, map[string]bool{}, map[string]bool{}
	for id, row := range l.Hashes[":routes"] {
		if l.gates(id) != "" {
			level = 1
		}
		space, _, _ := strings.Cut(row, "\x1f")
		spaces[space] = true
		if parts := strings.Split(row, "\x1f"); len(id) <= 9 && len(parts) == 5 {
			lanes[parts[1]] = true
		}
	}
	for scope, row := range l.Hashes[":attached"] {
		level = max(level, 2)
		if strings.HasPrefix(scope, "t\x1f") {
			level = 3
		}
		if !attachedRow.MatchString(row) || strings.Count(scope, "\x1f") != map[byte]int{'g': 0, 'n': 1, 'l': 2,
			't': 2}[scope[0]] || !strings.Contains("gnlt", scope[:1]) {
			l.wrong("scope %q has %q attached", scope, row)
		}
	}
	if len(l.Outbox) > 0 && l.Root["gates"] == "" && l.Root["told"] == "" {
		l.wrong("the outbox has entries, and no tick looks")
	}
	if got, err := strconv.Atoi("0" + l.Root["gates"]); err != nil || got < level || got > 3 {
		l.wrong("the root says %q of gates, there are some of level %d", l.Root["gates"], level)
	}
	if first := l.Root["space"]; first != "" && l.Root["spaces"] == "" &&
		(len(spaces) > 1 || len(spaces) == 1 && !spaces[first]) {
		l.wrong("there are several namespaces, the first was %q, and the root does not tell", first)
	}
	if l.Root["mixed"] == "" && len(lanes) > 1 {
		l.wrong("there are %d lanes, and the root does not tell", len(lanes))
	}
	if urged := l.Root["urged"]; urged != "" && !urgedRow.MatchString(urged) {
		l.wrong("the root says %q of urgent work", urged)
	}
	for name, row := range l.Hashes[":shares"] {
		if !shareRow.MatchString(row) {
			l.wrong("share %q is %q", name, row)
		}
	}
	for name, row := range l.Hashes[":weights"] {
		if !weightRow.MatchString(row) || strings.Count(name, "\x1f") != 1 {
			l.wrong("weight %q is %q", name, row)
		}
	}
	for _, x := range l.Outbox {
		for _, n := range x.FieldValues {
			l.notice(x.ID, n.Field, n.Value)
		}
	}
}

// notice verifies one of the outbox. The execution may have been purged; if not, it has the gate, and does not run
// under that epoch.
func (l *look) notice(entry, kind, text string) {
	if kind == "a" || kind == "n" || kind == "k" || kind == "w" {
		if shape := noticeAwaited; !shape.MatchString(kind + " " + text) {
			l.wrong("entry %s of the outbox has %q: %q", entry, kind, text)
		}
		return
	}
	if kind == "r" && noticeResume.MatchString(text) || kind == "x" && noticeForget.MatchString(text) {
		return
	}
	if kind == "p" && noticeEvent.MatchString(text) || kind == "s" && noticeTrigger.MatchString(text) {
		return
	}
	if kind != "g" || !noticeGate.MatchString(text) {
		l.wrong("entry %s of the outbox has %q: %q", entry, kind, text)
		return
	}
	parts := strings.Split(text, " ")
	core, known := l.Hashes[":x:"+parts[1]]
	if !known {
		return
	}
	above := strings.Contains(","+l.Hashes[":closings"]["m"+core["r"]], ","+parts[0]+"=")
	if !above && !slices.Contains(strings.Split(l.gates(core["r"]), ","), parts[0]) {
		l.wrong("entry %s of the outbox tells %s of %s, which has gates %q", entry, parts[0], parts[1],
			l.gates(core["r"]))
	}
	state, what := core["s"], parts[2]
	if what != "gone" && what != "never" {
		return
	}
	if (state == "A1" || state == "A3") && core["e"] == parts[3] ||
		granted(codes.Code(state)) && core["ge"] == parts[3] {
		l.wrong("entry %s of the outbox releases %s under epoch %s, which is %s", entry, parts[1], parts[3], state)
	}
	epoch, _ := strconv.ParseFloat(parts[3], 64)
	last, _ := strconv.ParseFloat(core["e"], 64)
	given, _ := strconv.ParseFloat(core["ge"], 64)
	if epoch > max(last, given) {
		l.wrong("entry %s of the outbox is of epoch %s of %s, whose last is %.0f", entry, parts[3], parts[1],
			max(last, given))
	}
}

// gate: only work with gates is granted, under an epoch that no lease had.
func (x *execution) gate(code codes.Code) {
	if !granted(code) {
		return
	}
	if x.gates(x.core["r"]) == "" {
		x.say("is granted and its route has no gates")
	}
	if x.number("ge") <= x.number("e") {
		x.say("is granted under epoch %q, its last lease had %q", x.core["ge"], x.core["e"])
	}
}
