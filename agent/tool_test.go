package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// one runs an agent that calls a tool once and ends.
func one(t *testing.T, tool agent.Tool, name, arguments string) *fftest.Report[agent.Result] {
	t.Helper()
	return run(t, agent.Config{Model: &script{answers: []agent.Response{wants(name, arguments), says("end")}},
		Tools: []agent.Tool{tool}})
}

// result is what the model was told about its first call.
func result(t *testing.T, r *fftest.Report[agent.Result]) agent.Message {
	t.Helper()
	if r.Err != nil || len(r.Result.Messages) < 3 {
		t.Fatalf("%v, %+v", r.Err, r.Result)
	}
	return r.Result.Messages[2]
}

// Arguments that are no JSON, or that the schema refuses, and tools that are not there never reach a function: the
// model is told.
func TestArgumentsAreChecked(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"text":`:                 "the arguments are not JSON",
		"{\"text\":\"\xff\x00":     "the arguments are not JSON",
		`{"text":1}`:               "the arguments do not fit the schema",
		`{}`:                       "the arguments do not fit the schema",
		``:                         "the arguments do not fit the schema",
		`null`:                     "the arguments do not fit the schema",
		`[]`:                       "the arguments do not fit the schema",
		`"text"`:                   "the arguments do not fit the schema",
		`{"text":"x","more":true}`: "the arguments do not fit the schema",
	} {
		r := one(t, search(func(string) { t.Errorf("%s: the function was called", arguments) }), "search", arguments)
		if m := result(t, r); !m.Failed || !strings.Contains(m.Text(), want) || m.Call != "c1" || m.Tool != "search" {
			t.Errorf("%s: %+v", arguments, m)
		}
		if got := string(r.Result.Messages[1].Calls[0].Arguments); arguments != "" &&
			got != strings.ToValidUTF8(arguments, "\ufffd") {
			t.Errorf("the transcript has arguments %q, the model wrote %q", got, arguments)
		}
	}
	small := agent.NewTool("small", "",
		func(context.Context, struct{ N int8 }) (string, error) { t.Error("called"); return "", nil })
	if m := result(t, one(t, small, "small", `{"N":1000}`)); !m.Failed {
		t.Errorf("%+v", m)
	}
	count := agent.NewTool("count", "", func(_ context.Context, in struct{ N int }) (int, error) { return in.N, nil })
	for arguments, want := range map[string]string{`{"N":3.0}`: "3", `{"N":1e3}`: "1000"} { // integers of the schema
		if m := result(t, one(t, count, "count", arguments)); m.Failed || m.Text() != want {
			t.Errorf("%s: %+v", arguments, m)
		}
	}
	for name, step := range map[string]string{"Search": "Search", "": "", "a b\n\x00é": "a_b____",
		strings.Repeat("n", 300): strings.Repeat("n", 64)} {
		r := one(t, search(nil), name, `{}`)
		if m := result(t, r); !m.Failed || !strings.Contains(m.Text(), "there is no tool") || m.Tool != name {
			t.Errorf("%q: %+v", name, m)
		}
		r.Want(fftest.Want{Steps: []string{"model 1", "tool 1.1 " + step, "model 2"}})
	}
}

// A string is the result as it is, everything else as JSON, and what does not encode is a failure.
func TestResults(t *testing.T) {
	type pair struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	none := func(out any) agent.Tool {
		return agent.NewTool("x", "", func(context.Context, struct{}) (any, error) { return out, nil })
	}
	for want, tool := range map[string]agent.Tool{
		"plain <b>\ufffd": agent.NewTool("x", "", func(context.Context, struct{}) (string, error) {
			return "plain <b>\xff", nil
		}),
		"as any": none("as any"),
		`{"a":1,"b":"<2>"}`: agent.NewTool("x", "", func(context.Context, map[string]any) (pair, error) {
			return pair{1, "<2>"}, nil
		}),
		`["a","b"]`:            none([]string{"a", "b"}),
		`null`:                 none(nil),
		`{}`:                   none(struct{}{}),
		"the result of type c": none(make(chan int)),
	} {
		m := result(t, one(t, tool, "x", " "))
		if !strings.HasPrefix(m.Text(), want) || m.Failed != strings.HasPrefix(want, "the result") {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

// A result above the limit goes to the model as an error that names the limit; one just below is kept whole.
func TestLongResults(t *testing.T) {
	sized := func(n int) agent.Tool {
		return agent.NewTool("x", "", func(context.Context, struct{}) (string, error) {
			return strings.Repeat("<", n), nil
		})
	}
	const limit = 240 << 10
	if m := result(t, one(t, sized(limit/6), "x", "{}")); m.Failed || len(m.Text()) != limit/6 {
		t.Errorf("%v, %d bytes", m.Failed, len(m.Text()))
	}
	if m := result(t, one(t, sized(limit/6+1), "x", "{}")); !m.Failed ||
		m.Text() != "the result has 245766 bytes as JSON, more than 245760; ask for less" {
		t.Errorf("%v, %.100s", m.Failed, m.Text())
	}
	broken := agent.NewTool("x", "", func(context.Context, struct{}) (string, error) {
		return "", errors.New(strings.Repeat("e", 1<<20))
	})
	if m := result(t, one(t, broken, "x", "{}")); !m.Failed || len(m.Text()) > 16<<10 ||
		!strings.HasSuffix(m.Text(), "… (cut: 1048576 bytes)") {
		t.Errorf("%v, %d bytes", m.Failed, len(m.Text()))
	}
}

// Errors that say what follows end the run, unrecorded; the attempt is what they say.
func TestErrorsThatEndTheRun(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		err      error
		opts     []agent.ToolOption
		category string // of the failure; "" for a run that goes on
	}{
		"plain":       {err: boom},
		"wrapped":     {err: fmt.Errorf("x: %w", context.Canceled)},
		"ends":        {err: boom, opts: []agent.ToolOption{agent.EndsRun()}, category: "handler_error"},
		"permanent":   {err: handler.Permanent(boom), category: "handler_error"},
		"retry after": {err: handler.RetryAfter(time.Second, boom), category: "handler_error"},
		"category":    {err: handler.Category("mine", boom), category: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := agent.NewTool("x", "", func(context.Context, struct{}) (string, error) { return "", tc.err },
				tc.opts...)
			r := one(t, tool, "x", "{}")
			if tc.category == "" {
				if m := result(t, r); !m.Failed || m.Text() != tc.err.Error() {
					t.Errorf("%+v", m)
				}
				return
			}
			r.Want(fftest.Want{Failure: flowfabric.Category(tc.category), Steps: []string{"model 1"}})
		})
	}
	r := one(t, agent.NewTool("x", "", func(context.Context, struct{}) (string, error) {
		return "", handler.Cancel("enough")
	}), "x", "{}")
	if r.State != "cancelled" {
		t.Error(r.State)
	}
	delayed := false
	r = one(t, agent.NewTool("x", "", func(context.Context, struct{}) (string, error) {
		if !delayed {
			delayed = true
			return "", handler.Delay(time.Hour)
		}
		return "later", nil
	}), "x", "{}")
	if m := result(t, r); m.Text() != "later" || r.Elapsed < time.Hour || len(r.Attempts) != 1 {
		t.Errorf("%+v after %v", m, r.Elapsed)
	}
}

// A panic of a tool, and the end of its goroutine, are those of the handler, of one tool as of several.
func TestPanics(t *testing.T) {
	for text, end := range map[string]func(){"oh no": func() { panic("oh no") }, "runtime.Goexit": runtime.Goexit} {
		tool := agent.NewTool("x", "", func(context.Context, struct{}) (string, error) { end(); return "", nil })
		r := one(t, tool, "x", "{}")
		r.Want(fftest.Want{Failure: "handler_panic"})
		for _, n := range []int{2, 9} { // more than run at once
			r = run(t, agent.Config{Model: &script{answers: []agent.Response{
				wants(slices.Repeat([]string{"x", "{}"}, n)...), says("done")}}, Tools: []agent.Tool{tool}})
			r.Want(fftest.Want{Failure: "handler_panic"})
			if !strings.Contains(r.Err.Error(), text) {
				t.Error(r.Err)
			}
		}
	}
}

// Tools of a turn run at once, as many as Parallel allows, and one that ends the run does not stop the others.
func TestParallel(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	tool := agent.NewTool("wait", "", func(_ context.Context, q query) (string, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(time.Second)
		mu.Lock()
		now--
		mu.Unlock()
		if q.Text == "stop" {
			return "", handler.Permanent(errors.New("stopped"))
		}
		return q.Text, nil
	})
	var calls []string
	for i := range 6 {
		calls = append(calls, "wait", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{wants(calls...), says("end")}},
		Tools: []agent.Tool{tool}, Parallel: 3})
	if most != 3 || r.Elapsed < 2*time.Second || r.Elapsed > 3*time.Second {
		t.Errorf("%d ran at once, in %v", most, r.Elapsed)
	}
	for i, m := range r.Result.Messages[2:8] {
		if m.Text() != fmt.Sprint(i) {
			t.Errorf("result %d is %q", i, m.Text())
		}
	}
	calls[1] = `{"text":"stop"}`
	r = run(t, agent.Config{Model: &script{answers: []agent.Response{wants(calls...), says("end")}},
		Tools: []agent.Tool{tool}})
	r.Want(fftest.Want{Failure: "handler_error"})
	if len(r.Steps) != 6 { // the model's, and all tools but the first
		t.Errorf("%d steps: %v", len(r.Steps), r.Steps)
	}
}

// A tool knows its call; the key is that of the call, the same in every attempt.
func TestCallFrom(t *testing.T) {
	if _, ok := agent.CallFrom(t.Context()); ok {
		t.Error("a context without a call has one")
	}
	keys := map[string][]string{}
	var mu sync.Mutex
	tool := agent.NewTool("x", "", func(ctx context.Context, q query) (string, error) {
		call, ok := agent.CallFrom(ctx)
		mu.Lock()
		defer mu.Unlock()
		keys[q.Text] = append(keys[q.Text], call.Key)
		if !ok || call.Task == nil || call.Execution != call.Task.ID() ||
			call.Step != map[string]string{"a": "tool 1.1 x", "b": "tool 1.2 x"}[q.Text] ||
			call.ID != map[string]string{"a": "c1", "b": "c2"}[q.Text] || len(call.Key) != 36 {
			t.Errorf("%+v", call)
		}
		if q.Text == "a" && len(keys["a"]) == 1 {
			return "", handler.RetryAfter(time.Second, errors.New("once more"))
		}
		return "", nil
	})
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{wants("x", `{"text":"a"}`, "x", `{"text":"b"}`),
		says("end")}}, Tools: []agent.Tool{tool}})
	if r.Err != nil || len(keys["a"]) != 2 || len(keys["b"]) != 1 || keys["a"][0] != keys["a"][1] ||
		keys["a"][0] == keys["b"][0] {
		t.Errorf("%v, %q", r.Err, keys)
	}
}

// A tool spends from the budgets of its execution. A refusal goes to the model if the budget leaves it to the
// handler, and ends the run if not.
func TestToolsSpend(t *testing.T) {
	tool := agent.NewTool("x", "", func(ctx context.Context, _ struct{}) (string, error) {
		call, _ := agent.CallFrom(ctx)
		return "spent", call.Task.Spend(ctx, "cents", 50)
	})
	for _, action := range []admission.HardAction{admission.HardReject, admission.HardFail} {
		budget := admission.Gate{Name: "b", OnHard: action, Limits: map[string]admission.Limit{"cents": {Hard: 60}}}
		r := fftest.Run(t, chat, running(
			agent.Config{Model: &script{answers: []agent.Response{wants("x", "{}"), wants("x", "{}"), says("end")}},
				Tools: []agent.Tool{tool}, Spend: func(agent.Usage) map[string]int64 { return nil }}), "hello",
			fftest.Gates(budget))
		if r.Spent["b"]["cents"] != 50 {
			t.Errorf("%v spent", r.Spent)
		}
		if action == admission.HardFail {
			r.Want(fftest.Want{Failure: "budget_exceeded"})
			continue
		}
		if i := slices.IndexFunc(r.Result.Messages, func(m agent.Message) bool { return m.Failed }); i != 4 ||
			!strings.Contains(r.Result.Messages[i].Text(), "gate b") {
			t.Errorf("%+v", r.Result.Messages)
		}
	}
}
