package engine

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

const eventTime = "2006-01-02T15:04:05.000Z"

// String is the event as one line of a timeline: time, kind, attempt, and what there is to say about it. Texts that
// callers chose are quoted where they are not plain.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.At.UTC().Format(eventTime + " "))
	b.WriteString(strings.ReplaceAll(string(e.Kind), "_", " "))
	if e.Epoch > 0 {
		fmt.Fprintf(&b, ": attempt %d", e.Attempt)
	}
	if e.Session != "" {
		b.WriteString(" on " + printable(Instance(e.Session)))
	}
	state, _ := flowfabric.Project(e.Code)
	switch {
	case e.Code == "":
	case e.Kind == EventReplayed:
		fmt.Fprintf(&b, ", was %s since %s", state.Public, e.Until.UTC().Format(eventTime))
	default:
		fmt.Fprintf(&b, ", %s", state.Public)
	}
	if e.Kind == EventDelayed && !e.Until.IsZero() {
		b.WriteString(", until " + e.Until.UTC().Format(eventTime))
	}
	if e.By != "" {
		b.WriteString(", by " + printable(e.By))
	}
	switch old, now, ok := strings.Cut(e.Detail, " "); {
	case e.Detail == "":
	case e.Kind == EventPriority && ok:
		fmt.Fprintf(&b, ", %s to %s", old, now)
	case e.Kind == EventClaimed, e.Kind == EventAttempt, e.Kind == EventEnded:
		b.WriteString(", " + printable(strings.ReplaceAll(e.Detail, "_", " ")))
	default:
		b.WriteString(": " + printable(e.Detail))
	}
	return b.String()
}

// printable quotes what could break a line or a terminal.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
