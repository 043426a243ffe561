package tracing

import (
	"context"
	"maps"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Without a provider the hot path pays nothing.
func TestOffAllocatesNothing(t *testing.T) {
	off, ctx, tags := New(nil, nil), context.Background(), map[string]string{"otel.traceparent": "x"}
	if n := testing.AllocsPerRun(1000, func() {
		ctx, span := off.Send(ctx, Work{Kind: "greet", Lane: "default"})
		span.Ended(nil)
		ctx, span = off.Process(ctx, off.Tag(ctx, tags), Work{Kind: "greet"})
		span.Set("a", "b")
		span.End("", "")
		_, span = off.Signal(ctx, "signal", Work{})
		span.Ended(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if off.On() || !New(noop.NewTracerProvider(), nil).On() {
		t.Error("on and off are mixed up")
	}
	otel.SetTracerProvider(noop.NewTracerProvider()) // after New, as applications do
	if !off.On() {
		t.Error("off although a global provider is set")
	}
}

var here = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	TraceFlags: trace.FlagsSampled})

// What a propagator writes comes back through tags, whatever its fields are called; what is too long is left out.
func TestTagsCarryTheContext(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=" + strings.Repeat("x", 250))
	must.No(t, err)
	long := trace.ContextWithSpanContext(context.Background(), here.WithTraceState(state))
	on := New(noop.NewTracerProvider(), propagation.TraceContext{})
	tags := on.Tag(long, map[string]string{"team.region": "eu", "otel.traceparent": "stale", "otel.baggage": "stale"})
	want := map[string]string{"team.region": "eu",
		"otel.traceparent": "00-01000000000000000000000000000000-0200000000000000-01"}
	if !maps.Equal(tags, want) {
		t.Errorf("tags %v, want %v", tags, want)
	}
	if err := valid.Tags(tags); err != nil {
		t.Error(err)
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier(tags))
	if got := trace.SpanContextFromContext(ctx); got.TraceID() != here.TraceID() || got.SpanID() != here.SpanID() ||
		!got.IsRemote() {
		t.Errorf("came back as %v", got)
	}
	c := carrier{}
	c.Set("X-B3-TraceId", "1")
	if c["otel.x_b3_traceid"] != "1" || c.Get("x-b3-traceid") != "1" || len(c.Keys()) != 1 {
		t.Errorf("carrier %v", c)
	}
	if again := on.Tag(context.Background(), map[string]string{"a.b": "c"}); len(again) != 1 {
		t.Errorf("without a span: %v", again)
	}
}

func TestTraceparent(t *testing.T) {
	ctx := trace.ContextWithSpanContext(context.Background(), here)
	link, ok := linkTo(Traceparent(ctx))
	if !ok || link.SpanContext.SpanID() != here.SpanID() {
		t.Errorf("%v, %v", link, ok)
	}
	for _, bad := range []string{"", "nonsense", "00-00000000000000000000000000000000-0000000000000000-00"} {
		if _, ok := linkTo(bad); ok {
			t.Errorf("%q is a link", bad)
		}
	}
}
