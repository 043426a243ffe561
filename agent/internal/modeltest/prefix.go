package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// said keeps what a run has sent, and answers with a call of a tool twice, then with a text.
type said struct {
	f  Format
	mu sync.Mutex
	// what each request had: its messages, and all else
	messages [][]json.RawMessage
	rest     []map[string]json.RawMessage
}

// RoundTrip keeps a request and answers it.
func (s *said) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	mark := []byte(`"cache_control":{"type":"ephemeral"}`) // of one format; it moves
	body = bytes.ReplaceAll(bytes.ReplaceAll(body, append([]byte(","), mark...), nil), append(mark, ','), nil)
	rest, messages := map[string]json.RawMessage{}, []json.RawMessage(nil)
	if err := json.Unmarshal(body, &rest); err != nil {
		return nil, err
	}
	for _, field := range []string{"messages", "input", "contents"} {
		if list, ok := rest[field]; ok {
			if err := json.Unmarshal(list, &messages); err != nil {
				return nil, err
			}
			delete(rest, field)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages, s.rest = append(s.messages, messages), append(s.rest, rest)
	answer := Answer{Pieces: text("done"), Stop: agent.StopEnd}
	if turn := bytes.Count(body, []byte("found the tide")); turn < 2 {
		answer = Answer{Pieces: []Piece{{Text: "I look."}, call(0, fmt.Sprint("call-", turn), "search", `{"n":1}`)},
			Stop: agent.StopTools}
	}
	w := httptest.NewRecorder()
	begin(w)
	s.f.Write(w, answer)
	return w.Result(), nil
}

// begins reports that a request begins with the bytes of the one before, or the other way round if it is a repetition,
// and that all else is equal.
func (s *said) begins(t *testing.T) {
	t.Helper()
	for n := 1; n < len(s.messages); n++ {
		before, now := s.messages[n-1], s.messages[n]
		size := min(len(before), len(now))
		if !slices.EqualFunc(before[:size], now[:size], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", n+1, before[:size], now[:size])
		}
		if !maps.EqualFunc(s.rest[0], s.rest[n], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("request %d has\n%s\nthe first one\n%s", n+1, s.rest[n], s.rest[0])
		}
	}
}

var looked = handler.Define[string, string]("looked")

// prefix: wherever the worker dies, the requests of a run begin with the same bytes.
func (f Format) prefix(t *testing.T) {
	search := agent.NewTool("search", "looks things up", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		return "found the tide", nil
	})
	var s *said
	crashes := fftest.Crashes(t, looked,
		func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			s = &said{f: f}
			model := f.New(t, "http://service.test", &http.Client{Transport: s})
			return func(ctx context.Context, task *handler.Task, prompt string) (string, error) {
				r, err := agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{search}, Prompt: prompt,
					System: "Be brief."})
				return r.Text, err
			}
		}, "hello", func(r *fftest.Report[string]) {
			if len(s.messages) < 3 || r.Result != "done" {
				t.Errorf("%s: %d requests, %q, %v", r.Crash, len(s.messages), r.Result, r.Err)
			}
			s.begins(t)
		})
	if crashes < 10 {
		t.Errorf("%d crashes", crashes)
	}
}
