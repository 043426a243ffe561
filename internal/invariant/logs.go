package invariant

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// count is a number of a stream's metadata or entry, absent when 0.
func count(fields map[string]string, name string) int {
	n, _ := strconv.Atoi(fields[name])
	return n
}

// logs: the three logs of an attempt have one order and do not touch each other: what is not durable is counted apart,
// the newest frames of every log but the one that expires are there, and the summary document has the version of the
// last delta.
func (x *execution) logs(attempt string, meta map[string]string) {
	say := func(format string, args ...any) { x.say("stream of attempt "+attempt+": "+format, args...) }
	key := x.id + ":" + attempt
	main, deltas, live := x.Streams[":f:"+key], x.Streams[":fd:"+key], x.Streams[":fl:"+key]
	durables, version, lives, last := count(meta, "c"), count(meta, "v"), count(meta, "l"), count(meta, "q")
	if durables+version+lives != last || len(main) > durables || len(deltas) > version || len(live) > lives ||
		len(main) == 0 && durables > 0 || len(deltas) == 0 && version > 0 || last == 0 {
		say("%v with %d, %d and %d entries", meta, len(main), len(deltas), len(live))
	}
	for i, e := range main {
		if ordinal(e) != durables-len(main)+i+1 {
			say("frame %s is durable frame %d of %d", e.ID, ordinal(e), durables)
		}
	}
	if gone, _, _ := strings.Cut(cmp.Or(meta["t"], "0"), " "); len(main) > 0 &&
		gone != strconv.Itoa(durables-len(main)) {
		say("%s of its frames are gone, %d of %d are there", gone, len(main), durables)
	}
	for i, e := range deltas {
		if count(e.FieldValues, "v") != version-len(deltas)+i+1 {
			say("delta %s made version %q of %d", e.ID, e.FieldValues["v"], version)
		}
	}
	for _, e := range live {
		if ms := count(e.FieldValues, "x"); ms < 1000 || ms > 60000 {
			say("best-effort frame %s has a ttl of %q ms", e.ID, e.FieldValues["x"])
		}
	}
	if _, stored := x.Streams[":fl:"+key]; stored && !x.Expires[":fl:"+key] {
		say("its best-effort frames stay for ever")
	}
	x.order(say, meta, slices.Concat(main, deltas, live))
	runs(say, meta, x.Streams[":fe:"+key])
	document, ok := x.Hashes[":fs:"+key]
	if ok != (version > 0) ||
		ok && (document["v"] != meta["v"] || len(document["d"]) < 2 || len(document["d"]) > 256<<10 ||
			!whole(document["f"]) || !whole(document["l"]) || len(document) != 4) {
		say("version %d of the summary is stored as %.300q", version, document)
	}
}

// runs: every run after the first has an entry, by its first frame, of which the newest are kept; it tells which of
// the frames before it were recorded.
func runs(say func(string, ...any), meta map[string]string, entries []rueidis.XRangeEntry) {
	if !runText.MatchString(meta["e"]) || meta["r"] != "" && !coverText.MatchString(meta["r"]) {
		say("its run is %q, recorded is %q", meta["e"], meta["r"])
	}
	last := max(count(meta, "n"), 1)
	if len(entries) > last-1 || len(entries) == 0 && last > 1 {
		say("%d entries of %d runs", len(entries), last)
	}
	id, _ := cut(meta["i"])
	for i, e := range entries {
		recorded, _, _ := strings.Cut(e.FieldValues["r"], " ")
		covered, _ := strconv.Atoi(recorded)
		if ms, _ := cut(e.ID); ms > id || count(e.FieldValues, "n") != last-len(entries)+i+1 ||
			!placeText.MatchString(e.FieldValues["r"]) || covered >= count(meta, "q") || !whole(e.FieldValues["e"]) ||
			!whole(e.FieldValues["d"]) || len(e.FieldValues) != 5 {
			say("run %s of %d is %q", e.ID, last, e.FieldValues)
		}
	}
}

