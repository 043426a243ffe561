package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Cleanup and what is for failures run in virtual time, after the last of what they watch, and their handlers ask
// what it came to.
func TestCleanupInVirtualTime(t *testing.T) {
	work := handler.Define[string, string]("work", flowfabric.Retries(0))
	after := handler.Define[string, string]("after")
	result := flow.Input[string]{Name: "result"}
	var o *office
	inOffice(t, runtime.Config{}, func(office *office) {
		o = office
		f := flow.New("f")
		good, bad := flow.Add(f, "good", work, "good"), flow.Add(f, "bad", work, "bad")
		flow.Add(f, "cleanup", after, "cleanup", result.From(good), flow.After(bad), flow.AllEnded())
		flow.Add(f, "undo", after, "undo", result.From(good), flow.After(bad), flow.AnyFailed())
		flow.Add(f, "calm", after, "calm", flow.After(good), flow.AnyFailed())
		if _, err := client.SubmitFlow(o.t.Context(), o.Client(), f); err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(time.Hour)
		o.want("cleanup of [bad failed, good completed] and good", 20*time.Minute)
		o.want("undo of [bad failed, good completed] and good", 20*time.Minute)
		o.want("calm of [good completed] and ") // it was skipped
	}, handler.Bind(work, func(_ context.Context, task *handler.Task, in string) (string, error) {
		if in == "bad" {
			return "", errors.New("no")
		}
		if task.AttemptType() != flowfabric.AttemptResumed {
			return "", handler.Delay(20 * time.Minute)
		}
		return in, nil
	}), handler.Bind(after, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		outcomes, err := task.Upstreams(ctx)
		if err != nil {
			return "", err
		}
		var told []string
		for _, up := range outcomes {
			told = append(told, fmt.Sprint(up.Node, " ", up.State))
		}
		value, _, err := handler.Given(task, result)
		o.note(fmt.Sprintf("%s of [%s] and %s", in, strings.Join(told, ", "), value))
		return "", err
	}))
}
