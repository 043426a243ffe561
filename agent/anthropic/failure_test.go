package anthropic_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			err := modeltest.Fails(t, serve(t,
				anthropic.Config{Options: []option.RequestOption{option.WithMaxRetries(5)}},
				func(w http.ResponseWriter, r *http.Request) {
					calls++
					tt.answer(w, r)
				}))
			modeltest.Check(t, err, tt.want)
			if calls != 1 {
				t.Errorf("the service was called %d times, want once: the execution's policy retries", calls)
			}
			var said *anthropic.Error
			if !errors.As(err, &said) {
				t.Fatalf("%v is no *anthropic.Error", err)
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
		{"no end after the reason", events(started, because("end_turn")), overloaded},
		{"a number that is too long", events(`{"type":"ping","index":` + strings.Repeat("9", 10000) + `}`), malformed},
		{"a text for a number", events(started, `{"type":"content_block_delta","index":"0"}`), malformed},
		{"a piece before its block", events(started, text(3, "a")), malformed},
		{"a block twice", events(started, textBlock(0), textBlock(0)), malformed},
		{"a nameless call", events(started, toolBlock(0, "toolu_a", "")), malformed},
		{"a call twice", events(started, toolBlock(0, "toolu_a", "x"), toolBlock(1, "toolu_a", "x")), malformed},
		{"no reason", events(started, stopped), malformed},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		}, handler.Failure{Category: "model_refused", Permanent: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			modeltest.Check(t, modeltest.Fails(t, serve(t, anthropic.Config{}, tt.answer)), tt.want)
		})
	}
}
