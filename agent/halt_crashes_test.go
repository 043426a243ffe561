package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// slow is a kind of work that takes ten seconds.
var slow = handler.Define[query, string]("slow", handler.Retry(5, time.Second, time.Minute))

func slowly(ctx context.Context, _ *handler.Task, in query) (string, error) {
	select {
	case <-time.After(10 * time.Second):
		return "slow " + in.Text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// acts is an agent that does everything in one turn: two searches one after the other, a refund that people approve,
// and a child; then it answers. At one point it is told something.
type acts struct {
	fx    *fftest.Effects
	point string
	tells fftest.Answer
}

// at tells what there is to tell at a point.
func (a acts) at(ctx context.Context, point string) {
	if a.point == point {
		fftest.Tell(ctx, a.tells)
	}
}

func (a acts) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	answers := 0
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			answers++
		}
	}
	a.fx.Did(fmt.Sprint("model of ", len(req.Messages), " messages"))
	if err := delta(agent.Delta{Text: "so "}); err != nil {
		return agent.Response{}, err
	}
	point := "first answer"
	if answers > 0 {
		point = "last answer"
	}
	if a.point == point {
		a.at(ctx, point)
		if ctx.Err() == nil && req.Messages[len(req.Messages)-1].Text() != "and now?" {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute): // nobody has heard it
			}
		}
	}
	if ctx.Err() != nil {
		return agent.Response{}, context.Cause(ctx)
	}
	if answers > 0 || req.Messages[len(req.Messages)-1].Text() != "hello" {
		defer a.at(ctx, "end")
		return says("so all done"), nil
	}
	if a.point == "last answer" || a.point == "end" {
		return wants("search", `{"text":"a"}`), nil
	}
	r := wants("search", `{"text":"a"}`, "search", `{"text":"b"}`, "refund", `{"cents":5}`, "slow", `{"text":"c"}`)
	r.Message.Parts = agent.Text("so ")
	return r, nil
}

func (a acts) config() agent.Config {
	tools := noted(a.fx)
	look := agent.NewTool("search", "looks things up", func(ctx context.Context, q query) (string, error) {
		call, _ := agent.CallFrom(ctx)
		a.fx.Did(call.Step)
		a.at(ctx, "tool "+q.Text)
		return "about " + q.Text, nil
	})
	return agent.Config{Model: a, Tools: []agent.Tool{look, tools[1], agent.Child("slow", "", slow)}, Parallel: 1}
}

// answered fails unless each call of an answer has one result behind it, in the order of the calls, though an answer
// may be the last of all without any.
func answered(t testing.TB, crash string, messages []agent.Message) {
	t.Helper()
	for i, m := range messages {
		rest := messages[i+1:]
		for k, c := range m.Calls {
			if k >= len(rest) || rest[k].Role != agent.ToolRole || rest[k].Call != c.ID {
				t.Errorf("%s: call %s has no result: %q", crash, c.ID, talk(messages))
				return
			}
		}
	}
}

