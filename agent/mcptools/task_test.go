package mcptools_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// A call that becomes a task suspends the execution between polls, in both kinds of tasks.
func TestTasks(t *testing.T) {
	for dialect, built := range map[string]string{"new": "built", "old": "built as of old"} {
		t.Run(dialect, func(t *testing.T) {
			w := &world{dialect: dialect, hour: time.Hour}
			model := &script{answers: []agent.Response{wants("a_build", `{"text":"x"}`, "a_search", `{"text":"y"}`,
				"a_asking", `{"text":"z"}`), says("done")}}
			r := talkBeside(t, model, w, nil)
			asked := "the task of the tool was cancelled: it asks for input from a user, which cannot be given here: " +
				"waiting for a name"
			wantTold(t, r.Result.Messages, "a_build: "+built, `a_search: found {"text":"y"}`, "failed a_asking: "+asked)
			var waits []string
			for _, w := range r.Waits {
				waits = append(waits, w.Name)
			}
			if want := []string{"tool 1.1 a_build wait 1", "tool 1.1 a_build wait 2", "tool 1.1 a_build wait 3",
				"tool 1.3 a_asking wait 1"}; !slices.Equal(waits, want) {
				t.Errorf("%q", waits)
			}
			if len(w.ended) != 1 || !strings.HasPrefix(w.ended[0], "asking") || r.Err != nil {
				t.Error(w.ended, r.Err)
			}
		})
	}
}

// A task that takes too long is cancelled. Pauses grow, so that the steps of an execution last.
func TestTaskLimit(t *testing.T) {
	w := &world{dialect: "new", hour: time.Minute}
	model := &script{answers: []agent.Response{wants("a_stuck", `{"text":"x"}`), says("done")}}
	r := talkBeside(t, model, w, func(s *mcptools.Server) { s.TaskLimit = 10 * time.Hour })
	wantTold(t, r.Result.Messages, "failed a_stuck: the tool was not done after 10h0m0s, and was cancelled: digging")
	if len(w.ended) != 1 || len(r.Waits) > 40 || r.Elapsed < 10*time.Hour || r.Elapsed > 11*time.Hour {
		t.Error(w.ended, len(r.Waits), r.Elapsed)
	}
}

// A stop ends the wait for a task, and the task.
func TestStoppedTask(t *testing.T) {
	w := &world{dialect: "new", hour: time.Minute}
	model := &script{answers: []agent.Response{wants("a_stuck", `{"text":"x"}`)}}
	r := fftest.Run(t, chat, fftest.Answered(besides(model, nil, w), fftest.Stop().After(time.Hour)), "hello")
	wantTold(t, r.Result.Messages,
		"failed a_stuck: the tool was not done when its wait was ended, and was cancelled: digging")
	if len(w.ended) != 1 || r.Err != nil || r.Result.Stop != agent.StopStopped {
		t.Error(w.ended, r.Err, r.Result.Stop)
	}
}

// Without tasks the same tools answer at once.
func TestNoTasks(t *testing.T) {
	for _, dialect := range []string{"new", "old"} {
		w := &world{dialect: dialect, hour: time.Hour}
		model := &script{answers: []agent.Response{wants("a_search", `{"text":"x"}`), says("done")}}
		r := talkBeside(t, model, w, func(s *mcptools.Server) { s.NoTasks = true })
		wantTold(t, r.Result.Messages, `a_search: found {"text":"x"}`)
		if len(r.Steps) != 4 { // the list, two answers and the call
			t.Errorf("%s: %d steps", dialect, len(r.Steps))
		}
	}
}

// A server that forgets a task is a failure of the tool.
func TestForgottenTask(t *testing.T) {
	w := &world{dialect: "new", hour: time.Hour}
	model := &script{answers: []agent.Response{wants("a_build", `{"text":"x"}`), says("done")}}
	fn := besides(model, nil, w)
	runs := 0
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		if runs++; runs == 2 {
			w.mu.Lock()
			w.tasks = nil
			w.mu.Unlock()
		}
		return fn(ctx, task, prompt)
	}, "hello")
	wantTold(t, r.Result.Messages, "failed a_build: the server a refuses the call: task not found")
}

