package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/openai"
	"github.com/flowfabric/flowfabric-go/handler"
)

// refuses answers with a status and a body.
func refuses(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestRefusalsBeforeTheStream(t *testing.T) {
	pause := func(d time.Duration) *time.Duration { return &d }
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   handler.Failure
		is     openai.Error
	}{
		{"too many requests", refuses(429, http.Header{"Retry-After": {"7"}, "X-Request-Id": {"req_1"}},
			`{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`),
			handler.Failure{Category: "model_rate_limited", RetryAfter: pause(7 * time.Second)},
			openai.Error{Status: 429, Type: "requests", Code: "rate_limit_exceeded", Message: "Slow down",
				RequestID: "req_1"}},
		{"a pause in milliseconds", refuses(429, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"7"}},
			`{"error":"later"}`),
			handler.Failure{Category: "model_rate_limited", RetryAfter: pause(1500 * time.Millisecond)},
			openai.Error{Status: 429, Message: "later"}},
		{"overloaded", refuses(529, http.Header{"Retry-After": {"2"}}, `overloaded`),
			handler.Failure{Category: "model_overloaded", RetryAfter: pause(2 * time.Second)},
			openai.Error{Status: 529, Message: "overloaded"}},
		{"unavailable", refuses(503, nil, ``), handler.Failure{Category: "model_overloaded"},
			openai.Error{Status: 503}},
		{"a wrong key", refuses(401, nil, `{"error":{"message":"Incorrect API key provided: `+key+
			`.","type":"invalid_request_error","code":"invalid_api_key"}}`),
			handler.Failure{Category: "model_refused", Permanent: true},
			openai.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key",
				Message: "Incorrect API key provided: ***."}},
		{"too long", refuses(400, nil, `{"message":"too long","type":"BadRequestError","code":400}`),
			handler.Failure{Category: "model_refused", Permanent: true},
			openai.Error{Status: 400, Type: "BadRequestError", Code: "400", Message: "too long"}},
		{"an unknown path", refuses(404, nil, `{"detail":"Not Found"}`), handler.Failure{
			Category: "model_refused", Permanent: true}, openai.Error{Status: 404, Message: "Not Found"}},
		{"an error without end", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			piece, written := strings.Repeat("endless ", 1<<10), 0
			for n, err := fmt.Fprint(w, piece); err == nil; n, err = fmt.Fprint(w, piece) {
				if written += n; written > 64<<20 {
					t.Error("the whole error is read")
					return
				}
			}
		}, handler.Failure{Category: "model_overloaded"}, openai.Error{Status: 500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			err := fails(t, serve(t, openai.Config{Options: []option.RequestOption{option.WithMaxRetries(5)}},
				func(w http.ResponseWriter, r *http.Request) {
					calls++
					tt.answer(w, r)
				}))
			check(t, err, tt.want)
			if calls != 1 {
				t.Errorf("the service was called %d times, want once: the execution's policy retries", calls)
			}
			var said *openai.Error
			if !errors.As(err, &said) {
				t.Fatalf("%v is no *openai.Error", err)
			}
			if tt.name == "an error without end" {
				said.Message = ""
			}
			if *said != tt.is {
				t.Errorf("the error is %+v, want %+v", *said, tt.is)
			}
		})
	}
}

// check compares what a worker makes of an error.
func check(t *testing.T, err error, want handler.Failure) {
	t.Helper()
	got := handler.Classify(context.Background(), nil, err).Failure
	pause := func(d *time.Duration) string {
		if d == nil {
			return "none"
		}
		return d.String()
	}
	if got.Category != want.Category || got.Permanent != want.Permanent ||
		pause(got.RetryAfter) != pause(want.RetryAfter) {
		t.Errorf("%v: category %s, permanent %t, pause %s; want %s, %t, %s", err, got.Category, got.Permanent,
			pause(got.RetryAfter), want.Category, want.Permanent, pause(want.RetryAfter))
	}
	if len(err.Error()) > 2000 || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is long: %q", err)
	}
}

