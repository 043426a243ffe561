package modeltest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Run asks a model of the format all questions.
func Run(t *testing.T, f Format) {
	t.Run("answers", f.answers)
	t.Run("thoughts go back", f.thoughts)
	t.Run("images", f.images)
	t.Run("statuses", f.statuses)
	t.Run("failures within the answer", f.breaks)
	t.Run("no connection", f.noConnection)
	t.Run("the end of the context", f.contextEnds)
	t.Run("deltas", f.deltas)
	t.Run("requests that no service takes", f.refused)
	t.Run("beginnings", f.prefix)
}

func text(pieces ...string) (all []Piece) {
	for _, p := range pieces {
		all = append(all, Piece{Text: p})
	}
	return all
}

func call(index int, id, name, arguments string) Piece {
	return Piece{Call: &Call{index, id, name, arguments}}
}

func (f Format) answers(t *testing.T) {
	usage := agent.Usage{Input: 132, Output: 15, CacheRead: 100, Reasoning: 6}
	if f.CacheWrites {
		usage.CacheWrite = 3
	}
	said := func(parts []agent.Part, calls ...agent.ToolCall) agent.Message {
		return agent.Message{Role: agent.Assistant, Parts: parts, Calls: calls}
	}
	weather := agent.ToolCall{ID: "toolu_a", Name: "weather", Arguments: json.RawMessage(`{"city":"Köln"}`)}
	now := agent.ToolCall{ID: "toolu_b", Name: "now", Arguments: json.RawMessage(`{}`)}
	for _, tt := range []struct {
		name   string
		pieces []Piece
		want   agent.Message
		stop   agent.StopReason
	}{
		{"text", text("Hel", "lo, ", "\"wörld\"\n"), said(agent.Text("Hello, \"wörld\"\n")), agent.StopEnd},
		{"characters that are split", text("w\xc3", "\xb6rld \xf0", "\x9f\x98", "\x80!"),
			said(agent.Text("wörld 😀!")), agent.StopEnd},
		{"a character that is never whole", text("so\xf0\x9f"), said(agent.Text("so\uFFFD")), agent.StopEnd},
		{"nothing", nil, said(nil), agent.StopEnd},
		{"a bound of length", text("So"), said(agent.Text("So")), agent.StopLength},
		{"a refusal", text("I will not."), said(agent.Text("I will not.")), agent.StopRefusal},
		{"a refusal without a word", nil, said(nil), agent.StopRefusal},
		{"a call in pieces", []Piece{call(0, "toolu_a", "weather", ""), call(0, "", "", `{"city":"K`+"\xc3"),
			call(0, "", "", "\xb6"+`ln"}`)}, said(nil, weather), agent.StopTools},
		{"calls at once, after a text", append(text("I look."), call(0, "toolu_a", "weather", ""), call(0, "", "",
			`{"city":`), call(1, "toolu_b", "now", ""), call(1, "", "", `{}`), call(0, "", "", `"Köln"}`)),
			said(agent.Text("I look."), weather, now), agent.StopTools},
		{"a call without arguments", []Piece{call(0, "toolu_b", "now", "")}, said(nil, now), agent.StopTools},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model, _ := f.says(t, Answer{Pieces: tt.pieces, Stop: tt.stop, Usage: usage})
			var heard strings.Builder
			var calls []agent.Delta
			got, err := model.Generate(t.Context(), Question, func(d agent.Delta) error {
				if !utf8.ValidString(d.Text) || d.Call == nil && (d.Text == "") == (d.Reasoning == "") ||
					d.Call != nil && d.Text+d.Reasoning != "" {
					t.Errorf("the delta is %+v", d)
				}
				heard.WriteString(d.Text)
				if d.Call != nil {
					calls = append(calls, d)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := agent.Response{Message: tt.want, Stop: tt.stop, Usage: usage, Model: Model, ID: ID}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the answer is\n%+v, want\n%+v", got, want)
			}
			if heard.String() != tt.want.Text() {
				t.Errorf("the deltas say %q, and the message %q", heard.String(), tt.want.Text())
			}
			CheckCalls(t, calls, got.Message.Calls)
		})
	}
}

