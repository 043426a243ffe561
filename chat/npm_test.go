package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The clients of front ends, as their packages are, against handlers and a worker process: see testdata/npm.
func TestFrontEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	dir, node := testnode.Installed(t, "testdata/npm")
	b := newBooth(t)
	for _, suite := range []string{"agui", "aisdk"} {
		t.Run(suite, func(t *testing.T) {
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			cmd := node.Command(ctx, dir, node.Program, "--test", suite+".test.mjs")
			cmd.Env = append(cmd.Env, "CHAT_URL="+b.server.URL)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		})
	}
}

// booth is the environment of the Node suites: a store, two handlers as if in two processes, and a worker process whose
// model does what the user says.
type booth struct {
	t       testing.TB
	store   string
	blobs   string
	client  *client.Client
	handler [2]*Handler
	server  *httptest.Server

	mu      sync.Mutex
	changed chan struct{}
	allowed map[string]int // words that a model may say, by conversation
	asked   map[string]int // words that one wanted to say
	worker  *exec.Cmd
}

const (
	envStore   = "CHAT_TEST_STORE"
	envBooth   = "CHAT_TEST_BOOTH"
	envBlobs   = "CHAT_TEST_BLOBS"
	boothLease = 2 * time.Second
)

var kindBooth = handler.Define[Conversation, agent.Result]("booth",
	handler.Retry(2, time.Millisecond, 10*time.Millisecond))

func newBooth(t *testing.T) *booth {
	t.Helper()
	t.Setenv(suspend.EnvTokenKeys, "A:"+strings.Repeat("a1", 32))
	b := &booth{t: t, store: testserver.Embedded(t), blobs: t.TempDir(), changed: make(chan struct{}),
		allowed: map[string]int{}, asked: map[string]int{}}
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(t.Context(), client.Config{URL: b.store, Logger: quiet})
	must.No(t, err)
	b.client = c
	mux := http.NewServeMux()
	for i, prefix := range []string{"/api/chat", "/other"} {
		h, err := New(c, kindBooth, Config{Blobs: blob.Folder(b.blobs), Logger: quiet,
			Who: func(q *http.Request) (string, error) {
				if owner := q.Header.Get("X-Owner"); owner != "nobody" {
					return "owner" + owner, nil
				}
				return "", io.EOF
			},
			EditHistory: prefix == "/other"})
		must.No(t, err)
		b.handler[i] = h
		mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
		mux.Handle(prefix, http.StripPrefix(prefix, h))
	}
	mux.HandleFunc("/test/go", b.mayGo)
	mux.HandleFunc("/test/allow", b.allow)
	mux.HandleFunc("/test/wanted", b.wanted)
	mux.HandleFunc("/test/kill", b.kill)
	mux.HandleFunc("/test/transcript", b.transcript)
	b.server = httptest.NewServer(mux)
	b.mu.Lock()
	b.launch()
	b.mu.Unlock()
	t.Cleanup(func() {
		b.mu.Lock()
		b.end()
		b.mu.Unlock()
		b.server.CloseClientConnections()
		for _, h := range b.handler {
			h.Close()
		}
		b.server.Close()
		c.Close()
	})
	return b
}

func (b *booth) launch() {
	self, err := os.Executable()
	must.No(b.t, err)
	cmd := exec.Command(self, "-test.run=^TestBoothWorker$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), envStore+"="+b.store, envBooth+"="+b.server.URL, envBlobs+"="+b.blobs)
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe() // it ends with this process, however that ends
	must.No(b.t, err)
	must.No(b.t, cmd.Start())
	b.worker = cmd
}

func (b *booth) end() {
	_ = b.worker.Process.Kill()
	_ = b.worker.Wait()
}

// kill is SIGKILL for the worker, and another one.
func (b *booth) kill(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	b.launch()
	w.WriteHeader(http.StatusNoContent)
}

// until holds a request until something is so, and says if it is.
func (b *booth) until(q *http.Request, holds func() bool) bool {
	for {
		b.mu.Lock()
		done, changed := holds(), b.changed
		b.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-q.Context().Done():
			return false
		}
	}
}

