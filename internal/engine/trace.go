package engine

import (
	"regexp"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// traceMark stands between the correlation of a signal and the trace of who sent it: the library stores both as one
// text, of which it makes nothing (ADR 18).
const traceMark = "|traceparent="

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// joinTrace is what is stored. A trace that is none, or for which there is no room, is left out.
func joinTrace(correlation, trace string) string {
	if trace == "" || !traceparent.MatchString(trace) || len(correlation)+len(traceMark)+
		len(trace) > limits.MaxCorrelation {
		return correlation
	}
	return correlation + traceMark + trace
}

// cutTrace takes apart what joinTrace has joined.
func cutTrace(stored string) (correlation, trace string) {
	if at := strings.LastIndex(stored, traceMark); at >= 0 && traceparent.MatchString(stored[at+len(traceMark):]) {
		return stored[:at], stored[at+len(traceMark):]
	}
	return stored, ""
}