// thoughts are told, recorded, and sent back with their signature.
func (f Format) thoughts(t *testing.T) {
	model, bodies := f.says(t, Answer{Pieces: []Piece{{Reasoning: "Hm, "}, {Reasoning: "rain?"},
		call(0, "toolu_a", "weather", `{}`)}, Stop: agent.StopTools},
		Answer{Pieces: text("Rain."), Stop: agent.StopEnd})
	var heard string
	first, err := model.Generate(t.Context(), Question, func(d agent.Delta) error {
		heard += d.Reasoning
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []agent.Part{{Type: agent.PartReasoning, Text: "Hm, rain?"}}; heard != "Hm, rain?" ||
		!reflect.DeepEqual(first.Message.Parts, want) {
		t.Errorf("the thought is %q and %+v", heard, first.Message.Parts)
	}
	recorded, err := json.Marshal(first.Message) // as a transcript keeps it
	if err != nil {
		t.Fatal(err)
	}
	var back agent.Message
	if err := json.Unmarshal(recorded, &back); err != nil {
		t.Fatal(err)
	}
	next := agent.Request{Messages: append(Question.Messages[:1:1], back,
		agent.Message{Role: agent.ToolRole, Call: back.Calls[0].ID, Tool: "weather", Parts: agent.Text("rain")})}
	if _, err := model.Generate(t.Context(), next, ignore); err != nil {
		t.Fatal(err)
	}
	sent, returned := bodies(), cmp.Or(f.Returned, Signature)
	if strings.Contains(string(sent[0]), returned) || !strings.Contains(string(sent[1]), returned) {
		t.Errorf("the thought does not go back: %s", sent[1])
	}
}

func ignore(agent.Delta) error { return nil }

// images of the user and of tools reach the service.
func (f Format) images(t *testing.T) {
	model, bodies := f.says(t, Answer{Pieces: text("Nice."), Stop: agent.StopEnd})
	shown, drawn := []byte("shown by the user"), []byte("drawn by the tool")
	image := func(data []byte) []agent.Part {
		return []agent.Part{{Type: agent.PartImage, Media: "image/png", Data: data}}
	}
	request := agent.Request{Messages: []agent.Message{
		{Role: agent.User, Parts: image(shown)},
		{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "toolu_a", Name: "draw"}}},
		{Role: agent.ToolRole, Call: "toolu_a", Tool: "draw", Parts: image(drawn)},
	}}
	if _, err := model.Generate(t.Context(), request, ignore); err != nil {
		t.Fatal(err)
	}
	body := bodies()[0]
	for _, data := range [][]byte{shown, drawn} {
		if !strings.Contains(string(body), base64.StdEncoding.EncodeToString(data)) {
			t.Errorf("the image that was %s is not in %s", data, body)
		}
	}
}

func (f Format) statuses(t *testing.T) {
	pause := func(d time.Duration) *time.Duration { return &d }
	refused := handler.Failure{Category: "model_refused", Permanent: true}
	for _, tt := range []struct {
		status int
		header http.Header
		want   handler.Failure
	}{
		{429, http.Header{"Retry-After": {"7"}},
			handler.Failure{Category: "model_rate_limited", RetryAfter: pause(7 * time.Second)}},
		{503, nil, handler.Failure{Category: "model_overloaded"}},
		{529, http.Header{"Retry-After": {"2"}},
			handler.Failure{Category: "model_overloaded", RetryAfter: pause(2 * time.Second)}},
		{408, nil, handler.Failure{Category: "model_overloaded"}},
		{400, nil, refused}, {401, nil, refused}, {404, nil, refused},
	} {
		t.Run(http.StatusText(tt.status), func(t *testing.T) {
			calls := 0
			err := Fails(t, f.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Content-Type", "application/json")
				for name, values := range tt.header {
					w.Header()[name] = values
				}
				w.WriteHeader(tt.status)
				fmt.Fprintf(w, `{"error":{"message":"not with %s","type":"a_type","code":%d,"status":"A_STATUS"}}`, Key,
					tt.status)
			}))
			Check(t, err, tt.want)
			if calls != 1 || !strings.Contains(err.Error(), "not with ***") {
				t.Errorf("%v after %d calls, want one: the execution's policy retries", err, calls)
			}
		})
	}
	t.Run("an error without end", func(t *testing.T) {
		err := Fails(t, f.serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			piece, written := strings.Repeat("endless ", 1<<10), 0
			for n, err := fmt.Fprint(w, piece); err == nil; n, err = fmt.Fprint(w, piece) {
				if written += n; written > 64<<20 {
					t.Error("the whole error is read")
					return
				}
			}
		}))
		Check(t, err, handler.Failure{Category: "model_overloaded"})
	})
}

// Check compares what a worker makes of an error, which must be short and must not show [Key].
func Check(t *testing.T, err error, want handler.Failure) {
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
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), Key) {
		t.Errorf("the error shows the key: %v", err)
	}
}

