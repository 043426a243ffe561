package invariant

import (
	"slices"
	"strconv"
	"strings"
)

// writtenFields are all that a written stream may have (lua/lib/written.lua); the numbers first.
var writtenFields = []string{"mt", "e", "h", "o", "tt", "xa", "du", "g", "nm", "md", "s", "a", "z", "sq", "rc"}

const writtenNumbers = 8

// written verifies written streams: each that expires is filed by then, each fork and its source know each other, what
// was deleted has forks, and nothing of one is left without its record.
func (l *look) written() {
	due := l.ZSets[":dsdue"]
	for id := range due {
		if r := l.Hashes[":ds:"+id]; r == nil || r["du"] == "" || r["g"] != "" {
			l.wrong("the stream %s is filed and does not expire", id)
		}
	}
	for key, record := range l.Hashes {
		if id, ok := strings.CutPrefix(key, ":ds:"); ok {
			l.writtenRecord(id, record)
			at, filed := due[id]
			until, err := strconv.ParseFloat(record["du"], 64)
			if err == nil && record["g"] == "" && (!filed || at > until) {
				l.wrong("the stream %s expires at %.0f and is filed at %v (%v)", id, until, at, filed)
			}
		}
		if id, ok := strings.CutPrefix(key, ":dp:"); ok && l.Hashes[":ds:"+id]["g"] != "" {
			l.wrong("the stream %s is deleted and has producers", id)
		}
		l.writtenOrphan(key)
	}
	for key := range l.Streams {
		l.writtenOrphan(key)
	}
	for key, forks := range l.Sets {
		id, ok := strings.CutPrefix(key, ":df:")
		if l.writtenOrphan(key); !ok {
			continue
		}
		for _, fork := range forks {
			if l.Hashes[":ds:"+fork]["s"] != id {
				l.wrong("the stream %s has a fork %s, whose source is %q", id, fork, l.Hashes[":ds:"+fork]["s"])
			}
		}
	}
}

// writtenOrphan verifies that a key of a written stream has its record.
func (l *look) writtenOrphan(key string) {
	for _, family := range []string{":dl:", ":dp:", ":df:"} {
		if id, ok := strings.CutPrefix(key, family); ok && l.Hashes[":ds:"+id] == nil {
			l.wrong("%s has no stream", key)
		}
	}
}

func (l *look) writtenRecord(id string, record map[string]string) {
	for field, value := range record {
		at := slices.Index(writtenFields, field)
		if at < 0 || at < writtenNumbers && !whole(value) {
			l.wrong("the stream %s has field %s %q", id, field, value)
		}
	}
	for _, field := range []string{"nm", "mt", "md", "e", "a"} {
		if record[field] == "" {
			l.wrong("the stream %s has no %s", id, field)
		}
	}
	source := record["s"]
	if source == "" {
		if record["o"] != "" || record["h"] != "" {
			l.wrong("the stream %s has no source and begins at %q, %q deep", id, record["o"], record["h"])
		}
	} else if !slices.Contains(l.Sets[":df:"+source], id) || l.Hashes[":ds:"+source] == nil {
		l.wrong("the stream %s is a fork of %s, which does not know it", id, source)
	}
	if _, forked := l.Sets[":df:"+id]; record["g"] != "" && !forked {
		l.wrong("the stream %s is deleted and has no forks", id)
	}
}
