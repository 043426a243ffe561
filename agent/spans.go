package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"

	kinds "github.com/flowfabric/flowfabric-go/internal/codes"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowfabric/flowfabric-go/handler"
)

// Described is a [Model] that says what it is. Spans name it: provider by the conventions of OpenTelemetry, for
// example openai or anthropic, and the model that is asked. Either may be "".
type Described interface {
	Describe() (provider, model string)
}

const scope = "github.com/flowfabric/flowfabric-go/agent"

// finish are the reasons by the conventions.
var finish = map[StopReason]string{StopEnd: "stop", StopTools: "tool_call", StopLength: "length",
	StopRefusal: "content_filter"}

// spans makes the spans of a run; nil makes none. A span of the whole begins with the first call that is made, so a
// run that only recalls has none.
type spans struct {
	tracer   trace.Tracer
	agent    string
	identity        // of its model
	id       string // of the execution

	once  sync.Once
	whole trace.Span // the run

	mu   sync.Mutex
	used Usage // by the calls that were made
}

func newSpans(t *handler.Task, cfg Config) *spans {
	if cfg.Tracer == nil {
		return nil
	}
	s := &spans{tracer: cfg.Tracer.Tracer(scope), agent: cmp.Or(cfg.Name, t.Kind()), id: t.ID().String()}
	s.identity = describe(cfg.Model)
	return s
}

// identity is what a model says that it is.
type identity struct{ provider, model string }

func describe(m Model) (i identity) {
	if d, ok := m.(Described); ok {
		i.provider, i.model = d.Describe()
	}
	return i
}

// span is a call; nil for none.
type span struct {
	of    *spans
	otel  trace.Span
	model string // of a model call, if it is known
}

// begin starts a span below that of the run.
func (s *spans) begin(ctx context.Context, name string, kind trace.SpanKind,
	attrs ...attribute.KeyValue) (context.Context, *span) {
	s.once.Do(func() {
		_, s.whole = s.tracer.Start(ctx, "invoke_agent "+s.agent, trace.WithSpanKind(trace.SpanKindInternal),
			trace.WithAttributes(s.common("invoke_agent", s.identity,
				attribute.String("gen_ai.agent.name", s.agent))...))
	})
	ctx, started := s.tracer.Start(trace.ContextWithSpan(ctx, s.whole), name, trace.WithSpanKind(kind),
		trace.WithAttributes(attrs...))
	return ctx, &span{of: s, otel: started}
}

// common are the attributes that spans of the run and of models have.
func (s *spans) common(operation string, who identity, more ...attribute.KeyValue) []attribute.KeyValue {
	attrs := append(more, attribute.String("gen_ai.operation.name", operation),
		attribute.String("gen_ai.conversation.id", s.id))
	if who.provider != "" {
		attrs = append(attrs, attribute.String("gen_ai.provider.name", who.provider))
	}
	if who.model != "" {
		attrs = append(attrs, attribute.String("gen_ai.request.model", who.model))
	}
	return attrs
}

// chat begins the span of a model call.
func (s *spans) chat(ctx context.Context, req Request) (context.Context, *span) {
	if s == nil {
		return ctx, nil
	}
	return s.chatWith(ctx, s.identity, req)
}

// chatWith begins that of a call of another model.
func (s *spans) chatWith(ctx context.Context, who identity, req Request) (context.Context, *span) {
	if s == nil {
		return ctx, nil
	}
	attrs := s.common("chat", who, attribute.Bool("gen_ai.request.stream", true))
	if req.MaxTokens > 0 {
		attrs = append(attrs, attribute.Int64("gen_ai.request.max_tokens", req.MaxTokens))
	}
	ctx, p := s.begin(ctx, nameOf("chat", who.model), trace.SpanKindClient, attrs...)
	p.model = who.model
	return ctx, p
}

// answered ends it.
func (p *span) answered(ctx context.Context, t *handler.Task, response Response, err error) {
	if p == nil {
		return
	}
	if err == nil {
		if p.model == "" {
			p.otel.SetName(nameOf("chat", response.Model))
		}
		p.of.mu.Lock()
		p.of.used = p.of.used.plus(response.Usage)
		p.of.mu.Unlock()
		stop := cmp.Or(response.Stop, StopEnd)
		p.otel.SetAttributes(usage(response.Usage)...)
		p.otel.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons",
			[]string{cmp.Or(finish[stop], string(stop))}))
		if response.Model != "" {
			p.otel.SetAttributes(attribute.String("gen_ai.response.model", response.Model))
		}
		if response.ID != "" {
			p.otel.SetAttributes(attribute.String("gen_ai.response.id", response.ID))
		}
	}
	failed(ctx, t, p.otel, err)
	p.otel.End()
}

// tool begins the span of a tool call.
func (s *spans) tool(ctx context.Context, j *job) (context.Context, *span) {
	if s == nil {
		return ctx, nil
	}
	return s.begin(ctx, "execute_tool "+j.Name, trace.SpanKindInternal,
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.conversation.id", s.id),
		attribute.String("gen_ai.tool.name", j.Name), attribute.String("gen_ai.tool.type", "function"),
		attribute.String("gen_ai.tool.call.id", j.ID))
}

// worked ends it.
func (p *span) worked(ctx context.Context, t *handler.Task, told bool, err error) {
	if p == nil {
		return
	}
	if told && err == nil { // an error that went to the model
		p.otel.SetStatus(codes.Error, "")
		p.otel.SetAttributes(attribute.String("error.type", "tool_error"))
	}
	failed(ctx, t, p.otel, err)
	p.otel.End()
}

// end ends the span of the run, if there is one.
func (s *spans) end(ctx context.Context, t *handler.Task, err error) {
	if s == nil {
		return
	}
	begun := true
	s.once.Do(func() { begun = false })
	if !begun {
		return
	}
	s.whole.SetAttributes(usage(s.used)...)
	failed(ctx, t, s.whole, err)
	s.whole.End()
}

// errPanicked is the error of a call that has not returned: of one that panics, where spans end.
var errPanicked = handler.Category("handler_panic", errors.New("a panic"))

// failed marks a span whose work ended with an error, by the category that the failure has. Texts of errors stay out:
// they may have content.
func failed(ctx context.Context, t *handler.Task, p trace.Span, err error) {
	if err == nil || handler.IsWait(err) {
		return
	}
	out := handler.Classify(ctx, t, err)
	kind := out.Kind
	if out.Kind == kinds.OutcomeFail {
		kind = string(out.Failure.Category)
	}
	p.SetStatus(codes.Error, "")
	p.SetAttributes(attribute.String("error.type", kind))
}

func usage(u Usage) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.Int64("gen_ai.usage.input_tokens", u.Input),
		attribute.Int64("gen_ai.usage.output_tokens", u.Output)}
	for name, n := range map[string]int64{"cache_read.input_tokens": u.CacheRead,
		"cache_creation.input_tokens": u.CacheWrite, "reasoning.output_tokens": u.Reasoning} {
		if n > 0 {
			attrs = append(attrs, attribute.Int64("gen_ai.usage."+name, n))
		}
	}
	return attrs
}

func nameOf(operation, what string) string {
	if what == "" {
		return operation
	}
	return operation + " " + what
}
