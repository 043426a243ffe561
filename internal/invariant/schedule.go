package invariant

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/calendar"
)

// schedules verifies that every schedule has its name in the list, and that those and no others are filed under their
// next time that have one and are not paused; and that the counts of a record agree with each other.
func (l *look) schedules() {
	names, due := l.ZSets[":scnames"], l.ZSets[":schedules"]
	for name, score := range names {
		if _, ok := l.Hashes[":sc:"+name]; !ok || score != 0 {
			l.wrong("schedule %q is listed with %v, record %v", name, score, ok)
		}
	}
	for name := range due {
		if _, ok := l.Hashes[":sc:"+name]; !ok {
			l.wrong("schedule %q is filed and has no record", name)
		}
	}
	last, _ := strconv.ParseUint(l.Root["revision"], 10, 53)
	for key, record := range l.Hashes {
		name, ok := strings.CutPrefix(key, ":sc:")
		if !ok {
			continue
		}
		if _, ok := names[name]; !ok {
			l.wrong("schedule %q is not listed", name)
		}
		at, filed := due[name]
		want, err := strconv.ParseFloat(record["nx"], 64)
		if active := err == nil && record["pz"] == ""; active != filed || active && at != want {
			l.wrong("schedule %q is filed at %v (%v), its record says %q, paused %q", name, at, filed, record["nx"],
				record["pz"])
		}
		if rv, err := strconv.ParseUint(record["rv"], 10, 53); err != nil || rv > last {
			l.wrong("schedule %q has revision %q, the partition's last is %d", name, record["rv"], last)
		}
		l.scheduleRecord(name, record)
	}
}

// scheduleEnd verifies that a schedule is not due after its end, where its definition can be read: not once it has
// fired as often as it may, and at no instant after its last one.
func (l *look) scheduleEnd(name string, record map[string]string) {
	d, err := calendar.Decode([]byte(record["df"]))
	if err != nil {
		return // a test made it up
	}
	if fired, _ := strconv.ParseUint(record["fc"], 10, 64); d.Runs > 0 &&
		(fired > d.Runs && record["rv"] == record["ic"] || fired >= d.Runs && record["nx"] != "") {
		l.wrong("schedule %q fired %d of %d and is due at %q", name, fired, d.Runs, record["nx"])
	}
	if next, err := strconv.ParseInt(record["nx"], 10, 64); err == nil && !d.Until.IsZero() &&
		next > d.Until.UnixMilli() {
		l.wrong("schedule %q is due at %d and ended at %d", name, next, d.Until.UnixMilli())
	}
}

// scheduleFields are all a record may have, but for the counts by reason; the numbers first.
var scheduleFields = []string{"rv", "ic", "nx", "lf", "fc", "mc", "mf", "mt", "mn", "pa", "ra", "ct", "up", "il",
	"df", "in", "lx", "mr", "pz", "pb", "rb", "by", "lw"}

const scheduleNumbers = 14

// mostMissed is where a count of missed instants stops: the largest whole number that is exact.
const mostMissed = 1<<53 - 1

func (l *look) scheduleRecord(name string, record map[string]string) {
	var reasons, total, run float64
	for field, value := range record {
		at := slices.Index(scheduleFields, field)
		switch {
		case strings.HasPrefix(field, "m:"):
			n, _ := strconv.ParseFloat(value, 64)
			reasons += n
		case at < 0 || value == "" && field != "pb" && field != "rb":
			l.wrong("schedule %q has field %s %q", name, field, value)
		case at < scheduleNumbers && !whole(value):
			l.wrong("schedule %q: %s is %q", name, field, value)
		}
	}
	total, _ = strconv.ParseFloat(record["mc"], 64)
	run, _ = strconv.ParseFloat(record["mn"], 64)
	if min(reasons, mostMissed) != total || run > total || (record["mr"] == "") != (total == 0) {
		l.wrong("schedule %q missed %v, by reason %v, in the last run %v (%q)", name, total, reasons, run, record["mr"])
	}
	if record["il"] != "" && record["il"] != strconv.Itoa(len(record["in"])) {
		l.wrong("schedule %q has an input of %d bytes and says %s", name, len(record["in"]), record["il"])
	}
	if fired, _ := strconv.Atoi(record["fc"]); fired > 0 && (record["lf"] == "" || record["lx"] == "") {
		l.wrong("schedule %q fired %d and does not know the last", name, fired)
	}
	l.scheduleEnd(name, record)
	for _, field := range []string{"df", "rv", "ic", "ct", "up"} {
		if record[field] == "" {
			l.wrong("schedule %q has no %s", name, field)
		}
	}
}
