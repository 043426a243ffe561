package openai_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"

	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			err := modeltest.Fails(t, serve(t, openai.Config{Options: []option.RequestOption{option.WithMaxRetries(5)}},
				func(w http.ResponseWriter, r *http.Request) {
					calls++
					tt.answer(w, r)
				}))
			modeltest.Check(t, err, tt.want)
			if calls != 1 {
				t.Errorf("the service was called %d times, want once: the execution's policy retries", calls)
			}
			var said *openai.Error
			if !errors.As(err, &said) {
				t.Fatalf("%v is no *openai.Error", err)
			}
			if *said != tt.is {
				t.Errorf("the error is %+v, want %+v", *said, tt.is)
			}
		})
	}
}

func TestFailuresWithinTheStream(t *testing.T) {
	overloaded := handler.Failure{Category: "model_overloaded"}
	malformed := handler.Failure{Category: "model_protocol"}
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
		{"no end, but its mark", events(text("a"), done), overloaded},
		{"a cut connection after the reason", func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprintf(w, "data: %s\n\n", chunk(`{"content":"a"}`, "stop"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, overloaded},
		{"a number for a list", events(`{"choices":1}`), malformed},
		{"a number that is too long", events(`{"choices":[{"index":` + strings.Repeat("9", 10000) + `}]}`), malformed},
		{"a number for a text", events(`{"choices":[{"delta":{"content":1}}]}`), malformed},
		{"a nameless call", events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`,
			"tool_calls"), done), malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			modeltest.Check(t, modeltest.Fails(t, serve(t, openai.Config{}, tt.answer)), tt.want)
		})
	}
}
