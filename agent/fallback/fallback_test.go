package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/fallback"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// scripted is a model that shows and then fails, or answers if err is nil.
type scripted struct {
	name, shows string
	err         error
	calls       int
}

func (s *scripted) Describe() (provider, model string) { return "fake", s.name }

func (s *scripted) Generate(_ context.Context, _ agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
	s.calls++
	if s.shows != "" {
		if err := delta(agent.Delta{Text: s.shows}); err != nil {
			return agent.Response{}, err
		}
	}
	if s.err != nil {
		return agent.Response{}, s.err
	}
	return agent.Response{Message: agent.Message{Parts: agent.Text(s.shows)}, Stop: agent.StopEnd}, nil
}

func status(code int, after string) error {
	return agent.StatusError(code, http.Header{"Retry-After": {after}}, fmt.Errorf("status %d", code))
}

func TestTheNextModelIsAskedIfOneCannotAnswer(t *testing.T) {
	refused, plain := status(400, ""), errors.New("a bug")
	for _, tt := range []struct {
		name  string
		first scripted
		err   error // nil if the second answers
	}{
		{"overloaded", scripted{err: status(529, "")}, nil},
		{"rate limited", scripted{err: status(429, "30")}, nil},
		{"no connection", scripted{err: status(0, "")}, nil},
		{"a bad request", scripted{err: refused}, refused},
		{"another error", scripted{err: plain}, plain},
		{"in mid-answer", scripted{shows: "Once", err: plain}, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			second := &scripted{name: "second", shows: "Hello."}
			model, err := fallback.New(&tt.first, second)
			must.No(t, err)
			got, err := model.Generate(t.Context(), agent.Request{}, func(agent.Delta) error { return nil })
			if err != tt.err || tt.err == nil && (got.Model != "second" || got.Message.Text() != "Hello.") ||
				tt.err != nil && second.calls != 0 {
				t.Errorf("%+v, %v, and the second was called %d times", got, err, second.calls)
			}
		})
	}
}

// What was shown cannot be taken back: an overload in mid-answer fails the attempt.
func TestNoOtherModelGoesOnWithAnAnswer(t *testing.T) {
	first, second := &scripted{shows: "Once", err: status(503, "")}, &scripted{}
	model, err := fallback.New(first, second)
	must.No(t, err)
	var shown []string
	_, err = model.Generate(t.Context(), agent.Request{}, func(d agent.Delta) error {
		shown = append(shown, d.Text)
		return nil
	})
	if err != first.err || second.calls != 0 || len(shown) != 1 {
		t.Errorf("%v, %q, and the second was called %d times", err, shown, second.calls)
	}
}

func TestTheErrorOfAllAsksForTheShortestPause(t *testing.T) {
	for _, tt := range []struct {
		errs     []error
		category string
		pause    time.Duration
	}{
		{[]error{status(429, "30"), status(503, "5"), status(429, "9")}, "model_overloaded", 5 * time.Second},
		{[]error{status(429, "30"), status(503, "")}, "model_overloaded", 0},
		{[]error{status(429, "3"), status(503, "7")}, "model_rate_limited", 3 * time.Second},
		{[]error{status(429, "3")}, "model_rate_limited", 3 * time.Second},
	} {
		var models []agent.Model
		for _, err := range tt.errs {
			models = append(models, &scripted{err: err})
		}
		model, err := fallback.New(models...)
		must.No(t, err)
		_, err = model.Generate(t.Context(), agent.Request{}, func(agent.Delta) error { return nil })
		failure := handler.Classify(t.Context(), nil, err).Failure
		pause := time.Duration(0)
		if failure.RetryAfter != nil {
			pause = *failure.RetryAfter
		}
		if string(failure.Category) != tt.category || pause != tt.pause {
			t.Errorf("%v: %s after %s, want %s after %s", err, failure.Category, pause, tt.category, tt.pause)
		}
		for _, each := range tt.errs {
			if !strings.Contains(err.Error(), each.Error()) {
				t.Errorf("%v does not tell %v", err, each)
			}
		}
	}
}

func TestAnEndedContextAsksNoOtherModel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second := &scripted{}
	model, err := fallback.New(&scripted{err: status(503, "")}, second)
	must.No(t, err)
	if _, err := model.Generate(ctx, agent.Request{}, nil); err == nil || second.calls != 0 {
		t.Errorf("%v, and the second was called %d times", err, second.calls)
	}
}

func TestNewAndDescribe(t *testing.T) {
	for _, models := range [][]agent.Model{nil, {&scripted{}, nil}} {
		if _, err := fallback.New(models...); err == nil {
			t.Errorf("%v makes a model", models)
		}
	}
	model, err := fallback.New(&scripted{name: "first"}, &scripted{})
	must.No(t, err)
	if provider, name := model.(agent.Described).Describe(); provider != "fake" || name != "first" {
		t.Errorf("it is %s, %s", provider, name)
	}
}

var talk = handler.Define[string, agent.Result]("talk")

// Wherever the worker dies in a run whose first model is overloaded in its second turn, the answers that were recorded
// are those of the models that gave them, and are not asked for again.
func TestCrashes(t *testing.T) {
	add := agent.NewTool("add", "", func(_ context.Context, in struct{ N int }) (int, error) { return in.N + 1, nil })
	var fx *fftest.Effects
	answering := func(name string) agent.Model {
		return agent.ModelFunc(func(_ context.Context, q agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			turn := (len(q.Messages) + 1) / 2
			if name == "first" && turn == 2 {
				return agent.Response{}, agent.StatusError(http.StatusServiceUnavailable, nil, errors.New("overloaded"))
			}
			fx.Did(fmt.Sprint(name, " ", turn))
			r := agent.Response{Model: name, Message: agent.Message{Parts: agent.Text(fmt.Sprint(name, " ", turn))}}
			if turn < 3 {
				r.Message.Calls = []agent.ToolCall{{ID: fmt.Sprint(turn), Name: "add", Arguments: []byte(`{"N":1}`)}}
			}
			return r, nil
		})
	}
	model, err := fallback.New(answering("first"), answering("second"))
	if err != nil {
		t.Fatal(err)
	}
	crashes := fftest.Crashes(t, talk,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			fx = next
			return func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
				return agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{add}, Prompt: prompt})
			}
		}, "hello", func(r *fftest.Report[agent.Result]) {
			var said []string
			for _, m := range r.Result.Messages {
				if m.Role == agent.Assistant {
					said = append(said, m.Text())
				}
			}
			if fmt.Sprint(said) != "[first 1 second 2 first 3]" || r.Err != nil {
				t.Errorf("%s: %q, %v", r.Crash, said, r.Err)
			}
		})
	if crashes < 20 {
		t.Errorf("%d crashes", crashes)
	}
}
