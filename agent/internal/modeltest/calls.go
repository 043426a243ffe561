package modeltest

import (
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// CheckCalls puts deltas of calls together, as a reader does, and compares what came with the calls of the answer.
func CheckCalls(t testing.TB, deltas []agent.Delta, want []agent.ToolCall) {
	t.Helper()
	got := map[string]agent.CallDelta{}
	for _, d := range deltas {
		c := *d.Call
		was, begun := got[c.ID]
		if !utf8.ValidString(c.Name+c.Arguments) || c.ID == "" || c.Name+c.Arguments == "" ||
			begun == (c.Name != "") {
			t.Errorf("the delta of a call is %+q, after %+q", c, was)
		}
		was.ID, was.Name, was.Arguments = c.ID, was.Name+c.Name, was.Arguments+c.Arguments
		got[c.ID] = was
	}
	same := len(got) == len(want)
	for _, c := range want {
		d := got[c.ID]
		same = same && d.ID == c.ID && d.Name == c.Name && string(wire.Arguments(d.Arguments)) == string(c.Arguments)
	}
	if !same {
		t.Errorf("the deltas call %+q, and the answer %+v", slices.Collect(maps.Values(got)), want)
	}
}