func TestFailuresWithinTheStream(t *testing.T) {
	overloaded := handler.Failure{Category: "model_overloaded"}
	malformed := handler.Failure{Category: "model_protocol"}
	stream := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { begin(w, r); fmt.Fprint(w, s) }
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   handler.Failure
	}{
		{"an outage", events(text("a"),
			`{"error":{"message":"The server had an error","type":"server_error","code":null}}`, done), overloaded},
		{"an outage with a number",
			events(text("a"),
				`{"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			overloaded},
		{"an outage in words", events(`{"error":"out of memory"}`), overloaded},
		{"an outage as the end", events(text("a"), chunk(`{}`, "error"), done), overloaded},
		{"too many tokens a minute", events(text("a"), `{"error":{"code":"rate_limit_exceeded","message":"slow `+key+
			`"}}`), handler.Failure{Category: "model_rate_limited"}},
		{"a refused request", events(`{"error":{"type":"invalid_request_error","message":"no"}}`),
			handler.Failure{Category: "model_refused", Permanent: true}},
		{"no end", events(text("a")), overloaded},
		{"no end, but its mark", events(text("a"), done), overloaded},
		{"no event", events(), overloaded},
		{"a cut connection", func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprintf(w, "data: %s\n\n", text("a"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, overloaded},
		{"a cut connection after the reason", func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprintf(w, "data: %s\n\n", chunk(`{"content":"a"}`, "stop"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, overloaded},
		{"a cut event", stream("data: " + text("a") + "\n\ndata: {\"choi"), overloaded},
		{"garbage", events("garbage"), malformed},
		{"a number for a list", events(`{"choices":1}`), malformed},
		{"a number that is too long", events(`{"choices":[{"index":` + strings.Repeat("9", 10000) + `}]}`), malformed},
		{"a number for a text", events(`{"choices":[{"delta":{"content":1}}]}`), malformed},
		{"a nameless call", events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`,
			"tool_calls"), done), malformed},
		{"a line without end", stream("data: " + strings.Repeat("x", 33<<20)), malformed},
		{"too large an answer", stream(strings.Repeat("data: "+strings.Repeat("x", 17<<20)+"\n", 2) + "\n"), malformed},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Welcome</html>")
		}, malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, fails(t, serve(t, openai.Config{}, tt.answer)), tt.want)
		})
	}
}

func TestNoConnection(t *testing.T) {
	model, err := openai.New(openai.Config{Model: "m", APIKey: key, BaseURL: "http://127.0.0.1:1/v1?key=" + key,
		HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, fails(t, model), handler.Failure{Category: "model_overloaded"})
}

func TestTheEndOfTheContextEndsTheCall(t *testing.T) {
	cause := errors.New("the budget is spent")
	within := map[string]func(w http.ResponseWriter, end func()){
		"before the stream": func(_ http.ResponseWriter, end func()) { end() },
		"in the middle": func(w http.ResponseWriter, end func()) {
			fmt.Fprintf(w, "data: %s\n\ndata: {\"choi", text("a"))
			w.(http.Flusher).Flush()
			end()
		},
	}
	for name, answer := range within {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			model := serve(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
				begin(w, r)
				answer(w, func() { cancel(cause) })
				<-r.Context().Done() // the client hangs up
			})
			if _, err := model.Generate(ctx, question, func(agent.Delta) error { return nil }); err != cause {
				t.Errorf("the error is %v, want %v", err, cause)
			}
		})
	}
	t.Run("between two deltas", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		heard := 0
		model := serve(t, openai.Config{}, events(text("a"), text("b"), chunk(`{}`, "stop"), done))
		_, err := model.Generate(ctx, question, func(agent.Delta) error {
			heard++
			cancel(cause)
			return nil
		})
		if err != cause || heard != 1 {
			t.Errorf("the error is %v after %d deltas, want %v after one", err, heard, cause)
		}
	})
	t.Run("a timeout of the client is not the end of the context", func(t *testing.T) {
		model := serve(t, openai.Config{Options: []option.RequestOption{option.WithRequestTimeout(time.Nanosecond)}},
			events(done))
		err := fails(t, model)
		check(t, err, handler.Failure{Category: "model_overloaded"})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is the end of a context", err)
		}
	})
}

func TestDeltasComeAtOnceAndTheirErrorIsReturned(t *testing.T) {
	next := make(chan struct{})
	model := serve(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		for _, word := range []string{"one", "two", "three"} {
			fmt.Fprintf(w, "data: %s\n\n", text(word))
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	full := errors.New("no more frames")
	var words []string
	_, err := model.Generate(t.Context(), question, func(d agent.Delta) error {
		words = append(words, d.Text)
		if d.Text == "three" {
			return full
		}
		next <- struct{}{}
		return nil
	})
	if err != full || strings.Join(words, " ") != "one two three" {
		t.Errorf("the error is %v after %q, want %v", err, words, full)
	}
}
