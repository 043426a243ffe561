package chat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// stage is a server, a store and workers, for tests of requests.
type stage struct {
	*testing.T
	store  *embedded.Server
	client *client.Client
	chat   *Handler
	url    string
	cfg    Config
	fire   func() // ends the first worker
}

// stageOf makes a stage with one worker, whose agent has this configuration.
func stageOf(t *testing.T, a agent.Config, change func(*Config)) *stage {
	t.Helper()
	s := &stage{T: t}
	var err error
	if s.store, err = embedded.Start(t.Context(), embedded.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	s.client, err = client.Connect(t.Context(), client.Config{URL: s.store.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.cfg = Config{Logger: slog.New(slog.DiscardHandler), Who: func(q *http.Request) (string, error) {
		if name := q.Header.Get("Who"); name != "" {
			return name, nil
		}
		return "", errors.New("nobody")
	}}
	if change != nil {
		change(&s.cfg)
	}
	s.chat, s.url = s.open()
	s.fire = s.work(a)
	return s
}

// open makes a handler and a web server.
func (s *stage) open() (*Handler, string) {
	s.Helper()
	h, err := New(s.client, kindTalk, s.cfg)
	if err != nil {
		s.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
	mux.Handle("/api/chat", http.StripPrefix("/api/chat", h))
	server := httptest.NewServer(mux)
	s.Cleanup(func() {
		h.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return h, server.URL + "/api/chat"
}

// work runs a worker until the returned function is called, or until the test has ended.
func (s *stage) work(a agent.Config, opts ...func(*runtime.Config)) (stop func()) {
	s.Helper()
	return s.workAs(talking(a), opts...)
}

// workAs is work with a handler.
func (s *stage) workAs(fn func(context.Context, *handler.Task, Conversation) (agent.Result, error),
	opts ...func(*runtime.Config)) (stop func()) {
	s.Helper()
	cfg := runtime.Config{URL: s.store.URL(), Logger: slog.New(slog.DiscardHandler), TokenKeys: "k:" +
		strings.Repeat("ab", 32)}
	for _, o := range opts {
		o(&cfg)
	}
	w, err := runtime.New(cfg, handler.Bind(kindTalk, fn))
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working conc.WaitGroup
	working.Go(func() { _ = w.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	s.Cleanup(stop)
	return stop
}

// answer is what a request was answered with.
type reply struct {
	status int
	header http.Header
	body   string
	code   string // of a problem
}

func (s *stage) ask(who, method, path string, body any) reply {
	s.Helper()
	res, err := s.request(s.Context(), who, method, path, body)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	out := reply{status: res.StatusCode, header: res.Header, body: string(data)}
	if res.Header.Get("Content-Type") == "application/problem+json" {
		var p problem
		if err := json.Unmarshal(data, &p); err != nil {
			s.Fatal(err)
		}
		out.code = p.Code
	}
	return out
}

func (s *stage) request(ctx context.Context, who, method, path string, body any) (*http.Response, error) {
	var data io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		data = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, s.url+path, data)
	if err != nil {
		return nil, err
	}
	if data != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	q.Header.Set("Who", who)
	return http.DefaultClient.Do(q)
}

// piece is a chunk of a stream of the AI SDK, as far as tests look at it.
type piece struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	MessageID  string          `json:"messageId"`
	Delta      string          `json:"delta"`
	ErrorText  string          `json:"errorText"`
	ApprovalID string          `json:"approvalId"`
	ToolCallID string          `json:"toolCallId"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	at         string
}

// following is a stream that is read.
type following struct {
	s    *stage
	body io.ReadCloser
	read *bufio.Reader
	end  context.CancelFunc
}

// follow makes a request that is answered with a stream.
func (s *stage) follow(who, method, path string, body any) *following {
	s.Helper()
	ctx, end := testwait.Context(s, context.WithoutCancel(s.Context()))
	res, err := s.request(ctx, who, method, path, body)
	if err != nil {
		end()
		s.Fatal(err)
	}
	f := &following{s: s, body: res.Body, read: bufio.NewReader(res.Body), end: end}
	s.Cleanup(f.close)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		s.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	return f
}

func (f *following) close() {
	f.end()
	_ = f.body.Close()
}

// line is the data of the next event; "" at the end.
func (f *following) line() (data, at string) {
	f.s.Helper()
	for {
		line, err := f.read.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		switch {
		case errors.Is(err, io.EOF):
			return "", ""
		case err != nil:
			f.s.Fatal(err)
		case strings.HasPrefix(line, "id: "):
			at = line[len("id: "):]
		case strings.HasPrefix(line, "data: "):
			return line[len("data: "):], at
		}
	}
}

// next is the next chunk; ok is false at the end.
func (f *following) next() (p piece, ok bool) {
	f.s.Helper()
	data, at := f.line()
	if data == "" || data == "[DONE]" {
		return p, false
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		f.s.Fatalf("%v: %s", err, data)
	}
	p.at = at
	return p, true
}

// until reads to a chunk of a type.
func (f *following) until(typ string) piece {
	f.s.Helper()
	for {
		p, ok := f.next()
		if !ok {
			f.s.Fatalf("the stream ended without a chunk of type %s", typ)
		}
		if p.Type == typ {
			return p
		}
	}
}

// rest reads to the end, and is what was said, and the types of the chunks, the same ones that follow each other once.
func (f *following) rest() (text string, types []string) {
	f.s.Helper()
	for {
		p, ok := f.next()
		if !ok {
			return text, types
		}
		text += p.Delta
		if len(types) == 0 || types[len(types)-1] != p.Type {
			types = append(types, p.Type)
		}
	}
}

// say is the body of a POST that sends a text.
func say(chat, id, text string) map[string]any {
	return map[string]any{"id": chat, "messages": []any{userMessage(id, text)}, "trigger": "submit-message"}
}

func userMessage(id, text string) map[string]any {
	return map[string]any{"id": id, "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}}
}

func assistantMessage(id, text string) map[string]any {
	m := userMessage(id, text)
	m["role"] = "assistant"
	return m
}

// tell sends a text, and is what the assistant answers.
func (s *stage) tell(who, chat, id, text string) string {
	s.Helper()
	got, types := s.follow(who, http.MethodPost, "", say(chat, id, text)).rest()
	if len(types) == 0 || types[len(types)-1] != "finish" {
		s.Fatalf("%s: %q, %q", id, got, types)
	}
	return got
}

// tabs sends messages, each from a tab of its own and all at once. Each text is its id; look gets what its tab is told.
func (s *stage) tabs(look func(id, text string, types []string), ids ...string) {
	s.Helper()
	var tabs conc.WaitGroup
	for _, id := range ids {
		tabs.Go(func() {
			text, types := s.follow("ann", http.MethodPost, "", say("c", id, id)).rest()
			look(id, text, types)
		})
	}
	tabs.Wait()
}

// midWord sends the first message of a conversation, and returns when the first half of its answer is told.
func (s *stage) midWord(g *gated, text string) *following {
	s.Helper()
	f := s.follow("ann", http.MethodPost, "", say("c", "u1", text))
	<-g.began
	g.words <- "half "
	f.until("text-delta")
	return f
}

// id is the execution of a conversation.
func (s *stage) id(who, chat string) flowfabric.ExecutionID {
	s.Helper()
	x, err := client.AttachKey(s.Context(), s.client, kindTalk, keyOf(who, chat))
	if err != nil {
		s.Fatal(err)
	}
	return x.ID()
}

// recorded is what the agent of a conversation has recorded in its current link.
func (s *stage) recorded(who, chat string) []string {
	s.Helper()
	r, err := agent.ReadTranscript(s.Context(), s.client, s.id(who, chat), agent.TranscriptOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return lines(r.Messages)
}

// records checks what is recorded.
func (s *stage) records(who, chat string, want ...string) {
	s.Helper()
	if got := s.recorded(who, chat); !slices.Equal(got, want) {
		s.Errorf("recorded: %q, want %q", got, want)
	}
}

// now is a conversation as it stands.
func (s *stage) now(who, chat string) snapshot {
	s.Helper()
	room, err := s.chat.rooms.enter(s.Context(), s.id(who, chat))
	if err != nil {
		s.Fatal(err)
	}
	defer room.leave()
	return room.snapshot()
}

// waiting counts the messages that the agent of a conversation has not got yet.
func (s *stage) waiting(who, chat string) int {
	s.Helper()
	m, err := s.client.Execution(s.id(who, chat)).Messages(s.Context(), 0)
	if err != nil {
		s.Fatal(err)
	}
	return m.Waiting
}

// users counts the messages of the user in a conversation.
func (s *stage) users(who, chat string) (n int) {
	s.Helper()
	for _, m := range s.now(who, chat).messages {
		if m.role == agent.User {
			n++
		}
	}
	return n
}

// wait waits until a conversation is as it should be.
func (s *stage) wait(who, chat string, good func(snapshot) bool) {
	s.Helper()
	ctx, stop := testwait.Context(s, s.Context())
	defer stop()
	for {
		now := s.now(who, chat)
		if good(now) {
			return
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			s.Fatalf("it is %s, with %d messages", now.doing, len(now.messages))
		}
	}
}

func (s *stage) idle(who, chat string) {
	s.Helper()
	s.wait(who, chat, func(now snapshot) bool { return now.doing == doingIdle })
}

func (s *stage) asking(who, chat string) {
	s.Helper()
	s.wait(who, chat, func(now snapshot) bool { return now.doing == doingAsk })
}

func (s *stage) ended(who, chat string, as flowfabric.PublicState) {
	s.Helper()
	s.wait(who, chat, func(now snapshot) bool { return now.doing == doingEnded && now.state == as })
}

// gated is a model that says its words when it is let: each word takes one token of its gate.
type gated struct {
	words chan string // what it says next; closed or "": it ends
	began chan string // what the user said last, when an answer begins
}

func newGated() *gated { return &gated{make(chan string), make(chan string, 16)} }

func (g *gated) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	g.began <- req.Messages[len(req.Messages)-1].Text()
	var text strings.Builder
	for {
		select {
		case word := <-g.words:
			if word == "" {
				return agent.Response{Message: agent.Message{Parts: agent.Text(text.String())}, Stop: agent.StopEnd,
					Usage: agent.Usage{Input: 7, Output: 3}}, nil
			}
			text.WriteString(word)
			if err := delta(agent.Delta{Text: word}); err != nil {
				return agent.Response{}, err
			}
		case <-ctx.Done():
			return agent.Response{}, context.Cause(ctx)
		}
	}
}
