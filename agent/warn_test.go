package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// warnings are what a conversation has of limits, each with how many answers came before.
func warnings(messages []agent.Message) (all []string) {
	answers := 0
	for _, m := range messages {
		if m.Role == agent.Assistant {
			answers++
		}
		if strings.HasPrefix(m.From, "limit of ") {
			all = append(all, strings.Repeat("+", answers)+" "+m.From+": "+m.Text())
		}
	}
	return all
}

const orSay = " Finish, or say what is missing."

// The model is told once that a limit is near, before it ends the run. It stays told.
func TestWarnings(t *testing.T) {
	slow := agent.NewTool("search", "", func(context.Context, query) (string, error) {
		time.Sleep(3 * time.Second)
		return "x", nil
	})
	for name, tc := range map[string]struct {
		set  func(*agent.Config)
		want []string
	}{
		"none": {func(*agent.Config) {}, nil},
		"turns": {func(c *agent.Config) { c.MaxTurns = 10 },
			[]string{"++++++++ turns: 2 model calls are left in this run."}},
		"the end": {func(c *agent.Config) { c.MaxTurns = 3 }, []string{"++ turns: 1 model call is left in this run."}},
		"tokens": {func(c *agent.Config) { c.MaxTokens = 50 },
			[]string{"++++ tokens: 10 tokens are left in this run."}},
		"time": {func(c *agent.Config) { c.MaxTime, c.Tools = 14*time.Second, []agent.Tool{slow} },
			[]string{"++++ time: 2s are left in this run."}},
		"all": {func(c *agent.Config) { c.MaxTurns, c.MaxTokens = 5, 50 },
			[]string{"++++ turns: 1 model call is left in this run.", "++++ tokens: 10 tokens are left in this run."}},
		"one call": {func(c *agent.Config) { c.MaxTurns = 1 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := busy(12)
			tc.set(&cfg)
			var want []string
			for _, w := range tc.want {
				before, after, _ := strings.Cut(w, " ")
				want = append(want, before+" limit of "+after+orSay)
			}
			var got agent.Result
			r := fftest.Run(t, chat,
				func(ctx context.Context, task *handler.Task, prompt string) (_ agent.Result, err error) {
					got, err = running(cfg)(ctx, task, prompt)
					return got, err
				}, "hello")
			if w := warnings(got.Messages); !slices.Equal(w, want) {
				t.Errorf("warned %q, want %q", w, want)
			}
			shown := 0
			for _, m := range r.Kept("message") {
				if strings.Contains(m, `"from":"limit of `) {
					shown++
				}
			}
			if shown != len(want) {
				t.Errorf("readers see %d warnings", shown)
			}
		})
	}
}

// Wherever the worker dies, the model is warned at the same place, once.
func TestCrashesWithAWarning(t *testing.T) {
	var mu sync.Mutex
	asked := map[int][]string{}
	fftest.Crashes(t, chat,
		func(*fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			clear(asked)
			mu.Unlock()
			model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("the end")},
				called: func(turn int, req agent.Request) {
					mu.Lock()
					defer mu.Unlock()
					asked[turn] = warnings(req.Messages)
				}}
			return running(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}, MaxTurns: 2})
		}, "hello", func(r *fftest.Report[agent.Result]) {
			mu.Lock()
			defer mu.Unlock()
			want := []string{"+ limit of turns: 1 model call is left in this run." + orSay}
			if r.Err != nil || !slices.Equal(warnings(r.Result.Messages), want) || !slices.Equal(asked[2], want) ||
				len(asked[1]) != 0 {
				t.Errorf("%s: %v, %q, asked with %v", r.Crash, r.Err, warnings(r.Result.Messages), asked)
			}
		})
}
