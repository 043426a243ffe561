package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
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
		is     anthropic.Error
	}{
		{"too many requests", refuses(429, http.Header{"Retry-After": {"7"}, "Request-Id": {"req_1"}},
			`{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"},"request_id":"req_1"}`),
			handler.Failure{Category: "model_rate_limited", RetryAfter: pause(7 * time.Second)},
			anthropic.Error{Status: 429, Type: "rate_limit_error", Message: "Slow down", RequestID: "req_1"}},
		{"a pause in milliseconds", refuses(429, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"7"}},
			`later`),
			handler.Failure{Category: "model_rate_limited", RetryAfter: pause(1500 * time.Millisecond)},
			anthropic.Error{Status: 429, Message: "later"}},
		{"overloaded", refuses(529, http.Header{"Retry-After": {"2"}},
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
			handler.Failure{Category: "model_overloaded", RetryAfter: pause(2 * time.Second)},
			anthropic.Error{Status: 529, Type: "overloaded_error", Message: "Overloaded"}},
		{"unavailable", refuses(503, nil, ``), handler.Failure{Category: "model_overloaded"},
			anthropic.Error{Status: 503}},
		{"a wrong key", refuses(401, nil,
			`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+key+`"}}`),
			handler.Failure{Category: "model_refused", Permanent: true},
			anthropic.Error{Status: 401, Type: "authentication_error", Message: "invalid x-api-key ***"}},
		{"too long", refuses(413, nil, `{"error":{"type":"request_too_large","message":"too long"}}`),
			handler.Failure{Category: "model_refused", Permanent: true},
			anthropic.Error{Status: 413, Type: "request_too_large", Message: "too long"}},
		{"an error without end", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			piece, written := strings.Repeat("endless ", 1<<10), 0
			for n, err := fmt.Fprint(w, piece); err == nil; n, err = fmt.Fprint(w, piece) {
				if written += n; written > 64<<20 {
					t.Error("the whole error is read")
					return
				}
			}
		}, handler.Failure{Category: "model_overloaded"}, anthropic.Error{Status: 500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			err := fails(t, serve(t, anthropic.Config{Options: []option.RequestOption{option.WithMaxRetries(5)}},
				func(w http.ResponseWriter, r *http.Request) {
					calls++
					tt.answer(w, r)
				}))
			check(t, err, tt.want)
			if calls != 1 {
				t.Errorf("the service was called %d times, want once: the execution's policy retries", calls)
			}
			var said *anthropic.Error
			if !errors.As(err, &said) {
				t.Fatalf("%v is no *anthropic.Error", err)
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
		{"overloaded", events(started, textBlock(0), text(0, "a"),
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), overloaded},
		{"an outage", events(started,
			`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), overloaded},
		{"an outage of an unknown type", events(`{"type":"error","error":{"type":"a_new_error","message":"x"}}`),
			overloaded},
		{"an outage in words", stream("event: error\ndata: out of memory\n\n"), overloaded},
		{"an outage without its name",
			stream("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"), overloaded},
		{"too many tokens a minute",
			events(started, `{"type":"error","error":{"type":"rate_limit_error","message":"slow `+key+`"}}`),
			handler.Failure{Category: "model_rate_limited"}},
		{"a refused request", events(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`),
			handler.Failure{Category: "model_refused", Permanent: true}},
		{"no end", events(started, textBlock(0), text(0, "a")), overloaded},
		{"no end after the reason", events(started, because("end_turn")), overloaded},
		{"no event", events(), overloaded},
		{"a cut connection", func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprint(w, wired(started, textBlock(0), text(0, "a")))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, overloaded},
		{"a cut event", stream(wired(started) + "event: content_block_start\ndata: {\"type\""), overloaded},
		{"garbage", events("garbage"), malformed},
		{"a number that is too long", events(`{"type":"ping","index":` + strings.Repeat("9", 10000) + `}`), malformed},
		{"a text for a number", events(started, `{"type":"content_block_delta","index":"0"}`), malformed},
		{"a piece before its block", events(started, text(3, "a")), malformed},
		{"a block twice", events(started, textBlock(0), textBlock(0)), malformed},
		{"a nameless call", events(started, toolBlock(0, "toolu_a", "")), malformed},
		{"a call twice", events(started, toolBlock(0, "toolu_a", "x"), toolBlock(1, "toolu_a", "x")), malformed},
		{"no reason", events(started, stopped), malformed},
		{"a line without end", stream("data: " + strings.Repeat("x", 33<<20)), malformed},
		{"too large an answer", stream(strings.Repeat("data: "+strings.Repeat("x", 17<<20)+"\n", 2) + "\n"), malformed},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Welcome</html>")
		}, malformed},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		}, handler.Failure{Category: "model_refused", Permanent: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, fails(t, serve(t, anthropic.Config{}, tt.answer)), tt.want)
		})
	}
}

func TestNoConnection(t *testing.T) {
	model, err := anthropic.New(anthropic.Config{Model: "m", APIKey: key, BaseURL: "http://127.0.0.1:1?key=" + key,
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
			fmt.Fprint(w, wired(started, textBlock(0), text(0, "a"))+"event: content_bl")
			w.(http.Flusher).Flush()
			end()
		},
	}
	for name, answer := range within {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			model := serve(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
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
		model := serve(t, anthropic.Config{},
			events(started, textBlock(0), text(0, "a"), text(0, "b"), end(0), because("end_turn"), stopped))
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
		model := serve(t, anthropic.Config{Options: []option.RequestOption{option.WithRequestTimeout(time.Nanosecond)}},
			events(stopped))
		err := fails(t, model)
		check(t, err, handler.Failure{Category: "model_overloaded"})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is the end of a context", err)
		}
	})
}

func TestDeltasComeAtOnceAndTheirErrorIsReturned(t *testing.T) {
	next := make(chan struct{})
	model := serve(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		fmt.Fprint(w, wired(started, textBlock(0)))
		for _, word := range []string{"one", "two", "three"} {
			fmt.Fprint(w, wired(text(0, word)))
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
