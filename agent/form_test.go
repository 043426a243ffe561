package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// verdict is what an agent is to answer.
type verdict struct {
	City  string `json:"city"`
	Score int    `json:"score"`
}

var judge = handler.Define[string, verdict]("judge")

// holding is a script whose service takes schemas.
type holding struct{ *script }

func (holding) TakesSchema(*jsonschema.Schema) bool { return true }

func judging(cfg agent.Config, seen *agent.Result) func(context.Context, *handler.Task, string) (verdict, error) {
	return func(ctx context.Context, task *handler.Task, prompt string) (verdict, error) {
		cfg := cfg
		cfg.Prompt = prompt
		v, r, err := agent.RunAs[verdict](ctx, task, cfg)
		if seen != nil {
			*seen = r
		}
		return v, err
	}
}

// The model gets the schema with each request, and one answer that does not fit goes back to it.
func TestRunAs(t *testing.T) {
	var asked []agent.Request
	model := holding{&script{
		answers: []agent.Response{wants("search", `{"text":"Rome"}`), says(`{"city":"Rome"}`),
			says("```json\n{\"city\":\"Rome\",\"score\":7.0}\n```")},
		called: func(_ int, req agent.Request) { asked = append(asked, req) },
	}}
	var seen agent.Result
	r := fftest.Run(t, judge, judging(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}, &seen), "hello")
	r.WantResult(verdict{"Rome", 7})
	if seen.Turns != 3 || seen.Text != `{"city":"Rome","score":7.0}` {
		t.Errorf("%+v", seen)
	}
	wantTalk(t, seen.Messages[3:5], `assistant: {"city":"Rome"}`,
		"user form: The answer is not accepted: the contents of "+
			`the answer do not fit the schema: validating root: required: missing properties: ["score"]`+
			"\nAnswer again, with nothing but JSON that fits the schema.")
	for i, req := range asked {
		if req.Schema == nil || req.Schema.Properties["score"] == nil || len(req.Tools) != 1 {
			t.Errorf("request %d has the schema %v and %d tools", i+1, req.Schema, len(req.Tools))
		}
	}
}

// A model that takes no schema answers through a tool. It is told so if it does not, and if what it hands in is wrong.
func TestRunAsWithATool(t *testing.T) {
	model := &script{answers: []agent.Response{says("Rome is a 7"), wants("final_answer", `{"city":7}`),
		wants("search", `{"text":"x"}`, "final_answer", `{"city":"Rome","score":7}`)}}
	var seen agent.Result
	r := fftest.Run(t, judge, judging(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}, &seen), "hello")
	r.WantResult(verdict{"Rome", 7})
	lines := talk(seen.Messages)
	for i, want := range map[int]string{2: "Call the tool final_answer with the answer.", 4: "failed tool final_answer",
		6: "tool search c1: about x", 7: "tool final_answer c2: accepted"} {
		if len(lines) != 8 || !strings.Contains(lines[i], want) {
			t.Fatalf("%q, want %q in line %d", lines, want, i)
		}
	}
}

// What the user says when an answer has come is heard before the run ends, with and without a tool.
func TestRunAsHears(t *testing.T) {
	for name, answers := range map[string][]agent.Response{
		"schema": {says(`{"city":"Rome","score":7}`), says(`{"city":"Oslo","score":8}`)},
		"tool": {wants("final_answer", `{"city":"Rome","score":7}`),
			wants("final_answer", `{"city":"Oslo","score":8}`)},
	} {
		t.Run(name, func(t *testing.T) {
			said := false
			base := &script{answers: answers}
			var model agent.Model = base
			if name == "schema" {
				model = holding{base}
			}
			fn := func(ctx context.Context, task *handler.Task, _ string) (verdict, error) {
				base.called = func(int, agent.Request) {
					if !said {
						said = true
						fftest.Tell(ctx, fftest.Send("user", "no, Oslo"))
					}
				}
				v, _, err := agent.RunAs[verdict](ctx, task, agent.Config{Model: model, Mailbox: "user", Prompt: "hi"})
				return v, err
			}
			fftest.Run(t, judge, fn, "hello").WantResult(verdict{"Oslo", 8})
		})
	}
}

// After two repairs the run fails for good and shows the last answer; after a refusal at once.
func TestRunAsGivesUp(t *testing.T) {
	refuses := says("I cannot")
	refuses.Stop = agent.StopRefusal
	bad := wants("final_answer", `{"city":4}`)
	for name, tc := range map[string]struct {
		answers []agent.Response
		turns   int
		want    string
	}{
		"answers": {[]agent.Response{says("one"), says("two"), says("three")}, 3, "the last answer: three"},
		"calls":   {[]agent.Response{bad, bad, bad}, 3, `the last answer: {"city":4}`},
		"both":    {[]agent.Response{says("one"), bad, says("three")}, 3, "the last answer: three"},
		"refusal": {[]agent.Response{refuses}, 1, "the model refuses; the last answer: I cannot"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen agent.Result
			var failed error
			inner := judging(agent.Config{Model: &script{answers: tc.answers}}, &seen)
			r := fftest.Run(t, judge, func(ctx context.Context, task *handler.Task, in string) (verdict, error) {
				v, err := inner(ctx, task, in)
				failed = err
				return v, err
			}, "hello")
			r.Want(fftest.Want{Failure: "agent_answer"})
			if !errors.Is(failed, agent.ErrAnswer) || !strings.Contains(failed.Error(), tc.want) ||
				seen.Turns != tc.turns {
				t.Errorf("after %d turns: %v", seen.Turns, failed)
			}
		})
	}
}

