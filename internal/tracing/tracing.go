// Package tracing makes the OpenTelemetry spans of client and runtime, and carries their context from the one to the
// other: in tags of the execution, and beside a signal.
//
//	client.Submit       producer span "send <kind>"    ── tags otel.traceparent, … ──▶  claim
//	runtime, each run  consumer span "process <kind>", child of the above, in the handler's ctx
//	client.Signal       producer span "signal"         ── Signal.Trace ──▶  link of the run that it resumed
//
// Without a tracer provider nothing is made, nothing is carried, and nothing is allocated. Only the API is linked.
// docs/how-to/trace.md, ADR 18.
package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/flowfabric/flowfabric-go"

// unset is what the API answers before anybody has set a provider. A provider that is set later replaces it, so it is
// never on by itself.
var unset = otel.GetTracerProvider()

// Tracer makes spans. Safe for concurrent use.
type Tracer struct {
	tracer     trace.Tracer // of the provider that was configured; nil: the global one
	propagator propagation.TextMapPropagator
	global     atomic.Pointer[bound]
}

// bound is the tracer of what was the global provider last.
type bound struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

// New builds a tracer. A nil provider is the global one of package otel, whenever it is set; a nil propagator is the
// global one, and W3C trace context as long as that has no fields.
func New(provider trace.TracerProvider, propagator propagation.TextMapPropagator) *Tracer {
	t := &Tracer{propagator: propagator}
	if provider != nil {
		t.tracer = provider.Tracer(Scope)
	}
	return t
}

// current is the tracer to use now, nil when tracing is off.
func (t *Tracer) current() trace.Tracer {
	if t == nil {
		return nil
	}
	if t.tracer != nil {
		return t.tracer
	}
	provider := otel.GetTracerProvider()
	if provider == unset {
		return nil
	}
	if b := t.global.Load(); b != nil && b.provider == provider {
		return b.tracer
	}
	b := &bound{provider, provider.Tracer(Scope)}
	t.global.Store(b)
	return b.tracer
}

var w3c propagation.TextMapPropagator = propagation.TraceContext{}

func (t *Tracer) carriedBy() propagation.TextMapPropagator {
	if t.propagator != nil {
		return t.propagator
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return w3c
}

// Traceparent is the span context of ctx in W3C form, "" if it has none.
func Traceparent(ctx context.Context) string {
	carried := propagation.MapCarrier{}
	w3c.Inject(ctx, carried)
	return carried["traceparent"]
}

// linkTo reads what Traceparent wrote.
func linkTo(traceparent string) (trace.Link, bool) {
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	at := trace.SpanContextFromContext(ctx)
	return trace.Link{SpanContext: at}, at.IsValid()
}
