package invariant

import (
	"strconv"
	"strings"
)

// mailbox: the record counts the messages that wait and their bytes, they are in the order of their numbers, and
// repeats are known by no more than the last 1,000.
func (x *execution) mailbox() {
	list, marks := x.Lists[":mb:"+x.id], x.ZSets[":mk:"+x.id]
	if !x.has("mb") {
		if len(list)+len(marks) > 0 {
			x.say("%d messages and %d marks, and the record knows of none", len(list), len(marks))
		}
		return
	}
	counts := strings.Split(x.core["mb"], ",")
	if len(counts) != 3 {
		x.say("messages are %q", x.core["mb"])
		return
	}
	bytes, last := 0, 0
	for _, text := range list {
		bytes += len(text)
		parts := strings.SplitN(text, "\x1f", 6)
		number, err := strconv.Atoi(parts[0])
		if len(parts) != 6 || err != nil || number <= last || number > atoi(counts[0]) || parts[1] == "" ||
			!whole(parts[2]) {
			x.say("after message %d comes %.100q, of %s", last, text, counts[0])
		}
		last = number
	}
	if len(list) != atoi(counts[1]) || bytes != atoi(counts[2]) {
		x.say("%d messages of %d bytes wait, the record says %q", len(list), bytes, x.core["mb"])
	}
	if len(marks) != min(atoi(counts[0]), 1000) {
		x.say("%d marks of %s messages", len(marks), counts[0])
	}
	for mark, number := range marks {
		if (mark[0] != 'k' && mark[0] != 's') || number < 1 || number > float64(atoi(counts[0])) {
			x.say("the mark %q is of message %v of %s", mark, number, counts[0])
		}
	}
}