func TestRunAsRefusesConfigurations(t *testing.T) {
	ended := agent.NewTool("final_answer", "", func(context.Context, query) (string, error) { return "", nil })
	for _, cfg := range []agent.Config{{Tools: []agent.Tool{ended}}, {Mailbox: "user", Conversation: true},
		{Name: "?"}} {
		cfg.Model = &script{}
		r := fftest.Run(t, judge, judging(cfg, nil), "hello")
		if r.Err == nil || !strings.Contains(r.Err.Error(), flowfabric.ErrInvalidInput.Error()) {
			t.Errorf("%+v: %v", cfg, r.Err)
		}
	}
	r := fftest.Run(t, handler.Define[string, int]("number"), func(ctx context.Context, task *handler.Task,
		in string) (int, error) {
		n, _, err := agent.RunAs[int](ctx, task, agent.Config{Model: &script{}, Prompt: in})
		return n, err
	}, "hello")
	if r.Err == nil || !strings.Contains(r.Err.Error(), "want a struct or a map") {
		t.Error(r.Err)
	}
}

// Wherever the worker dies around answers that do not fit, the same answer comes of it, and no recorded call is made
// again.
func TestRunAsSurvivesCrashes(t *testing.T) {
	for name, takes := range map[string]bool{"schema": true, "tool": false} {
		t.Run(name, func(t *testing.T) {
			base := &script{answers: []agent.Response{says("hm"), wants("final_answer", `{}`),
				wants("final_answer", `{"city":"Rome","score":7}`)}}
			if takes {
				base.answers = []agent.Response{says("hm"), says(`{}`), says(`{"city":"Rome","score":7}`)}
			}
			crashes := fftest.Crashes(t, judge, func(fx *fftest.Effects) func(context.Context, *handler.Task,
				string) (verdict, error) {
				counted := *base
				counted.called = func(turn int, _ agent.Request) { fx.Did(fmt.Sprint("model ", turn)) }
				var model agent.Model = &counted
				if takes {
					model = holding{&counted}
				}
				return judging(agent.Config{Model: model}, nil)
			}, "hello", func(r *fftest.Report[verdict]) {
				if r.Result != (verdict{"Rome", 7}) || r.Err != nil {
					t.Errorf("%s: %+v, %v", r.Crash, r.Result, r.Err)
				}
			})
			if crashes < 10 {
				t.Errorf("%d crashes", crashes)
			}
		})
	}
}

// Requests of a run share their beginnings, also over a wait: each is marked where the one before ended.
func TestCacheMarks(t *testing.T) {
	var asked []agent.Request
	model := &script{
		answers: []agent.Response{wants("search", `{"text":"a"}`, "search", `{"text":"b"}`),
			wants("refund", `{"cents":5}`), says("done")},
		called: func(_ int, req agent.Request) { asked = append(asked, req) },
	}
	refund := agent.NewTool("refund", "", func(context.Context, amount) (string, error) { return "paid", nil },
		agent.Needs(func(amount) agent.Decision { return agent.Decision{Ask: true} }))
	cfg := agent.Config{Model: model, Tools: []agent.Tool{search(nil), refund}, MaxTurns: 3}
	r := fftest.Run(t, chat, fftest.Answered(running(cfg),
		fftest.Approve("approve 2.1 refund", suspend.Answer{Choice: "approve"})), "hello")
	want := "[[0 1] [0 1 4] [0 4]]" // nothing can follow the last
	if got := fmt.Sprint([][]int{asked[0].Cache.Marks, asked[1].Cache.Marks, asked[2].Cache.Marks}); got != want {
		t.Errorf("the marks are %v, want %v", got, want)
	}
	for _, req := range asked {
		if req.Cache.Key != asked[0].Cache.Key || len(req.Cache.Key) < 30 || len(req.Cache.Key) > 64 {
			t.Errorf("the key is %q", req.Cache.Key)
		}
	}
	asked = nil
	cfg = agent.Config{Model: &script{answers: []agent.Response{says("x")}, called: model.called}}
	run(t, cfg)
	if got := fmt.Sprint(asked[0].Cache.Marks); got != "[0]" || r.Err != nil { // there is nothing to go on for
		t.Errorf("the marks of a single call are %v", got)
	}
}