var (
	runText   = regexp.MustCompile(`^[1-9]\d*[uk]?$`)
	placeText = regexp.MustCompile(`^\d+ \d+-\d+$`)
	coverText = regexp.MustCompile(`^\d+ \d+-\d+( \d+ \d+ \d+)?$`)
)

// single is an entry for each frame: frames that one call appended share one, which has the id of the last and no
// names, but in this order: a p if the payloads are an odd number, the last one's place, four texts that they have in
// common, their number, and they. A place is empty or "d,<durable frames>", "s<version>,<durable frames>" or
// "l<ttl>,<durable frames>", which become fields d, v and x. What is no such entry stays as it is.
func single(entries []rueidis.XRangeSlice) (out []rueidis.XRangeEntry) {
	for _, e := range entries {
		var texts []string
		named := map[string]string{}
		for _, f := range e.FieldValues {
			texts = append(texts, f.Field, f.Value)
			named[f.Field] = f.Value
		}
		if len(texts) > 0 && texts[0] == "p" {
			texts = texts[1:]
		}
		if len(texts) < 7 || texts[5] != strconv.Itoa(len(texts)-6) {
			out = append(out, rueidis.XRangeEntry{ID: e.ID, FieldValues: named})
			continue
		}
		ms, last := cut(e.ID)
		for i, payload := range texts[6:] {
			before := len(texts) - 7 - i
			own := placed(texts[0], before)
			own["p"] = payload
			out = append(out, rueidis.XRangeEntry{ID: strconv.FormatUint(ms, 10) + "-" +
				strconv.FormatUint(last-uint64(before), 10), FieldValues: own})
		}
	}
	return out
}

// placed has the fields for the place of the last frame of an entry, or of one that comes so many before it.
func placed(word string, before int) map[string]string {
	mode, durables, found := strings.Cut(word, ",")
	if !found || mode == "" {
		return map[string]string{}
	}
	earlier := func(number string) string {
		n, _ := strconv.Atoi(number)
		return strconv.Itoa(n - before)
	}
	switch own := map[string]string{"d": durables}; mode[0] {
	case 's':
		own["v"] = earlier(mode[1:])
		return own
	case 'l':
		own["x"] = mode[1:]
		return own
	default:
		own["d"] = earlier(durables)
		return own
	}
}

// ordinal is the number of durable frames up to an entry.
func ordinal(e rueidis.XRangeEntry) int {
	if _, ok := e.FieldValues["d"]; ok {
		return count(e.FieldValues, "d")
	}
	return sequence(e)
}

// sequence is the producer sequence of a frame.
func sequence(e rueidis.XRangeEntry) int {
	_, seq := cut(e.ID)
	return int(seq)
}

// order: by id the sequences and the durable frames grow, and the newest frame has the last id.
func (x *execution) order(say func(string, ...any), meta map[string]string, all []rueidis.XRangeEntry) {
	slices.SortFunc(all, func(a, b rueidis.XRangeEntry) int { return byID(a.ID, b.ID) })
	last, before := 0, 0
	for _, e := range all {
		n := sequence(e)
		if n <= last || n > count(meta, "q") {
			say("frame %s has sequence %d after %d", e.ID, n, last)
		}
		if ordinal(e) < before {
			say("frame %s has %d durable frames before it, an earlier one %d", e.ID, ordinal(e), before)
		}
		last, before = n, ordinal(e)
		if byID(e.ID, meta["i"]) > 0 || n == count(meta, "q") && e.ID != meta["i"] {
			say("frame %d is %s, the last id is %s", n, e.ID, meta["i"])
		}
	}
}

func byID(a, b string) int {
	am, as := cut(a)
	bm, bs := cut(b)
	return cmp.Or(cmp.Compare(am, bm), cmp.Compare(as, bs))
}

func cut(id string) (ms, seq uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	seq, _ = strconv.ParseUint(second, 10, 64)
	return ms, seq
}
