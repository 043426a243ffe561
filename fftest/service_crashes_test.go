package fftest_test

import (
	"context"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Wherever a worker dies around a call to a service that takes one at a time, the execution ends: no call stays under
// way for ever. The gate of the service is made with the others and not named by the execution.
func TestCrashesOfCallsToAService(t *testing.T) {
	def := handler.Define[string, string]("calls")
	gate := admission.Gate{Name: "fake/model",
		Service: &admission.Service{Calls: 1, PerMinute: map[string]int64{"requests": 20, "tokens": 100_000}}}
	crashes := fftest.Crashes(t, def,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			return func(ctx context.Context, task *handler.Task, in string) (all string, err error) {
				for _, name := range []string{"first", "second"} {
					said, err := handler.Step(ctx, task, name, func(ctx context.Context) (string, error) {
						p, err := task.Acquire(ctx, "fake/model", map[string]int64{"tokens": 100})
						if err != nil {
							return "", err
						}
						fx.Did(name)
						return in + " " + name, p.Settle(ctx, map[string]int64{"tokens": 60})
					})
					if err != nil {
						return "", err
					}
					all += said + "."
				}
				return all, nil
			}
		}, "called", func(r *fftest.Report[string]) {
			if r.Err != nil || r.Result != "called first.called second." || r.Elapsed > 5*time.Minute {
				t.Errorf("%s: %q after %v, %v", r.Crash, r.Result, r.Elapsed, r.Err)
			}
		}, fftest.Gates(gate))
	if crashes < 12 {
		t.Errorf("%d crashes", crashes)
	}
}
