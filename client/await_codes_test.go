package client

import (
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Whatever waits for a new attempt, in whichever index it is, is not ended by the end of the last one.
func TestNextEnd(t *testing.T) {
	for _, text := range codes.All() {
		code := codes.Code(text)
		s, _ := codes.Project(code)
		if s.Terminal() {
			continue
		}
		want := uint32(2) // the second attempt is the current one
		if strings.HasPrefix(s.AttemptState, "pending_") ||
			s.LifecyclePhase == "runnable" && strings.HasSuffix(string(code), "r") {
			want = 3
		}
		if got := nextEnd(snapshot(flowfabric.ExecutionID{}, code, 2)); got != want {
			t.Errorf("%s, after two attempts: %d is the first that can end, want %d", code, got, want)
		}
	}
}
