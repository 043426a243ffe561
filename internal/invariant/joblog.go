package invariant

import (
	"strconv"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// lines: the log of an attempt is one that was begun. It has at most so many lines and bytes, without a gap, and each
// id says how many bytes and lines are before it.
func (x *execution) lines(attempt string) {
	say := func(format string, args ...any) { x.say("log of attempt "+attempt+": "+format, args...) }
	if n, _ := strconv.Atoi(attempt); n < 1 || float64(n) > x.number("n") {
		say("there are %s attempts", x.core["n"])
	}
	list := x.Streams[":lg:"+x.id+":"+attempt]
	if len(list) == 0 || len(list) > limits.MaxLogLines {
		say("%d lines", len(list))
		return
	}
	start, number := cut(list[0].ID)
	bytes, next := start, number
	for _, e := range list {
		if at, n := cut(e.ID); at != bytes || n != next || !whole(e.FieldValues["t"]) || e.FieldValues["l"] == "" ||
			e.FieldValues["r"] == "" {
			say("line %s is %.200q, want %d-%d", e.ID, e.FieldValues, bytes, next)
		}
		bytes, next = bytes+uint64(len(e.FieldValues["b"])), next+1
	}
	if bytes-start > limits.MaxLogBytes {
		say("%d bytes", bytes-start)
	}
}