// Wherever a worker dies, and at every point of a turn at which somebody stops it: the run ends once, without an error,
// stopped or, if the stop was not heard or came behind the last word, with its answer; each call of a tool has a
// result; what was recorded is not done again; readers see each message once, and one event of a stop; and what was
// recorded is spent.
func TestCrashesOfStops(t *testing.T) {
	purse := admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: 1 << 40}}}
	yes := fftest.Approve("approve 1.3 refund", suspend.Answer{Choice: "approve"}, flowfabric.By("anna"))
	stop := fftest.Stop(flowfabric.By("anna"))
	not := ": the call was not made: the answer was stopped"
	whole := []string{"user: hello",
		`assistant: so  search{"text":"a"} search{"text":"b"} refund{"cents":5} slow{"text":"c"}`}
	short := []string{"user: hello", `assistant:  search{"text":"a"}`, "tool search c1: about a"}
	for point, tc := range map[string]struct {
		answers []fftest.Answer
		want    []string // the conversation without a crash
	}{
		"before":       {nil, []string{"user: hello", "assistant: "}},
		"first answer": {nil, []string{"user: hello", "assistant: so "}},
		"tool a": {nil, slices.Concat(whole, []string{"tool search c1: about a", "failed tool search c2" + not,
			"failed tool refund c3" + not, "failed tool slow c4" + not})},
		"tool b": {nil, slices.Concat(whole, []string{"tool search c1: about a", "tool search c2: about b",
			"failed tool refund c3" + not, "failed tool slow c4" + not})},
		"approval": {[]fftest.Answer{stop.After(time.Minute)}, slices.Concat(whole, []string{"tool search c1: about a",
			"tool search c2: about b", "failed tool refund c3" + not, "failed tool slow c4" + not})},
		"children": {[]fftest.Answer{yes, stop.After(time.Millisecond)}, slices.Concat(whole, []string{
			"tool search c1: about a", "tool search c2: about b", "tool refund c3: paid 5",
			"failed tool slow c4: the call had not ended when the answer was stopped; it was cancelled"})},
		"last answer": {nil, slices.Concat(short, []string{"assistant: so "})},
		"end":         {nil, slices.Concat(short, []string{"assistant: so all done"})},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			stopped := 0
			var child atomic.Bool // has begun
			crashes := fftest.Crashes(t, chat,
				func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
					child.Store(false)
					a := acts{fx, point, stop}
					inner := running(a.config())
					return fftest.Answered(func(ctx context.Context, t *handler.Task, in string) (agent.Result, error) {
						if point == "before" && t.AttemptType() != flowfabric.AttemptResumed {
							fftest.Tell(ctx, stop)
							return agent.Result{}, handler.Delay(time.Hour) // which a stop ends
						}
						return inner(ctx, t, in)
					}, tc.answers...)
				}, "hello", func(r *fftest.Report[agent.Result]) {
					res := r.Result
					if r.Err != nil || res.Stop != agent.StopStopped && res.Stop != agent.StopEnd {
						t.Errorf("%s: %+v, %v", r.Crash, res, r.Err)
						return
					}
					if r.Crash == "" {
						wantTalk(t, res.Messages, tc.want...)
					}
					answered(t, r.Crash, res.Messages)
					if lines := talk(res.Messages); child.Load() && slices.Contains(lines, "failed tool slow c4"+not) {
						t.Errorf("%s: a child has begun, and %q", r.Crash, lines)
					}
					if kept := r.Kept(agent.FrameMessage); len(kept) != len(res.Messages) {
						t.Errorf("%s: readers see %d messages of %q", r.Crash, len(kept), talk(res.Messages))
					}
					events := len(r.Kept(agent.FrameTurn))
					if res.Stop == agent.StopStopped {
						stopped++
						events--
					}
					if events != 0 {
						t.Errorf("%s: %s, and readers see %q", r.Crash, res.Stop, r.Kept(agent.FrameTurn))
					}
					if spent := r.Spent["purse"]["tokens"]; spent < res.Usage.Total() ||
						r.Crash == "" && spent != res.Usage.Total() || spent > 3*res.Usage.Total()+400 {
						t.Errorf("%s: %d tokens spent, %d recorded", r.Crash, spent, res.Usage.Total())
					}
				}, fftest.Gates(purse), fftest.Varying(), fftest.Also(func(*fftest.Effects) []handler.Binding {
					return []handler.Binding{handler.Bind(slow, func(ctx context.Context, t *handler.Task,
						in query) (out string, err error) {
						child.Store(true)
						for range 6 { // longer than a lost lease
							out, err = slowly(ctx, t, in)
						}
						return out, err
					})}
				}))
			if crashes < 6 || stopped < crashes/2 {
				t.Errorf("%d crashes, %d runs were stopped", crashes, stopped)
			}
		})
	}
}

// A message that interrupts is heard and answered once, wherever a worker dies, whether it comes in an answer or while
// people are asked.
func TestCrashesOfInterrupts(t *testing.T) {
	say := fftest.Send("talk", "and now?", flowfabric.By("anna"), flowfabric.IdempotencyKey("once"))
	for point, answers := range map[string][]fftest.Answer{"first answer": nil, "approval": {say.After(time.Minute)}} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			crashes := fftest.Crashes(t, chat,
				func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
					cfg := acts{fx, point, say}.config()
					cfg.Mailbox, cfg.WhileBusy = "talk", agent.Interrupt
					return fftest.Answered(running(cfg), answers...)
				}, "hello", func(r *fftest.Report[agent.Result]) {
					lines := talk(r.Result.Messages)
					heard := 0
					for _, line := range lines {
						heard += strings.Count(line, "user anna: and now?")
					}
					if r.Err != nil || heard != 1 || lines[len(lines)-1] != "assistant: so all done" {
						t.Errorf("%s: %q, %v", r.Crash, lines, r.Err)
					}
					answered(t, r.Crash, r.Result.Messages)
					if kept := r.Kept(agent.FrameMessage); len(kept) != len(lines) {
						t.Errorf("%s: readers see %d messages of %q", r.Crash, len(kept), lines)
					}
				}, fftest.Varying(), fftest.Also(func(*fftest.Effects) []handler.Binding {
					return []handler.Binding{handler.Bind(slow, slowly)}
				}))
			if crashes < 6 {
				t.Errorf("%d crashes", crashes)
			}
		})
	}
}
