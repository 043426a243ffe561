package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type amount struct {
	Cents int `json:"cents"`
}

// noted are tools that note their calls as effects, by the name of their step.
func noted(fx *fftest.Effects) []agent.Tool {
	did := func(ctx context.Context) {
		call, _ := agent.CallFrom(ctx)
		fx.Did(call.Step)
	}
	return []agent.Tool{
		agent.NewTool("search", "looks things up", func(ctx context.Context, q query) (string, error) {
			did(ctx)
			return "about " + q.Text, nil
		}),
		agent.NewTool("refund", "pays back", func(ctx context.Context, in amount) (string, error) {
			did(ctx)
			return fmt.Sprintf("paid %d", in.Cents), nil
		}, agent.Needs(func(amount) agent.Decision { return agent.Decision{Ask: true, Assignee: "support"} })),
	}
}

// support is an agent with two searches side by side, a refund that is approved and one that is rejected, and an
// answer.
func support(fx *fftest.Effects) agent.Config {
	model := &script{
		answers: []agent.Response{wants("search", `{"text":"a"}`, "refund", `{"cents":5}`, "search", `{"text":"b"}`,
			"refund", `{"cents":900}`), says("all done now")},
		called: func(turn int, _ agent.Request) { fx.Did(fmt.Sprint("model ", turn)) },
	}
	return agent.Config{Model: model, Tools: noted(fx)}
}

var decisions = []fftest.Answer{
	fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "approve"}, flowfabric.By("anna")),
	fftest.Approve("approve 1.4 refund", suspend.Answer{Choice: "reject", Comment: "too much", By: "anna"}),
}

var supported = []string{"user: hello",
	`assistant:  search{"text":"a"} refund{"cents":5} search{"text":"b"} refund{"cents":900}`,
	"tool search c1: about a", "tool refund c2: paid 5", "tool search c3: about b",
	"failed tool refund c4: the call was not made: rejected by anna: too much", "assistant: all done now"}

// Wherever the worker dies around an agent with tools side by side and people who decide, no recorded call of the
// model or a tool is made again, readers see each frame once, and what was spent lies between what was recorded and
// what was done.
func TestCrashes(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1000}}}
	var mu sync.Mutex
	var fx *fftest.Effects
	var shown []string
	repeated := 0
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			fx = next
			mu.Unlock()
			return fftest.Answered(running(support(next)), decisions...)
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Result.Text != "all done now" || r.Result.Usage.Total() != 20 || r.Result.Turns != 2 {
				t.Errorf("%s: %+v, %v", r.Crash, r.Result, r.Err)
			}
			wantTalk(t, r.Result.Messages, supported...)
			kept := slices.Concat(r.Kept("message"), r.Kept("token"))
			if shown == nil {
				shown = kept
			}
			if !slices.Equal(kept, shown) {
				t.Errorf("%s: readers see\n%q\nundisturbed\n%q", r.Crash, kept, shown)
			}
			made := int64(fx.Count("model 1") + fx.Count("model 2"))
			if spent := r.Spent["purse"]["tokens"]; spent < 20 || spent > 10*made {
				t.Errorf("%s: %d tokens are spent, 20 recorded, and the model was called %d times", r.Crash, spent,
					made)
			}
			if made > 2 {
				repeated++
			}
		}, fftest.Gates(purse))
	// Appends, spends and records of two model calls, records of four tools, two waits and their answers, claims and
	// the end; before and after each.
	if crashes < 40 || repeated == 0 {
		t.Errorf("%d crashes, %d repeated a model call", crashes, repeated)
	}
	if len(shown) != 7+3 {
		t.Errorf("readers see %q", shown)
	}
}
