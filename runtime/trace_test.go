package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	states "github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// recorder is a tracer provider that keeps what was ended.
type recorder struct {
	embedded.TracerProvider
	mu    sync.Mutex
	ids   byte
	ended []*recorded
}

type tracer struct {
	embedded.Tracer
	of *recorder
}

// recorded is one span.
type recorded struct {
	trace.Span
	of     *recorder
	name   string
	kind   trace.SpanKind
	at     trace.SpanContext
	parent trace.SpanContext
	links  []trace.Link
	attrs  map[attribute.Key]attribute.Value
	status codes.Code
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{of: r} }

func (t tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	cfg, parent := trace.NewSpanStartConfig(opts...), trace.SpanContextFromContext(ctx)
	t.of.ids++
	at := trace.SpanContextConfig{TraceID: parent.TraceID(), SpanID: trace.SpanID{t.of.ids},
		TraceFlags: trace.FlagsSampled}
	if !parent.IsValid() {
		at.TraceID = trace.TraceID{t.of.ids}
	}
	s := &recorded{Span: trace.SpanFromContext(context.Background()), of: t.of, name: name, kind: cfg.SpanKind(),
		at: trace.NewSpanContext(at), parent: parent, links: cfg.Links(), attrs: map[attribute.Key]attribute.Value{}}
	s.SetAttributes(cfg.Attributes()...)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recorded) SpanContext() trace.SpanContext { return s.at }
func (s *recorded) IsRecording() bool              { return true }
func (s *recorded) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.attrs[a.Key] = a.Value
	}
}
func (s *recorded) SetStatus(c codes.Code, _ string) { s.status = c }
func (s *recorded) End(...trace.SpanEndOption) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.ended = append(s.of.ended, s)
}

// named waits for the n-th span of a name that has ended.
func (r *recorder) named(w *env, name string, n int) *recorded {
	w.Helper()
	var found []*recorded
	w.eventually("span "+name, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		found = nil
		for _, s := range r.ended {
			if s.name == name {
				found = append(found, s)
			}
		}
		return len(found) > n
	})
	return found[n]
}

func (s *recorded) has(t *testing.T, want map[attribute.Key]string) {
	t.Helper()
	for k, v := range want {
		if got := s.attrs[k].String(); got != v {
			t.Errorf("span %s: %s is %q, want %q", s.name, k, got, v)
		}
	}
}

func tracedClient(t *testing.T, w *env, r *recorder) *client.Client {
	t.Helper()
	cfg := client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url, Logger: quiet}
	if r != nil {
		cfg.TracerProvider = r
	}
	c, err := client.Connect(w.ctx, cfg)
	must.No(t, err)
	t.Cleanup(c.Close)
	return c
}

// One trace goes from the producer through the submission and every run of the handler, whose own spans are in it; the
// run that a signal resumed links to the signal's span, which belongs to the sender's trace.
func TestTraceFollowsTheExecution(t *testing.T) {
	servers(t, func(w *env) {
		t, r := w.T, &recorder{}
		c := tracedClient(t, w, r)
		cfg := signing()
		cfg.TracerProvider, cfg.Instance = r, "me"
		w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			for k := range task.Tags() {
				if strings.HasPrefix(k, limits.TraceTags) {
					t.Errorf("the handler sees tag %s", k)
				}
			}
			_, own := tracer{of: r}.Start(ctx, "own")
			own.End()
			return handler.Await[string](ctx, task, "go")
		}))

		ctx, outer := tracer{of: r}.Start(w.ctx, "outer")
		tags := map[string]string{"team.region": "eu"}
		x, err := client.Submit(ctx, c, greet, "x", flowfabric.Tags(tags))
		must.No(t, err)
		sent := r.named(w, "send greet", 0)
		sent.has(t, map[attribute.Key]string{
			"messaging.system": "flowfabric", "messaging.operation.name": "send", "messaging.operation.type": "send",
			"messaging.destination.name": "default", "messaging.message.id": x.ID().String(),
			"flowfabric.kind": "greet",
		})
		if sent.kind != trace.SpanKindProducer || sent.parent.SpanID() != outer.SpanContext().SpanID() {
			t.Errorf("the submission is a %s below %s", sent.kind, sent.parent.SpanID())
		}
		if len(tags) != 1 {
			t.Errorf("the caller's tags were changed: %v", tags)
		}

		first := r.named(w, "process greet", 0)
		first.has(t, map[attribute.Key]string{
			"messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.message.id": x.ID().String(), "messaging.client.id": "me", "flowfabric.attempt": "1",
			"flowfabric.attempt_type": "initial", "flowfabric.outcome": "suspend",
		})
		if first.kind != trace.SpanKindConsumer || first.parent.SpanID() != sent.at.SpanID() ||
			first.at.TraceID() != outer.SpanContext().TraceID() {
			t.Errorf("the run is a %s below %s of %s", first.kind, first.parent.SpanID(), first.at.TraceID())
		}
		if own := r.named(w, "own", 0); own.parent.SpanID() != first.at.SpanID() {
			t.Errorf("the handler's own span is below %s", own.parent.SpanID())
		}

		w.reach(x.ID(), states.AwaitingSignal)
		if _, err := c.Execution(x.ID()).Approve(w.ctx, "go", "on", flowfabric.By("anna"),
			client.SignalDetails(suspend.SentSignal{Correlation: "ticket-7"})); err != nil {
			t.Fatal(err)
		}
		approved := r.named(w, "approve", 0)
		second := r.named(w, "process greet", 1)
		second.has(t, map[attribute.Key]string{"flowfabric.attempt_type": "resumed", "flowfabric.outcome": "complete"})
		if second.parent.SpanID() != sent.at.SpanID() || len(second.links) != 1 ||
			second.links[0].SpanContext.SpanID() != approved.at.SpanID() {
			t.Errorf("the resumed run is below %s with links %v", second.parent.SpanID(), second.links)
		}
		w.reach(x.ID(), states.Completed)
		suspension, err := c.Execution(x.ID()).Suspension(w.ctx)
		if err != nil || suspension.Result == nil || suspension.Result.Signals[0].Correlation != "ticket-7" {
			t.Errorf("the correlation reads %+v, %v", suspension.Result, err)
		}
	})
}

