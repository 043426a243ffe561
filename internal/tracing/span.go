package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// maxLinks bounds the signals that one run is linked to; a condition may take thousands.
const maxLinks = 32

// Span is a span that was begun; nil when tracing is off, and then all methods do nothing.
type Span struct{ span trace.Span }

// Work names what a span is about. Zero fields are left out.
type Work struct {
	Namespace, Lane, Kind string
	Execution             flowfabric.ExecutionID
	Attempt               uint32
	AttemptType           flowfabric.AttemptType
	Worker                string   // instance
	Count                 int      // of executions, when there are several
	Links                 []string // traceparents of what led to this
}

// The operations of messaging semantic conventions that spans stand for.
const (
	opSend    = "send"
	opProcess = "process"
	opSignal  = "signal"
	opBatch   = "batch"
)

func (w *Work) attributes(operation string) []attribute.KeyValue {
	kv := append(make([]attribute.KeyValue, 0, 12), attribute.String("messaging.system", "flowfabric"),
		attribute.String("messaging.operation.name", operation))
	switch operation {
	case opProcess:
		kv = append(kv, attribute.String("messaging.operation.type", "process"),
			attribute.Int("flowfabric.attempt", int(w.Attempt)),
			attribute.String("flowfabric.attempt_type", string(w.AttemptType)))
	case opBatch:
		kv = append(kv, attribute.String("messaging.operation.type", "process"))
	default:
		kv = append(kv, attribute.String("messaging.operation.type", "send"))
	}
	for _, text := range [...]struct{ key, value string }{
		{"messaging.destination.name", w.Lane}, {"messaging.client.id", w.Worker},
		{"flowfabric.kind", w.Kind}, {"flowfabric.namespace", w.Namespace},
	} {
		if text.value != "" {
			kv = append(kv, attribute.String(text.key, text.value))
		}
	}
	if !w.Execution.IsZero() {
		kv = append(kv, attribute.String("messaging.message.id", w.Execution.String()))
	}
	if w.Count > 0 {
		kv = append(kv, attribute.Int("messaging.batch.message_count", w.Count))
	}
	return kv
}

// Send begins the span of a submission.
func (t *Tracer) Send(ctx context.Context, w Work) (context.Context, *Span) {
	tracer := t.current()
	if tracer == nil {
		return ctx, nil
	}
	return begin(ctx, tracer, "send "+w.Kind, trace.SpanKindProducer, w.attributes(opSend), nil)
}

// Signal begins the span of a signal to an execution, by whoever holds its token (how is "signal") or an operator
// ("approve").
func (t *Tracer) Signal(ctx context.Context, how string, w Work) (context.Context, *Span) {
	tracer := t.current()
	if tracer == nil {
		return ctx, nil
	}
	return begin(ctx, tracer, how, trace.SpanKindProducer, w.attributes(opSignal), nil)
}

// Process begins the span of one run of a handler: a child of what the execution's tags carry.
func (t *Tracer) Process(ctx context.Context, tags map[string]string, w Work) (context.Context, *Span) {
	tracer := t.current()
	if tracer == nil {
		return ctx, nil
	}
	if brings(tags) {
		ctx = t.carriedBy().Extract(ctx, carrier(tags))
	}
	return begin(ctx, tracer, "process "+w.Kind, trace.SpanKindConsumer, w.attributes(opProcess), w.links())
}

// Batch begins the span of one call with several executions: a child of the run of the first, linked to those of all.
func (t *Tracer) Batch(ctx context.Context, w Work) (context.Context, *Span) {
	tracer := t.current()
	if tracer == nil {
		return ctx, nil
	}
	return begin(ctx, tracer, "batch "+w.Kind, trace.SpanKindInternal, w.attributes(opBatch), w.links())
}

func (w *Work) links() (links []trace.Link) {
	for _, traceparent := range w.Links[:min(len(w.Links), maxLinks)] {
		if link, ok := linkTo(traceparent); ok {
			links = append(links, link)
		}
	}
	return links
}

// On tells whether spans are made; it is for what is costly to find out for them.
func (t *Tracer) On() bool { return t.current() != nil }

func begin(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanKind, kv []attribute.KeyValue,
	links []trace.Link) (context.Context, *Span) {
	ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(kv...),
		trace.WithLinks(links...))
	return ctx, &Span{span}
}

// Set adds one attribute.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Execution adds the execution, once its id is final.
func (s *Span) Execution(id flowfabric.ExecutionID) { s.Set("messaging.message.id", id.String()) }

// End ends the span. With a kind of error (a code or category, which traces are grouped by) it counts as failed; text
// is for people.
func (s *Span) End(kind, text string) {
	if s == nil {
		return
	}
	if kind != "" {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, text)
	}
	s.span.End()
}

// Ended is End with an error, or without one for nil.
func (s *Span) Ended(err error) {
	switch {
	case s == nil:
	case err == nil:
		s.End("", "")
	default:
		kind := flowfabric.CodeOf(err)
		if kind == "" {
			kind = "_OTHER"
		}
		s.End(kind, err.Error())
	}
}
