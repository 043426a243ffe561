package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// order is a tool that orders, waits until that has come, and unpacks it, each once.
func order(fx *fftest.Effects) agent.Tool {
	schema := &jsonschema.Schema{Type: "object", Required: []string{"what"},
		Properties: map[string]*jsonschema.Schema{"what": {Type: "string"}}}
	return agent.ToolOf(agent.ToolSpec{Name: "order", Description: "orders", Schema: schema},
		func(ctx context.Context, arguments json.RawMessage) ([]agent.Part, error) {
			call, _ := agent.CallFrom(ctx)
			did := func(what string) (string, error) {
				return handler.Step(ctx, call.Task, call.Step+" "+what, func(context.Context) (string, error) {
					fx.Did(call.Step + " " + what)
					return what + string(arguments), nil
				})
			}
			ordered, err := did("sent")
			if err != nil {
				return nil, err
			}
			if _, err := call.Task.Wait(ctx, call.Step+" came", suspend.Timeout(), suspend.Within(time.Hour),
				suspend.OnTimeout(suspend.Resume)); !errors.Is(err, flowfabric.ErrWaitTimeout) {
				return nil, err
			}
			unpacked, err := did("unpacked")
			return agent.Text(ordered + ", " + unpacked), err
		}, agent.MaySuspend())
}

// A tool may wait and have steps. Wherever the worker dies, what is recorded is not done again.
func TestToolSuspends(t *testing.T) {
	crashes := fftest.Crashes(t, chat,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			model := &script{
				answers: []agent.Response{wants("order", `{"what":"tea"}`, "search", `{"text":"a"}`, "order",
					`{"what":"ink"}`, "order", `{"which":1}`), says("all here")},
				called: func(turn int, _ agent.Request) { fx.Did(fmt.Sprint("model ", turn)) },
			}
			return running(agent.Config{Model: model, Tools: append(noted(fx), order(fx))})
		}, "hello", func(r *fftest.Report[agent.Result]) {
			wantTalk(t, r.Result.Messages, "user: hello",
				`assistant:  order{"what":"tea"} search{"text":"a"} order{"what":"ink"} order{"which":1}`,
				`tool order c1: sent{"what":"tea"}, unpacked{"what":"tea"}`, "tool search c2: about a",
				`tool order c3: sent{"what":"ink"}, unpacked{"what":"ink"}`,
				`failed tool order c4: the arguments do not fit the schema: validating root: required: missing `+
					`properties: ["what"]`, "assistant: all here")
			if r.Err != nil {
				t.Errorf("%s: %v", r.Crash, r.Err)
			}
		})
	if crashes < 40 {
		t.Errorf("%d crashes", crashes)
	}
}
