package engine

import (
	"strings"
	"testing"
)

func TestTraceBesideTheCorrelation(t *testing.T) {
	const trace = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"
	for _, correlation := range []string{"", "ticket-7", "a|traceparent=b", strings.Repeat("x", 188)} {
		stored := joinTrace(correlation, trace)
		if c, tr := cutTrace(stored); c != correlation || tr != trace || len(stored) > 256 {
			t.Errorf("%q came back as %q with %q in %d bytes", correlation, c, tr, len(stored))
		}
		if c, tr := cutTrace(joinTrace(correlation, "")); c != correlation || tr != "" {
			t.Errorf("%q without a trace came back as %q with %q", correlation, c, tr)
		}
	}
	full := strings.Repeat("x", 189)
	if joinTrace(full, trace) != full {
		t.Error("a trace takes the room of a correlation")
	}
	if joinTrace("a", "made up") != "a" {
		t.Error("a trace that is none is stored")
	}
}
