package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// traces is a tracer provider that keeps its spans.
type traces struct {
	embedded.TracerProvider
	mu    sync.Mutex
	spans []*traced
}

type tracer struct {
	embedded.Tracer
	of *traces
}

// traced is one span.
type traced struct {
	noop.Span
	of     *traces
	name   string
	kind   trace.SpanKind
	parent string
	attrs  map[string]string
	status codes.Code
	ended  int
}

func (r *traces) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{of: r} }

func (t tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg := trace.NewSpanStartConfig(opts...)
	s := &traced{of: t.of, name: name, kind: cfg.SpanKind(), attrs: map[string]string{}}
	if parent, ok := trace.SpanFromContext(ctx).(*traced); ok {
		s.parent = parent.name
	}
	s.SetAttributes(cfg.Attributes()...)
	t.of.mu.Lock()
	t.of.spans = append(t.of.spans, s)
	t.of.mu.Unlock()
	return trace.ContextWithSpan(ctx, s), s
}

func (s *traced) SetName(name string) { s.name = name }
func (s *traced) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.attrs[string(a.Key)] = a.Value.String()
	}
}
func (s *traced) SetStatus(c codes.Code, text string) { s.status = c; s.attrs["status"] += text }
func (s *traced) End(...trace.SpanEndOption)          { s.ended++ }

// described is a model that says what it is.
type described struct{ agent.Model }

func (described) Describe() (provider, model string) { return "acme", "acme-1" }

// Spans follow the conventions, are made for what is done and not for what is recalled, and carry nothing of what is
// said.
func TestSpans(t *testing.T) {
	answers := []agent.Response{wants("search", `{"text":"hidden"}`, "refund", `{"cents":77}`, "search",
		`{"text":"bad"}`), says("hidden")}
	answers[0].ID, answers[0].Model = "id-1", "acme-1-mini"
	answers[0].Usage = agent.Usage{Input: 5, Output: 6, CacheRead: 1, CacheWrite: 2, Reasoning: 3}
	r := &traces{}
	cfg := agent.Config{Model: described{&script{answers: answers}},
		Tools: []agent.Tool{search(nil), refund(agent.Decision{Ask: true})}, Tracer: r, MaxOutput: 99}
	report := fftest.Run(t, chat, fftest.Answered(running(cfg),
		fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "approve"})), "hidden")
	if report.Err != nil {
		t.Fatal(report.Err)
	}
	id := report.ID.String()
	of := func(operation string, more ...string) []string {
		return append([]string{"gen_ai.operation.name=" + operation, "gen_ai.conversation.id=" + id}, more...)
	}
	model := []string{"gen_ai.provider.name=acme", "gen_ai.request.model=acme-1"}
	invoked := of("invoke_agent", append(model, "gen_ai.agent.name=chat")...)
	asked := of("chat", append(model, "gen_ai.request.max_tokens=99", "gen_ai.request.stream=true")...)
	called := func(tool, call string, more ...string) []string {
		return of("execute_tool",
			append(more, "gen_ai.tool.name="+tool, "gen_ai.tool.type=function", "gen_ai.tool.call.id="+call)...)
	}
	used := func(in, out string) []string {
		return []string{"gen_ai.usage.input_tokens=" + in, "gen_ai.usage.output_tokens=" + out}
	}
	details := []string{"gen_ai.usage.cache_read.input_tokens=1", "gen_ai.usage.cache_creation.input_tokens=2",
		"gen_ai.usage.reasoning.output_tokens=3"}
	var got []string
	for _, s := range r.spans {
		var attrs []string
		for k, v := range s.attrs {
			if v != "" || k != "status" {
				attrs = append(attrs, k+"="+v)
			}
		}
		slices.Sort(attrs)
		got = append(got, fmt.Sprint(s.name, " in ", s.parent, " ", s.kind, " ", s.status, " ", attrs))
		if s.ended != 1 {
			t.Errorf("%s ended %d times", s.name, s.ended)
		}
	}
	line := func(name, parent string, kind trace.SpanKind, status codes.Code, attrs ...[]string) string {
		all := slices.Concat(attrs...)
		slices.Sort(all)
		return fmt.Sprint(name, " in ", parent, " ", kind, " ", status, " ", all)
	}
	whole := "invoke_agent chat"
	want := []string{
		line(whole, "", trace.SpanKindInternal, codes.Unset, invoked, used("5", "6"), details), // until the wait
		line("chat acme-1", whole, trace.SpanKindClient, codes.Unset, asked, used("5", "6"), details,
			[]string{`gen_ai.response.finish_reasons=["tool_call"]`, "gen_ai.response.id=id-1",
				"gen_ai.response.model=acme-1-mini"}),
		line("execute_tool search", whole, trace.SpanKindInternal, codes.Unset, called("search", "c1")),
		line("execute_tool search", whole, trace.SpanKindInternal, codes.Error,
			called("search", "c3", "error.type=tool_error")),
		line(whole, "", trace.SpanKindInternal, codes.Unset, invoked, used("7", "3")), // after it
		line("execute_tool refund", whole, trace.SpanKindInternal, codes.Unset, called("refund", "c2")),
		line("chat acme-1", whole, trace.SpanKindClient, codes.Unset, asked, used("7", "3"),
			[]string{`gen_ai.response.finish_reasons=["stop"]`}),
	}
	slices.Sort(got) // tools run at once
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("spans\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(strings.Join(got, " "), "hidden") ||
		strings.Contains(strings.Join(got, " "), "77") && !strings.Contains(id, "77") {
		t.Errorf("spans tell what is said: %q", got)
	}
}

// A failed call is an error by the category of its failure, without its text.
func TestSpansOfFailures(t *testing.T) {
	r := &traces{}
	model := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		return agent.Response{}, agent.StatusError(503, nil, errors.New("hidden"))
	})
	run(t, agent.Config{Model: model, Tracer: r, Name: "clerk"}).Want(fftest.Want{Failure: "model_overloaded"})
	for i, name := range []string{"invoke_agent clerk", "chat"} {
		if s := r.spans[i]; s.name != name || s.status != codes.Error ||
			s.attrs["error.type"] != "model_overloaded" || s.attrs["status"] != "" {
			t.Errorf("%s: %+v", s.name, s.attrs)
		}
	}
	r = &traces{}
	tool := agent.NewTool("x", "", func(context.Context, struct{}) (string, error) { panic("hidden") })
	run(t, agent.Config{Model: &script{answers: []agent.Response{wants("x", "{}")}}, Tools: []agent.Tool{tool},
		Tracer: r}).Want(fftest.Want{Failure: "handler_panic"})
	for _, s := range r.spans {
		if panicked := s.attrs["error.type"] == "handler_panic"; s.ended != 1 || panicked != (s.name != "chat") {
			t.Errorf("%s ended %d times after a panic: %v", s.name, s.ended, s.attrs)
		}
	}
}
