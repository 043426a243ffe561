package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// busy is an agent that would search for ever.
func busy(turns int) agent.Config {
	model := &script{}
	for range turns {
		model.answers = append(model.answers, wants("search", `{"text":"x"}`))
	}
	return agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}
}

// A limit ends the run before the next model call or tool, with a typed error, the result so far, and a failure for
// good of its own category.
func TestLimits(t *testing.T) {
	slow := func(cfg *agent.Config) {
		model := cfg.Model
		cfg.Model = agent.ModelFunc(func(ctx context.Context, req agent.Request,
			delta func(agent.Delta) error) (agent.Response, error) {
			time.Sleep(400 * time.Millisecond)
			return model.Generate(ctx, req, delta)
		})
		cfg.Tools = []agent.Tool{agent.NewTool("search", "",
			func(context.Context, query) (string, error) { time.Sleep(200 * time.Millisecond); return "x", nil })}
	}
	for what, tc := range map[string]struct {
		set          func(*agent.Config)
		limit        int64
		turns, tools int
	}{
		"turns":          {func(c *agent.Config) { c.MaxTurns = 3 }, 3, 3, 2},
		"turns, default": {func(*agent.Config) {}, 50, 50, 49},
		"tokens":         {func(c *agent.Config) { c.MaxTokens = 25 }, 25, 3, 2},
		"tokens, even":   {func(c *agent.Config) { c.MaxTokens = 20 }, 20, 2, 1},
		// 400 + 200 + 400
		"time": {func(c *agent.Config) { slow(c); c.MaxTime = time.Second }, int64(time.Second), 2, 1},
		"time, of tools": {func(c *agent.Config) { slow(c); c.MaxTime = 1100 * time.Millisecond },
			int64(1100 * time.Millisecond), 2, 2},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := busy(60)
			tc.set(&cfg)
			var got agent.Result
			var limit *agent.LimitError
			r := fftest.Run(t, chat,
				func(ctx context.Context, task *handler.Task, prompt string) (result agent.Result, err error) {
					got, err = running(cfg)(ctx, task, prompt)
					if !errors.As(err, &limit) {
						t.Errorf("%v", err)
					}
					return got, err
				}, "hello")
			r.Want(fftest.Want{Failure: "agent_limit"})
			if len(r.Attempts) != 1 || limit == nil || limit.Limit != tc.limit || got.Turns != tc.turns ||
				len(r.Steps) != tc.turns+tc.tools || got.Usage.Total() != int64(10*tc.turns) {
				t.Errorf("%d attempts, %+v, %d turns, %d steps, %+v", len(r.Attempts), limit, got.Turns, len(r.Steps),
					got.Usage)
			}
		})
	}
}

// The answer that reaches a limit counts if it is the last one.
func TestTheLastAnswerMayReachALimit(t *testing.T) {
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{says("end")}}, MaxTurns: 1, MaxTokens: 10})
	if r.Err != nil || r.Result.Text != "end" {
		t.Errorf("%v, %+v", r.Err, r.Result)
	}
}

// Waits do not count as time of the agent.
func TestWaitsAreNotTime(t *testing.T) {
	cfg := agent.Config{Model: &script{answers: []agent.Response{wants("refund", `{"cents":1}`), says("end")}},
		Tools: []agent.Tool{refund(agent.Decision{Ask: true, Within: time.Hour})}, MaxTime: time.Minute}
	if r := fftest.Run(t, chat, running(cfg), "hello"); r.Err != nil || r.Elapsed < time.Hour {
		t.Errorf("%v after %v", r.Err, r.Elapsed)
	}
}

// What an answer costs is spent in the step that records it. A budget that refuses it ends the run; nothing is
// recorded.
func TestSpending(t *testing.T) {
	two := []agent.Response{wants("search", `{"text":"x"}`), says("end")}
	cents := func(u agent.Usage) map[string]int64 { return map[string]int64{"cents": u.Output, "none": 0} }
	for name, tc := range map[string]struct {
		spend     func(agent.Usage) map[string]int64
		dimension string
		spent     int64
		hard      int64
	}{
		"tokens":     {nil, "tokens", 20, 100},
		"cents":      {cents, "cents", 6, 100},
		"over limit": {nil, "tokens", 10, 15},
	} {
		t.Run(name, func(t *testing.T) {
			budget := admission.Gate{Name: "b", OnHard: admission.HardFail, StrictDimensions: true,
				Limits: map[string]admission.Limit{tc.dimension: {Hard: tc.hard}}}
			r := fftest.Run(t, chat, running(agent.Config{Model: &script{answers: two},
				Tools: []agent.Tool{search(nil)}, Spend: tc.spend}), "hello", fftest.Gates(budget))
			if r.Spent["b"][tc.dimension] != tc.spent {
				t.Errorf("%v", r.Spent)
			}
			if tc.hard < 20 {
				r.Want(fftest.Want{Failure: "budget_exceeded", Steps: []string{"model 1", "tool 1.1 search"}})
			} else if r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
}

// An answer that a gate refuses is not asked for again, whether the gate or the handler decides.
func TestARefusedAnswerIsNotPaidAgain(t *testing.T) {
	for _, action := range []admission.HardAction{admission.HardReject, admission.HardFail} {
		budget := admission.Gate{Name: "b", OnHard: action, Limits: map[string]admission.Limit{"tokens": {Hard: 15}}}
		calls := 0
		model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("end")},
			called: func(int, agent.Request) { calls++ }}
		r := fftest.Run(t, chat, running(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}), "hello",
			fftest.Gates(budget))
		r.Want(fftest.Want{Failure: "budget_exceeded", Steps: []string{"model 1", "tool 1.1 search"}})
		if calls != 2 || len(r.Attempts) != 1 {
			t.Errorf("%s: %v, %d calls, %d attempts", action, r.Err, calls, len(r.Attempts))
		}
	}
}

// An agent that a budget blocks goes on in the next period, and asks again what could not be paid.
func TestBlockedByABudget(t *testing.T) {
	budget := admission.Gate{Name: "b", OnHard: admission.HardBlock, Reset: flowfabric.Millis(time.Hour),
		Limits: map[string]admission.Limit{"tokens": {Hard: 15}}}
	calls := 0
	model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("end")},
		called: func(int, agent.Request) { calls++ }}
	r := fftest.Run(t, chat, running(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}), "hello",
		fftest.Gates(budget))
	if r.Err != nil || calls != 3 || r.Elapsed < 59*time.Minute || len(r.Attempts) != 1 {
		t.Errorf("%v, %d calls, %v, %d attempts", r.Err, calls, r.Elapsed, len(r.Attempts))
	}
}
