package agent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// drip is a model that says a word a second, sixty of them, and stops with its context. ended gets why.
func drip(ended chan error) agent.Model {
	return agent.ModelFunc(func(ctx context.Context, _ agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		defer func() {
			if ctx.Err() != nil {
				ended <- context.Cause(ctx)
			}
		}()
		for range 60 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return says("half of it"), context.Cause(ctx)
			}
			if err := delta(agent.Delta{Text: "word "}); err != nil {
				return agent.Response{}, err
			}
		}
		return says(strings.Repeat("word ", 60)), nil
	})
}

// A drain, a lost lease and a cancellation stop the model in the middle of its answer. What it had said is not
// recorded; after a drain and a lost lease it is asked again.
func TestStoppedInMidAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		stop  func(*fftest.Env, *fftest.Execution[agent.Result])
		cause error
		ends  bool
	}{
		"drained": {func(w *fftest.Env, _ *fftest.Execution[agent.Result]) { w.Drain() }, flowfabric.ErrDraining,
			true},
		"lost": {func(w *fftest.Env, _ *fftest.Execution[agent.Result]) { w.LoseLease() }, flowfabric.ErrLeaseLost,
			true},
		"cancelled": {func(_ *fftest.Env, x *fftest.Execution[agent.Result]) { x.Cancel() }, flowfabric.ErrCancelled,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				w := fftest.New(t, runtime.Config{DrainTimeout: 5 * time.Second},
					handler.Bind(chat, running(agent.Config{Model: drip(ended)})))
				x := fftest.Submit(w, chat, "hello")
				w.Sleep(10 * time.Second)
				tc.stop(w, x)
				r := x.Wait()
				if err := <-ended; !errors.Is(err, tc.cause) {
					t.Errorf("the model ended with %v, want %v", err, tc.cause)
				}
				if tc.ends != (r.Err == nil) || tc.ends != (len(r.Steps) == 1) || len(r.Kept("token")) > 60 {
					t.Errorf("%v, %d steps, %d tokens", r.Err, len(r.Steps), len(r.Kept("token")))
				}
				if tc.ends && r.Result.Text != strings.Repeat("word ", 60) {
					t.Error(r.Result.Text)
				}
			})
		})
	}
}

// A tool that stops with its context is run again by who goes on with the execution.
func TestToolsStoppedByADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		tool := agent.NewTool("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
			if runs++; runs > 1 {
				return "done", nil
			}
			<-ctx.Done()
			return "", errors.New("stopped, in words of its own")
		})
		w := fftest.New(t, runtime.Config{DrainTimeout: 5 * time.Second}, handler.Bind(chat, running(agent.Config{
			Model: &script{answers: []agent.Response{wants("slow", "{}"), says("end")}}, Tools: []agent.Tool{tool}})))
		x := fftest.Submit(w, chat, "hello")
		w.Sleep(time.Second)
		w.Drain()
		r := x.Wait()
		if m := result(t, r); m.Failed || m.Text() != "done" || runs != 2 || len(r.Attempts) != 1 {
			t.Errorf("%+v, %d runs, %d attempts", m, runs, len(r.Attempts))
		}
	})
}

// A handler may end the context of its agent. What a tool returns then is not recorded.
func TestToolsStoppedByTheirHandler(t *testing.T) {
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		inner, stop := context.WithCancel(ctx)
		tool := agent.NewTool("x", "",
			func(context.Context, struct{}) (string, error) { stop(); return "", errors.New("in words of its own") })
		got, err := agent.Run(inner, task,
			agent.Config{Model: &script{answers: []agent.Response{wants("x", "{}"), says("end")}},
				Tools: []agent.Tool{tool}, Prompt: prompt})
		if err == nil || len(got.Messages) != 2 {
			t.Errorf("%v, %+v", err, got)
		}
		return got, nil
	}, "hello")
	r.Want(fftest.Want{Steps: []string{"model 1"}})
}

// An error of the model is for the retry policy; the next attempt asks again, and only what was not recorded.
func TestModelErrors(t *testing.T) {
	retried := handler.Define[string, agent.Result]("retried", handler.Retry(3, time.Second, time.Minute))
	calls := 0
	inner := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("end")}}
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		if calls++; calls == 2 {
			return says("not to be kept"), agent.StatusError(429, http.Header{"Retry-After": {"20"}},
				errors.New("slow down"))
		}
		return inner.Generate(ctx, req, delta)
	})
	r := fftest.Run(t, retried, running(agent.Config{Model: model, Tools: []agent.Tool{search(nil)}}), "hello")
	if r.Err != nil || calls != 3 || len(r.Attempts) != 2 || r.Attempts[0].Category != "model_rate_limited" ||
		r.Elapsed < 20*time.Second {
		t.Errorf("%v, %d calls, %+v, %v", r.Err, calls, r.Attempts, r.Elapsed)
	}
}

// An answer that is none is an error of the protocol; one that is too large, or does not encode, is one for good.
func TestBadAnswers(t *testing.T) {
	many := make([]string, 130)
	for i := range many {
		many[i] = "search"
	}
	twice := wants("search", "{}", "search", "{}")
	twice.Message.Calls[1].ID = "c1"
	long := wants("search", "{}")
	long.Message.Calls[0].ID = strings.Repeat("x", 257)
	private := says("x")
	private.Message.Private = []byte("{")
	for want, tc := range map[string]struct {
		answer   agent.Response
		category string
	}{
		"wants 65 tools at once, want at most 64":    {wants(many...), "model_protocol"},
		`id "c1" of tool call 2 has 2 bytes or come`: {twice, "model_protocol"},
		"of tool call 1 has 257 bytes":               {long, "model_protocol"},
		"the answer does not encode":                 {private, "handler_error"},
		"bytes, want at most 262144":                 {says(strings.Repeat("x", 260<<10)), "handler_error"},
	} {
		r := run(t, agent.Config{Model: &script{answers: []agent.Response{tc.answer}},
			Tools: []agent.Tool{search(nil)}})
		r.Want(fftest.Want{Failure: flowfabric.Category(tc.category)})
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || len(r.Steps) != 0 {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
}

// What an adapter leaves out is filled in: ids of calls, the reason of a stop, the role. A refusal calls no tools.
func TestAnswersAreCompleted(t *testing.T) {
	bare := wants("search", `{"text":"x"}`, "search", `{"text":"y"}`)
	bare.Stop, bare.Message.Calls[0].ID, bare.Message.Calls[1].ID = "", "", ""
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{bare,
		{Message: agent.Message{Parts: agent.Text("e\xffd")}}}},
		Tools: []agent.Tool{search(nil)}})
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"x"} search{"text":"y"}`,
		"tool search call-1.1: about x", "tool search call-1.2: about y", "assistant: e\ufffdd")
	if r.Result.Stop != agent.StopEnd {
		t.Errorf("stopped with %q", r.Result.Stop)
	}
	refused := wants("search", `{"text":"x"}`)
	refused.Stop = agent.StopRefusal
	r = run(t, agent.Config{Model: &script{answers: []agent.Response{refused}},
		Tools: []agent.Tool{search(func(string) { t.Error("called") })}})
	if r.Err != nil || r.Result.Stop != agent.StopRefusal || len(r.Result.Messages) != 2 {
		t.Errorf("%v, %+v", r.Err, r.Result)
	}
	short := says("to be contin")
	short.Stop = agent.StopLength
	r = run(t, agent.Config{Model: &script{answers: []agent.Response{short}}})
	if r.Err != nil || r.Result.Stop != agent.StopLength {
		t.Errorf("%v, %+v", r.Err, r.Result)
	}
}
