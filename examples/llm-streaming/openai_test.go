package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
)

func TestReadEvents(t *testing.T) {
	body := ": comment\r\n\r\ndata: one\r\n\r\nevent: x\ndata:two\ndata:  lines\n\nid: 4\n\ndata: last"
	var got []string
	if err := readEvents(strings.NewReader(body), func(data []byte) error {
		got = append(got, string(data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two\n lines", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := readEvents(strings.NewReader("data: "+strings.Repeat("x", maxEvent+1)), func([]byte) error {
		return nil
	}); err == nil {
		t.Error("an event without end was read")
	}
}

func delta(text string) string {
	encoded, _ := json.Marshal(text)
	return fmt.Sprintf(`data: {"choices":[{"delta":{"content":%s},"finish_reason":null}]}`+"\n\n", encoded)
}

// serveChat is an API that answers every request with fn.
func serveChat(t *testing.T, fn http.HandlerFunc) *OpenAI {
	t.Helper()
	server := httptest.NewServer(fn)
	t.Cleanup(server.Close)
	return NewOpenAI(server.URL+"/v1/", "secret", "tiny")
}

func TestOpenAIStreams(t *testing.T) {
	model := serveChat(t, func(w http.ResponseWriter, r *http.Request) {
		var in chatRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s with %v", r.Method, r.URL.Path, r.Header)
		}
		if in.Model != "tiny" || !in.Stream || in.MaxTokens != 9 || len(in.Messages) != 1 ||
			in.Messages[0] != (chatMessage{"user", "hi"}) {
			t.Errorf("request %+v", in)
		}
		fmt.Fprint(w, ": keep-alive\n\n", delta(""), delta("Hello,"), delta(" \"wörld\"\n"),
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
	})
	var tokens []string
	part, err := model.Stream(t.Context(), Prompt{Text: "hi", MaxTokens: 9}, "", func(token string) error {
		tokens = append(tokens, token)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Hello,", " \"wörld\"\n"}; !slices.Equal(tokens, want) || part.Text != strings.Join(want, "") ||
		part.Tokens != 2 || !part.Done {
		t.Errorf("tokens %q, part %+v", tokens, part)
	}
}

func TestOpenAIErrors(t *testing.T) {
	status := func(code int, header string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			http.Error(w, "because", code)
		}
	}
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	for name, c := range map[string]struct {
		api       http.HandlerFunc
		permanent bool
		after     time.Duration
		is        error
	}{
		"refused":      {api: status(400, ""), permanent: true},
		"bad key":      {api: status(401, ""), permanent: true},
		"too many":     {api: status(429, "7"), after: 7 * time.Second},
		"too many, no": {api: status(429, "soon"), after: 2 * time.Second},
		"timeout":      {api: status(408, "")},
		"down":         {api: status(503, "")},
		"cut":          {api: stream(delta("Hel")), is: io.ErrUnexpectedEOF},
		"garbage":      {api: stream("data: {\n\n")},
		"late error":   {api: stream(delta("Hel") + `data: {"error":{"message":"overloaded"}}` + "\n\n")},
		"broken": {api: func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serveChat(t, c.api).Stream(t.Context(), Prompt{Text: "hi"}, "", func(string) error { return nil })
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Fatalf("error %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v", err, c.is)
			}
			out := handler.Classify(t.Context(), nil, err)
			var after time.Duration
			if out.Failure.RetryAfter != nil {
				after = *out.Failure.RetryAfter
			}
			if out.Kind != "fail" || out.Failure.Permanent != c.permanent || after != c.after {
				t.Errorf("outcome %+v after %s, want permanent %t, after %s", out, after, c.permanent, c.after)
			}
		})
	}
}

func TestOpenAICancel(t *testing.T) {
	model := serveChat(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, delta("Hel"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := model.Stream(ctx, Prompt{Text: "hi"}, "", func(string) error {
		cancel(enough)
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 2 * time.Second, "0": 0, "3": 3 * time.Second, "-1": 2 * time.Second, "9999": 5 * time.Minute,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// Whatever a service streams is an answer of as many tokens as were emitted, or an error.
func FuzzChat(f *testing.F) {
	for _, seed := range []string{"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
		"data: {\"error\":{\"message\":\"no\"}}\n\n", "data:\r\n\r\n", ": x\ndata: [DONE]", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var text strings.Builder
		emitted := 0
		p, err := readChat(strings.NewReader(body), func(s string) error { emitted++; text.WriteString(s); return nil })
		if err == nil && (p.Text != text.String() || p.Tokens != emitted) {
			t.Errorf("%q: %+v of %d tokens %q", body, p, emitted, text.String())
		}
	})
}