// A server that is away when a task is polled is asked again later; for ten polls, or for good.
func TestAwayAtPolls(t *testing.T) {
	for away, want := range map[int]string{10: "a_build: built",
		11: "failed a_build: the server a cannot be reached: the cable is out"} {
		w := &world{dialect: "new", hour: time.Hour}
		model := &script{answers: []agent.Response{wants("a_build", `{"text":"x"}`), says("done")}}
		fn := besides(model, nil, w)
		runs := 0
		r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
			if runs++; runs == 2 {
				w.mu.Lock()
				w.away = away
				w.mu.Unlock()
			}
			return fn(ctx, task, prompt)
		}, "hello")
		wantTold(t, r.Result.Messages, want)
		if r.Err != nil || len(r.Waits) != 11 {
			t.Errorf("%v, %d waits", r.Err, len(r.Waits))
		}
	}
}

// Wherever the worker dies around a call, a task and its polls, what is recorded is not done again, and a later run has
// the tools that the first one recorded.
func TestCrashes(t *testing.T) {
	var mu sync.Mutex
	var keys, again []string
	crashes := fftest.Crashes(t, chat,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			plain := &world{did: fx.Did}
			tasks := &world{dialect: "new", hour: time.Hour, did: fx.Did}
			model := &script{
				answers: []agent.Response{wants("a_search", `{"text":"x"}`, "b_build", `{"text":"y"}`), says("done")},
				called: func(turn int, req agent.Request) {
					fx.Did(fmt.Sprint("model ", turn))
					mu.Lock()
					defer mu.Unlock()
					keys = append(keys, strings.Join(names(req.Tools), " "))
				},
			}
			fn := besides(model, func(s *mcptools.Server) { s.Include = []string{"search", "build"} }, plain, tasks)
			return func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
				r, err := fn(ctx, task, prompt)
				plain.mu.Lock()
				defer plain.mu.Unlock()
				if len(plain.keys) > 1 {
					again = append(again, plain.keys...)
				}
				// From now on there are others: the run keeps what it has recorded, and what is gone cannot be called.
				return r, err
			}
		}, "hello", func(r *fftest.Report[agent.Result]) {
			wantTold(t, r.Result.Messages, `a_search: found {"text":"x"}`, "b_build: built")
			lists := 0
			for _, s := range r.Steps {
				if strings.HasPrefix(s.Name, "mcp tools ") {
					lists++
				}
			}
			if lists != 2 || r.Err != nil {
				t.Errorf("%s: %d lists, %v", r.Crash, lists, r.Err)
			}
		})
	if crashes < 40 {
		t.Errorf("%d crashes", crashes)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 1 || keys[0] != "a_build a_search b_build b_search" {
		t.Errorf("the model saw %q", keys)
	}
	// A call that is made again has the key that it had.
	slices.Sort(again)
	if len(again) == 0 || len(slices.Compact(again)) != 1 {
		t.Errorf("keys %q", again)
	}
}

// An execution that is cancelled while it asks for its task cancels the task.
func TestCancelled(t *testing.T) {
	w := &world{dialect: "new", hour: time.Second}
	model := &script{answers: []agent.Response{wants("a_stuck", `{"text":"x"}`), says("done")}}
	fn := besides(model, nil, w)
	runs := 0
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		if runs++; runs < 3 {
			return fn(ctx, task, prompt)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		w.mu.Lock()
		w.polled = func() { cancel(flowfabric.ErrCancelled) }
		w.mu.Unlock()
		_, err := fn(ctx, task, prompt)
		if err == nil {
			t.Error("it went on")
		}
		return agent.Result{}, handler.Cancel("enough")
	}, "hello")
	if r.State != flowfabric.Cancelled || len(w.ended) != 1 {
		t.Error(r.State, r.Err, w.ended)
	}
}