func (b *booth) change(does func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	does()
	close(b.changed)
	b.changed = make(chan struct{})
}

func numbered(q *http.Request) (id string, n int) {
	n, _ = strconv.Atoi(q.URL.Query().Get("n"))
	return q.URL.Query().Get("id"), n
}

// mayGo is asked by a model before each word that it says slowly.
func (b *booth) mayGo(_ http.ResponseWriter, q *http.Request) {
	id, n := numbered(q)
	b.change(func() { b.asked[id] = n })
	b.until(q, func() bool { return b.allowed[id] >= n })
}

// allow lets a model say so many words in all.
func (b *booth) allow(_ http.ResponseWriter, q *http.Request) {
	id, n := numbered(q)
	b.change(func() { b.allowed[id] = n })
}

// wanted waits until a model wants to say its n-th word.
func (b *booth) wanted(_ http.ResponseWriter, q *http.Request) {
	id, n := numbered(q)
	b.until(q, func() bool { return b.asked[id] == n })
}

// transcript is what is recorded of a conversation.
func (b *booth) transcript(w http.ResponseWriter, q *http.Request) {
	x, err := client.AttachKey(q.Context(), b.client, kindBooth, keyOf("owner"+q.URL.Query().Get("owner"),
		q.URL.Query().Get("id")))
	if err == nil {
		var r agent.Result
		if r, err = agent.ReadTranscript(q.Context(), b.client, x.ID(), agent.TranscriptOptions{}); err == nil {
			err = json.NewEncoder(w).Encode(r)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// TestBoothWorker is the worker process of a booth, and nothing otherwise.
func TestBoothWorker(t *testing.T) {
	if os.Getenv(envStore) == "" {
		return
	}
	w, err := runtime.New(runtime.Config{URL: os.Getenv(envStore), LeaseTTL: boothLease,
		Logger: slog.New(slog.DiscardHandler)}, handler.Bind(kindBooth, boothTalk))
	must.No(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var parent conc.WaitGroup
	parent.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	})
	defer parent.Wait()
	if err := w.Run(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

func boothTalk(ctx context.Context, t *handler.Task, in Conversation) (agent.Result, error) {
	return Run(ctx, t, in, agent.Config{Model: puppet{in.ID}, Blobs: blob.Folder(os.Getenv(envBlobs)),
		Tools: []agent.Tool{boothAdd, boothPay, boothNote}, Idle: time.Hour})
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type payment struct {
	Cents int    `json:"cents"`
	To    string `json:"to,omitempty"`
}

var (
	boothAdd = agent.NewTool("add", "adds", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil })
	boothPay = agent.NewTool("pay", "pays", func(_ context.Context, in payment) (string, error) {
		return fmt.Sprint("paid ", in.Cents), nil
	}, agent.Needs(func(in payment) agent.Decision { return agent.Decision{Ask: in.Cents > 1} }))
	// boothNote tells readers what an application may tell: state, sources, data.
	boothNote = agent.NewTool("note", "notes", func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		call, _ := agent.CallFrom(ctx)
		task := call.Task
		for n := range in.N {
			state := map[string]any{"done": n + 1, "of": in.N, "name": strings.Repeat("long ", 20)}
			if err := task.Summary(ctx, state); err != nil {
				return "", err
			}
		}
		for _, f := range []stream.Frame{
			{Type: "source", Encoding: stream.JSON, Payload: []byte(`{"url":"https://example.com/a","title":"A"}`)},
			{Type: "source", Encoding: stream.JSON,
				Payload: []byte(`{"media_type":"application/pdf","title":"B","filename":"b.pdf"}`)},
			{Type: "data-weather", Encoding: stream.JSON, Correlation: "rome", Payload: []byte(`{"city":"Rome"}`)},
			{Type: "data-weather", Encoding: stream.JSON, Correlation: "rome",
				Payload: []byte(`{"city":"Rome","sun":true}`)},
		} {
			if err := task.FrameBytes(ctx, f); err != nil {
				return "", err
			}
		}
		if err := task.Live(ctx, "data-tick", `1`, 30*time.Second); err != nil {
			return "", err
		}
		return "noted", task.Flush(ctx)
	})
)

// puppet is a model that does what the user says.
type puppet struct{ id string }

func (p puppet) Generate(ctx context.Context, q agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	last := q.Messages[len(q.Messages)-1]
	if last.Role == agent.ToolRole {
		var results []string
		for n := len(q.Messages) - 1; n >= 0 && q.Messages[n].Role == agent.ToolRole; n-- {
			results = append([]string{q.Messages[n].Text()}, results...)
		}
		return p.say(ctx, "It says "+strings.Join(results, " and "), delta)
	}
	order, rest, _ := strings.Cut(last.Text(), " ")
	switch words := strings.Fields(rest); order {
	case "slowly":
		return p.slowly(ctx, words, delta)
	case "think":
		for _, word := range []string{"hm ", "let me ", "see"} {
			if err := delta(agent.Delta{Reasoning: word}); err != nil {
				return agent.Response{}, err
			}
		}
		r, err := p.say(ctx, rest, delta)
		r.Message.Parts = append([]agent.Part{{Type: agent.PartReasoning, Text: "hm let me see"}}, r.Message.Parts...)
		return r, err
	case "add", "pay", "note", "both":
		return p.call(order, words, delta)
	case "fail":
		return agent.Response{}, handler.Permanent(fmt.Errorf("the secret is 42"))
	case "draw":
		r, err := p.say(ctx, rest, delta)
		r.Message.Parts = append(r.Message.Parts, agent.Part{Type: agent.PartImage, Media: "image/png",
			Data: []byte(strings.Repeat("\x89PNG", 500)), Name: "a.png"})
		return r, err
	}
	return p.say(ctx, rest, delta)
}

func (p puppet) answer(text string) agent.Response {
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd, Model: "puppet",
		Usage: agent.Usage{Input: 7, Output: 3, Reasoning: 1}}
}

func (p puppet) say(ctx context.Context, text string, delta func(agent.Delta) error) (agent.Response, error) {
	for word := range strings.SplitAfterSeq(text, " ") {
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return p.answer(text), context.Cause(ctx)
}

// slowly asks before each word.
func (p puppet) slowly(ctx context.Context, words []string,
	delta func(agent.Delta) error) (agent.Response, error) {
	for n, word := range words {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv(envBooth)+"/test/go?n="+strconv.Itoa(n+1)+
			"&id="+url.QueryEscape(p.id), nil)
		if err != nil {
			return agent.Response{}, err
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			return agent.Response{}, context.Cause(ctx)
		}
		_ = answer.Body.Close()
		if n < len(words)-1 {
			word += " "
		}
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return p.answer(strings.Join(words, " ")), context.Cause(ctx)
}

// call calls a tool, or two, whose arguments come piece by piece.
func (p puppet) call(order string, words []string, delta func(agent.Delta) error) (agent.Response, error) {
	number := func(i int) int {
		n, _ := strconv.Atoi(words[i])
		return n
	}
	arguments := map[string]any{}
	switch order {
	case "add", "both":
		arguments["a"], arguments["b"] = number(0), number(1)
	case "pay":
		arguments["cents"], arguments["to"] = number(0), "ann"
	case "note":
		arguments["n"] = number(0)
	}
	names := map[string][]string{"both": {"add", "add"}}[order]
	if names == nil {
		names = []string{order}
	}
	r := p.answer("")
	r.Stop = agent.StopTools
	text, err := json.Marshal(arguments)
	if err != nil {
		return r, err
	}
	for _, name := range names {
		id := "call-" + uuid.NewString()[:8]
		pieces := []agent.CallDelta{{ID: id, Name: name}, {ID: id, Arguments: string(text[:3])},
			{ID: id, Arguments: string(text[3:])}}
		for _, piece := range pieces {
			if err := delta(agent.Delta{Call: &piece}); err != nil {
				return r, err
			}
		}
		r.Message.Calls = append(r.Message.Calls, agent.ToolCall{ID: id, Name: name, Arguments: text})
	}
	return r, nil
}
