package flowfabric

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Gate names a gate that an execution asks before it runs, or is a limit of a key, which [LimitKey] makes.
type Gate string

// Limit is how much of the work under one key may run, see [LimitKey]. What is 0 is not limited; one of the two must
// be.
type Limit struct {
	Concurrency int           // executions at the same time, up to 1,000,000; a suspended one does not count
	Rate        int           // starts within Per, up to 1,000,000
	Per         time.Duration // 1 ms..30 days, rounded up to whole ms; needed with Rate
}

// String is like "2 at once, 10 in 1s".
func (l Limit) String() string {
	var parts []string
	if l.Concurrency > 0 {
		parts = append(parts, strconv.Itoa(l.Concurrency)+" at once")
	}
	if l.Rate > 0 {
		parts = append(parts, strconv.Itoa(l.Rate)+" in "+l.Per.String())
	}
	return strings.Join(parts, ", ")
}

// limitPrefix begins the gate of a limit: "@<at once>.<starts>.<window, ms>@<key>". The name says everything, so
// that nothing is to be registered, and a key that nobody uses is nowhere.
const limitPrefix = "@"

// limitGate makes the gate of a limit; what is wrong with it is found where gates are checked.
func limitGate(key string, l Limit) Gate {
	window := (l.Per + time.Millisecond - 1) / time.Millisecond
	if l.Rate == 0 && l.Per > 0 {
		window = 0
	}
	return Gate(fmt.Sprintf("%s%d.%d.%d@%s", limitPrefix, l.Concurrency, l.Rate, window, escapeKey(key)))
}

// escapeKey writes a key with letters, digits and _.:/@+=- only; any other byte becomes %XX.
func escapeKey(key string) string {
	var b strings.Builder
	for _, c := range []byte(key) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("_.:/@+=-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func unescapeKey(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Limit is the key and the limit of a gate that [LimitKey] made; ok is false for a gate by name.
func (g Gate) Limit() (key string, limit Limit, ok bool) {
	rest, ok := strings.CutPrefix(string(g), limitPrefix)
	numbers, text, found := strings.Cut(rest, "@")
	parts := strings.Split(numbers, ".")
	if !ok || !found || len(parts) != 3 {
		return "", Limit{}, false
	}
	var n [3]int64
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return "", Limit{}, false
		}
	}
	return unescapeKey(text),
		Limit{Concurrency: int(n[0]), Rate: int(n[1]), Per: time.Duration(n[2]) * time.Millisecond}, true
}

// Name is the name of the gate; that of a limit says what it is.
func (g Gate) Name() string { return string(g) }

// String is "gate <name>" or "limit <key> (2 at once, 10 in 1s)".
func (g Gate) String() string {
	if key, l, ok := g.Limit(); ok {
		return "limit " + key + " (" + l.String() + ")"
	}
	return "gate " + string(g)
}
