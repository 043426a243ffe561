package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// calls makes n calls of 1,500 tokens, each in a step; the first call of all is refused.
func calls(refuse time.Duration) func(context.Context, *handler.Task, int) (int, error) {
	refused := refuse == 0
	return func(ctx context.Context, t *handler.Task, n int) (int, error) {
		for i := range n {
			_, err := handler.Step(ctx, t, fmt.Sprint("call ", i), func(ctx context.Context) (int, error) {
				p, err := t.Acquire(ctx, "openai/gpt-5", map[string]int64{"tokens": 1500})
				if err != nil {
					return 0, err
				}
				if !refused {
					refused = true
					return 0, errors.Join(errors.New("status 429"), p.Refused(ctx, refuse))
				}
				return i, p.Settle(ctx, nil)
			})
			if err != nil {
				return i, err
			}
		}
		return n, nil
	}
}

// Calls come as their service lets them, and who waits long gives its slot up and uses no retry.
func TestServices(t *testing.T) {
	gate := admission.Gate{Name: "openai/gpt-5", Service: &admission.Service{
		PerMinute: map[string]int64{"tokens": 60_000}, Patience: 1000 * 1000}} // a slot waits a millisecond
	r := fftest.Run(t, generate, calls(0), 4, fftest.Gates(gate))
	r.WantResult(4)
	if len(r.Attempts) != 1 || r.Snapshot.Retries != 0 {
		t.Errorf("%d attempts, %d retries", len(r.Attempts), r.Snapshot.Retries)
	}
	// the bucket of 1,500 is refilled three times, with 58,500 in a minute
	if r.Elapsed < 4*time.Second || r.Elapsed > 10*time.Second {
		t.Errorf("took %s", r.Elapsed)
	}
}

// A refusal closes the service for as long as it says.
func TestServiceRefuses(t *testing.T) {
	gate := admission.Gate{Name: "openai/gpt-5", Service: &admission.Service{
		PerMinute: map[string]int64{"tokens": 60_000}}}
	r := fftest.Run(t, generate, calls(10*time.Minute), 1, fftest.Gates(gate))
	r.WantResult(1)
	if r.Elapsed < 10*time.Minute || r.Snapshot.Retries != 1 {
		t.Errorf("took %s, %d retries", r.Elapsed, r.Snapshot.Retries)
	}
}