func (f Format) breaks(t *testing.T) {
	overloaded, malformed := handler.Failure{Category: "model_overloaded"}, handler.Failure{Category: "model_protocol"}
	begun := Answer{Pieces: text("a")}
	raw := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { begin(w); fmt.Fprint(w, s) }
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   handler.Failure
	}{
		{"an overload", func(w http.ResponseWriter, _ *http.Request) {
			begin(w)
			f.Write(w, Answer{Pieces: text("a"), Overloaded: true})
		}, overloaded},
		{"no end", func(w http.ResponseWriter, _ *http.Request) { begin(w); f.Write(w, begun) }, overloaded},
		{"no event", raw(""), overloaded},
		{"a cut connection", func(w http.ResponseWriter, _ *http.Request) {
			begin(w)
			f.Write(w, begun)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, overloaded},
		{"a cut event", func(w http.ResponseWriter, _ *http.Request) {
			begin(w)
			f.Write(w, begun)
			fmt.Fprint(w, "data: {\"typ")
		}, overloaded},
		{"garbage", raw("data: garbage\n\n"), malformed},
		{"a line without end", raw("data: " + strings.Repeat("x", 33<<20)), malformed},
		{"too large an answer", raw(strings.Repeat("data: "+strings.Repeat("x", 17<<20)+"\n", 2) + "\n"), malformed},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Welcome</html>")
		}, malformed},
	} {
		t.Run(tt.name, func(t *testing.T) { Check(t, Fails(t, f.serve(t, tt.answer)), tt.want) })
	}
}

func (f Format) noConnection(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	err := Fails(t, f.New(t, "http://127.0.0.1:1/v1?key="+Key, client))
	Check(t, err, handler.Failure{Category: "model_overloaded"})
}

func (f Format) contextEnds(t *testing.T) {
	cause := errors.New("the budget is spent")
	for name, answer := range map[string]func(w http.ResponseWriter, end func()){
		"before the answer": func(_ http.ResponseWriter, end func()) { end() },
		"within an event": func(w http.ResponseWriter, end func()) {
			f.Write(w, Answer{Pieces: text("a")})
			fmt.Fprint(w, "data: {\"typ")
			w.(http.Flusher).Flush()
			end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			model := f.serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				answer(w, func() { cancel(cause) })
				<-r.Context().Done() // the client hangs up
			})
			if _, err := model.Generate(ctx, Question, ignore); err != cause {
				t.Errorf("the error is %v, want %v", err, cause)
			}
		})
	}
	t.Run("between two deltas", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		heard := 0
		model, _ := f.says(t, Answer{Pieces: text("a", "b"), Stop: agent.StopEnd})
		_, err := model.Generate(ctx, Question, func(agent.Delta) error {
			heard++
			cancel(cause)
			return nil
		})
		if err != cause || heard != 1 {
			t.Errorf("the error is %v after %d deltas, want %v after one", err, heard, cause)
		}
	})
	t.Run("a timeout of the client is not the end of the context", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done() // the client hangs up
		}))
		t.Cleanup(server.Close)
		client := server.Client()
		client.Timeout = 20 * time.Millisecond
		err := Fails(t, f.New(t, server.URL, client))
		Check(t, err, handler.Failure{Category: "model_overloaded"})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is the end of a context", err)
		}
	})
}

// stepped is a service that goes on with its second and third word once the one before is heard.
type stepped struct {
	http.ResponseWriter
	request *http.Request
	next    chan struct{}
}

func (s stepped) Write(event []byte) (int, error) {
	if bytes.Contains(event, []byte("two")) || bytes.Contains(event, []byte("three")) {
		s.ResponseWriter.(http.Flusher).Flush()
		select {
		case <-s.next:
		case <-s.request.Context().Done():
		}
	}
	return s.ResponseWriter.Write(event)
}

// deltas come at once, and their error is returned as it is.
func (f Format) deltas(t *testing.T) {
	next := make(chan struct{})
	model := f.serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begin(w)
		f.Write(stepped{w, r, next}, Answer{Pieces: text("one", "two", "three"), Stop: agent.StopEnd})
	})
	full := errors.New("no more frames")
	var words []string
	_, err := model.Generate(t.Context(), Question, func(d agent.Delta) error {
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

func (f Format) refused(t *testing.T) {
	model := f.serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the service was called") })
	said := func(role agent.Role) agent.Message { return agent.Message{Role: role, Parts: agent.Text("x")} }
	for name, messages := range map[string][]agent.Message{
		"empty": nil, "an unknown role": {said("developer")}, "answered": {said(agent.User), said(agent.Assistant)},
	} {
		_, err := model.Generate(t.Context(), agent.Request{Messages: messages}, ignore)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		Check(t, err, handler.Failure{Category: "model_refused", Permanent: true})
	}
}
