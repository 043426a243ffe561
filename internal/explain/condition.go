package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// inCondition puts what a suspension waits for into words, and how far that is. The form is that of
// lua/lib/condition.lua.
func inCondition(f engine.Facts) string {
	s := f.Suspension
	switch s.Condition {
	case "O":
		return "an operator; no signal resumes it"
	case "T":
		return "time to pass, or an operator; no signal resumes it"
	}
	lines := strings.Split(s.Condition, "\x1e")
	said := make([]string, len(lines)+1)
	for i, line := range lines {
		if line == waitwords.ChildrenCondition && f.Wait != nil {
			said[i+1] = fmt.Sprintf("%s to end (%d of %d have, %d of them with success)", children(f),
				f.Wait.Succeeded+f.Wait.Others, f.Wait.Total, f.Wait.Succeeded)
			continue
		}
		said[i+1] = part(strings.Split(line, "\x1f"), s.Waitpoints, said, f.Satisfied[i+1])
	}
	return said[len(lines)]
}

// part says one node; said are those before it.
func part(p []string, points []suspend.Waitpoint, said []string, have int) string {
	key := func(number string) string {
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= len(points) {
			if s := points[n-1].Subject; s != "" {
				return quote(points[n-1].Key) + ", which takes an event " + quote(s)
			}
			return quote(points[n-1].Key)
		}
		return "number " + number
	}
	switch {
	case p[0] == "M" && len(p) == 2:
		return "a message to mailbox " + quote(p[1]) + soFar(have, "1")
	case p[0] == "K":
		return "children to end"
	case p[0] == "L" && len(p) >= 4:
		need, names := p[2], p[3:]
		text := fmt.Sprintf("%s on waitpoint %s", signals(need, names), key(p[1]))
		return text + soFar(have, need)
	case p[0] == "C" && len(p) >= 5:
		keys := make([]string, len(p)-4)
		for i, number := range p[4:] {
			keys[i] = key(number)
		}
		return counted(p[1], p[2], p[3], strings.Join(keys, ", ")) + soFar(have, p[1])
	case p[0] == "G" && len(p) >= 3:
		var members []string
		for _, number := range p[2:] {
			if n, err := strconv.Atoi(number); err == nil && n >= 1 && n < len(said) {
				members = append(members, said[n])
			}
		}
		return combined(p[1], members)
	}
	return "a condition that this library cannot read"
}

func signals(need string, names []string) string {
	if len(names) == 1 && names[0] == "" {
		return "a signal"
	}
	if len(names) == 1 {
		return "the signal " + quote(names[0])
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = quote(name)
		if name == "" {
			list[i] = "any"
		}
	}
	if need == strconv.Itoa(len(names)) {
		return "each of the signals " + strings.Join(list, ", ")
	}
	return need + " of the signals " + strings.Join(list, ", ")
}

// counted says a count of distinct waitpoints, signals or sources.
func counted(need, kind, name, keys string) string {
	named := ""
	if name != "" {
		named = " " + quote(name)
	}
	switch kind {
	case "w":
		return fmt.Sprintf("a signal%s on %s of the waitpoints %s", named, need, keys)
	case "s":
		return fmt.Sprintf("%s different signals%s on the waitpoints %s", need, named, keys)
	}
	return fmt.Sprintf("signals%s of %s different senders on the waitpoints %s", named, need, keys)
}

func soFar(have int, need string) string {
	if have == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %s so far)", have, need)
}

func combined(need string, members []string) string {
	list := "(" + strings.Join(members, "; ") + ")"
	switch {
	case len(members) == 1:
		return members[0]
	case need == strconv.Itoa(len(members)):
		return "all of " + list
	case need == "1":
		return "one of " + list
	}
	return need + " of " + list
}
