package otlp_test

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/examples/otlp"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// receiver takes spans as Tempo and Langfuse do.
type receiver struct {
	mu    sync.Mutex
	spans map[string]*spans.Span
	auth  string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.Reader(q.Body), error(nil)
	if q.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(q.Body)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(body)
	}
	var got collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &got)
	}
	if err != nil || q.URL.Path != "/api/public/otel/v1/traces" {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth = q.Header.Get("Authorization")
	for _, resource := range got.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans[s.Name] = s
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// attributes are those of a span, as text.
func attributes(s *spans.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.Key] = a.Value.GetStringValue()
		if n, whole := a.Value.Value.(interface{ String() string }); whole && out[a.Key] == "" {
			out[a.Key] = n.String()
		}
	}
	return out
}

var chat = handler.Define[string, string]("chat")

// A run of an agent arrives as one trace, from the submission to the call of the model, with the attributes of the
// conventions for AI, and the headers of the environment.
func TestSpansArrive(t *testing.T) {
	got := &receiver{spans: map[string]*spans.Span{}}
	server := httptest.NewServer(got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"/api/public/otel")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic cGs6c2s=")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	provider, err := otlp.Provider(ctx)
	if err != nil {
		t.Fatal(err)
	}
	model := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		said := []agent.Part{{Type: agent.PartText, Text: "hello"}}
		return agent.Response{Message: agent.Message{Role: agent.Assistant, Parts: said}, Stop: agent.StopEnd,
			Usage: agent.Usage{Input: 5, Output: 6}, Model: "acme-1"}, nil
	})
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet, TracerProvider: provider},
		handler.Bind(chat, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			r, err := agent.Run(ctx, t, agent.Config{Model: model, Tracer: provider, Prompt: in})
			return r.Text, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet, TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, err := client.Submit(ctx, c, chat, "hi")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Result(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	running.Wait()
	if err := provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	id := x.ID().String()
	for name, want := range map[string]map[string]string{
		"send chat":         {"messaging.message.id": id, "messaging.system": "flowfabric"},
		"process chat":      {"messaging.message.id": id, "flowfabric.outcome": "complete"},
		"invoke_agent chat": {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": id},
		"chat acme-1":       {"gen_ai.operation.name": "chat", "gen_ai.response.model": "acme-1"},
	} {
		s := got.spans[name]
		if s == nil {
			t.Errorf("no span %q among %d", name, len(got.spans))
			continue
		}
		has := attributes(s)
		for key, value := range want {
			if has[key] != value {
				t.Errorf("%s: %s is %q, want %q of %v", name, key, has[key], value, has)
			}
		}
		if string(s.TraceId) != string(got.spans["send chat"].GetTraceId()) {
			t.Errorf("%s is of another trace", name)
		}
	}
	if got.auth != "Basic cGs6c2s=" {
		t.Errorf("the header of the environment is %q", got.auth)
	}
}