// A failure is an error of its span, under its category; what was never traced is a trace of its own.
func TestTraceOfAFailure(t *testing.T) {
	w, r := newEnv(t), &recorder{}
	w.start(runtime.Config{TracerProvider: r},
		handler.Bind(greet, func(_ context.Context, _ *handler.Task, in string) (string, error) {
			return "", handler.Permanent(handler.Category("no_luck", errors.New("broken")))
		}))
	w.reach(w.submit("x"), states.Failed)
	s := r.named(w, "process greet", 0)
	s.has(t, map[attribute.Key]string{"error.type": "no_luck", "flowfabric.outcome": "fail"})
	if s.status != codes.Error || s.parent.IsValid() {
		t.Errorf("status %v, parent %v", s.status, s.parent)
	}
}

// Without a provider nothing travels; with too many tags of the caller's own the submission goes through without a
// trace; and a propagator that was chosen is used.
func TestTraceNeverFailsASubmission(t *testing.T) {
	w, r := newEnv(t), &recorder{}
	tagsOf := func(c *client.Client, opts ...client.SubmitOption) map[string]string {
		t.Helper()
		ctx, _ := tracer{of: r}.Start(w.ctx, "outer")
		x, err := client.Submit(ctx, c, greet, "x", opts...)
		must.No(t, err)
		s, err := w.engine.ReadExecution(w.ctx, x.ID())
		must.No(t, err)
		return s.Tags
	}
	if tags := tagsOf(tracedClient(t, w, nil)); len(tags) != 0 {
		t.Errorf("untraced, but %v", tags)
	}
	c := tracedClient(t, w, r)
	if tags := tagsOf(c); len(tags) != 1 || !strings.HasPrefix(tags["otel.traceparent"], "00-") {
		t.Errorf("traced: %v", tags)
	}
	full := map[string]string{}
	for i := range limits.MaxTags {
		full["full.t"+string(rune('a'+i/26))+string(rune('a'+i%26))] = "x"
	}
	if tags := tagsOf(c, flowfabric.Tags(full)); len(tags) != limits.MaxTags || tags["otel.traceparent"] != "" {
		t.Errorf("%d tags", len(tags))
	}
	if tags := tagsOf(c, flowfabric.Tags(map[string]string{"otel.traceparent": "stale"})); !strings.HasPrefix(
		tags["otel.traceparent"], "00-") {
		t.Errorf("a copied tag wins: %v", tags)
	}
	var none []propagation.TextMapPropagator
	silent, err := client.Connect(w.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url,
		Logger: quiet, TracerProvider: r,
		Propagator: propagation.NewCompositeTextMapPropagator(none...)})
	must.No(t, err)
	t.Cleanup(silent.Close)
	if tags := tagsOf(silent); len(tags) != 0 {
		t.Errorf("a silent propagator, but %v", tags)
	}
}

// Many are submitted in one span, of which all runs are children; a signal with a token is traced like one without.
func TestTraceOfManyAndOfTokens(t *testing.T) {
	w, r := newEnv(t), &recorder{}
	c := tracedClient(t, w, r)
	tokens := make(chan suspend.Token, 3)
	cfg := signing()
	cfg.TracerProvider = r
	w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		p, err := task.Pending(ctx, "go", time.Minute)
		if err != nil {
			return "", err
		}
		select {
		case tokens <- p:
		default:
		}
		return handler.Await[string](ctx, task, "go")
	}))
	if _, err := client.SubmitMany(w.ctx, c, greet, []string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	sent := r.named(w, "send greet", 0)
	sent.has(t, map[attribute.Key]string{"messaging.batch.message_count": "3"})
	for i := range 3 {
		if s := r.named(w, "process greet", i); s.parent.SpanID() != sent.at.SpanID() {
			t.Errorf("run %d is below %s", i, s.parent.SpanID())
		}
	}
	if _, err := c.Signal(w.ctx, <-tokens, "on"); err != nil {
		t.Fatal(err)
	}
	signal := r.named(w, "signal", 0)
	resumed := r.named(w, "process greet", 3)
	if !slices.ContainsFunc(resumed.links, func(l trace.Link) bool {
		return l.SpanContext.SpanID() == signal.at.SpanID()
	}) {
		t.Errorf("links %v, want the signal's", resumed.links)
	}
	if _, err := c.Signal(w.ctx, suspend.Token{}, "on"); !errors.Is(err, denied.NoToken) {
		t.Errorf("%v", err)
	}
}
