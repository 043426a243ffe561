package runtime

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
)

// What becomes of each call to a service is counted: once when its turn came or did not, and once when it ended.
func TestCallsToServicesAreCounted(t *testing.T) {
	y := newTreasury(t, admission.Gate{Name: "openai/gpt-5",
		Service: &admission.Service{PerMinute: map[string]int64{"tokens": 60_000}}})
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		p, err := task.Acquire(ctx, "openai/gpt-5", map[string]int64{"tokens": 100})
		if err != nil {
			return "", err
		}
		switch in {
		case "settles":
			return "", p.Settle(ctx, nil)
		case "releases":
			return "", p.Release(ctx)
		case "is refused":
			return "", p.Refused(ctx, time.Hour)
		}
		return "", nil
	})
	for _, in := range []string{"settles", "releases", "forgets", "is refused"} {
		y.reach(y.submit("acme", in), "T1")
	}
	id := y.submit("acme", "waits")
	y.reach(id, "R2ai")
	for outcome, want := range map[string]float64{"admitted": 4, "away": 1, "settled": 1, "released": 1, "refused": 1,
		"forgotten": 1} {
		if got := y.counted("flowfabric_service_calls_total", outcome); got != want {
			t.Errorf("%v calls %s, want %v", got, outcome, want)
		}
	}
}
