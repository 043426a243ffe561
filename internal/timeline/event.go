// Package timeline tells what happened to an execution, of what the library keeps: in events, and each in one line. It
// makes no call.
package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

const eventTime = "2006-01-02T15:04:05.000Z"

// Told is an event with what follows from its other fields: the worker, and the text, which is a line of a
// timeline with time, kind, attempt, and what there is to say about it. Texts that callers chose are quoted where they
// are not plain.
func Told(e flowfabric.Event) flowfabric.Event {
	e.Worker = ids.Worker(e.Session)
	var b strings.Builder
	b.WriteString(e.At.UTC().Format(eventTime + " "))
	b.WriteString(strings.ReplaceAll(e.Kind, "_", " "))
	if e.Attempt > 0 {
		fmt.Fprintf(&b, ": attempt %d", e.Attempt)
	}
	if e.Worker != "" {
		b.WriteString(" on " + printable(e.Worker))
	}
	switch {
	case e.State == "":
	case e.Kind == EventReplayed:
		fmt.Fprintf(&b, ", was %s since %s", e.State, e.Until.UTC().Format(eventTime))
	default:
		fmt.Fprintf(&b, ", %s", e.State)
	}
	if e.Kind == EventDelayed && !e.Until.IsZero() {
		b.WriteString(", until " + e.Until.UTC().Format(eventTime))
	}
	if e.Kind == EventDelay {
		text := ", at once"
		if !e.Until.IsZero() {
			text = ", until " + e.Until.UTC().Format(eventTime)
		}
		b.WriteString(text)
	}
	if e.By != "" {
		b.WriteString(", by " + printable(e.By))
	}
	if e.Source != "" && e.Source != e.Detail {
		b.WriteString(" (" + printable(e.Source) + ")")
	}
	if e.From != "" {
		b.WriteString(" from " + printable(e.From))
	}
	switch first, rest, two := strings.Cut(e.Detail, " "); {
	case e.Detail == "":
	case e.Kind == EventSkipped:
		b.WriteString(", what it depends on did not succeed")
	case e.Kind == EventLateInput:
		fmt.Fprintf(&b, ", %s is not given: its upstream succeeded after that was decided", printable(e.Detail))
	case e.Kind == EventContinued:
		fmt.Fprintf(&b, ", with another input, %s so far", printable(e.Detail))
	case e.Kind == EventRewound:
		b.WriteString(", to before " + printable(e.Detail))
	case e.Kind == EventForked && first == "<":
		of, step, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&b, ", a fork of %s%s", of, before(step))
	case e.Kind == EventForked:
		of, step, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&b, ", the fork is %s%s", of, before(step))
	case e.Kind == EventPriority && two:
		fmt.Fprintf(&b, ", %s to %s", first, rest)
	case e.Kind == EventAttempt && two: // state and category
		fmt.Fprintf(&b, ", %s (%s)", outcomes[first], printable(rest))
	case e.Kind == EventAttempt:
		b.WriteString(", " + outcomes[first])
	case e.Kind == EventEnded:
		fmt.Fprintf(&b, " (%s)", printable(e.Detail))
	default:
		b.WriteString(", " + printable(e.Detail))
	}
	if e.Reason != "" && (e.Kind != EventResumed || e.Reason != limits.DefaultSignal) {
		b.WriteString(": " + printable(prose.Folded(e.Reason)))
	}
	e.Text = b.String()
	return e
}

// outcomes are the states of ended attempts in words.
var outcomes = map[string]string{"ended_success": "succeeded", "ended_failure": "failed",
	"ended_cancelled": "cancelled", "interrupted_reclaimed": "interrupted", "continued": "continued",
	"rewound": "rewound", "forked": "forked"}

// before says before which step a fork was made.
func before(step string) string {
	if step == "" {
		return ""
	}
	return ", before the step " + printable(step)
}

// printable quotes what could break a line or a terminal.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
