package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// biller is a service that keeps prefixes of prompts as the real one does, and counts what requests cost: a token is
// four bytes, a cached one costs a tenth, one that is written to the cache a quarter more. A prefix is looked for at
// each mark and up to 20 blocks before it, and has at least 1,024 tokens.
type biller struct {
	t     *testing.T
	marks bool // false: as if requests had none
	turns int  // after which the model ends

	mu      sync.Mutex
	kept    map[string]bool
	asked   [][]string // blocks of each request: tools, instructions, messages
	price   float64    // in tokens that are not cached
	input   int
	read    int
	written int
}

// request is what a prompt has, in the order of the service.
type request struct {
	Tools    []json.RawMessage
	System   []json.RawMessage
	Messages []struct {
		Role    string
		Content []json.RawMessage
	}
}

// blocksOf are the blocks of a request without marks, and after which of them there was one.
func (b *biller) blocksOf(body []byte) (blocks []string, marks []int, answers int) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		b.t.Error(err)
	}
	add := func(kind string, block []byte) {
		mark := []byte(`,"cache_control":{"type":"ephemeral"}`)
		bare := bytes.ReplaceAll(block, mark, nil)
		bare = bytes.ReplaceAll(bare, []byte(`"cache_control":{"type":"ephemeral"},`), nil)
		if len(bare) < len(block) {
			marks = append(marks, len(blocks))
		}
		blocks = append(blocks, kind+string(bare))
	}
	for _, tool := range r.Tools {
		add("tool:", tool)
	}
	for _, text := range r.System {
		add("system:", text)
	}
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			answers++
		}
		for _, block := range m.Content {
			add(m.Role+":", block)
		}
	}
	if len(marks) > 4 || bytes.Count(body, []byte("cache_control")) != len(marks) {
		b.t.Errorf("the request has %d marks: %s", len(marks), body)
	}
	return blocks, marks, answers
}

// RoundTrip answers with a call of a tool, or at last with a text.
func (b *biller) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	blocks, marks, answers := b.blocksOf(body)
	b.asked = append(b.asked, blocks)
	b.bill(blocks, marks)
	w := httptest.NewRecorder()
	answer := says("done")
	if answers+1 < b.turns {
		answer = []string{started, textBlock(0), text(0, fmt.Sprint("I look again, for the ", answers+1)), end(0),
			toolBlock(1, fmt.Sprint("toolu_", answers), "search"), input(1, `{"text":"<tides> & moon"}`), end(1),
			because("tool_use"), stopped}
	}
	r.Body = io.NopCloser(bytes.NewReader(nil))
	events(answer...)(w, r)
	return w.Result(), nil
}

func (b *biller) bill(blocks []string, marks []int) {
	if !b.marks {
		marks = nil
	}
	prefixes, sizes, size := make([]string, len(blocks)), make([]int, len(blocks)), 0
	var prefix strings.Builder
	for i, block := range blocks {
		prefix.WriteString(block + "\n")
		size += len(block) / 4
		prefixes[i], sizes[i] = prefix.String(), size
	}
	read, written := 0, 0
	for _, at := range marks {
		for i := at; i >= max(0, at-20); i-- {
			if b.kept[prefixes[i]] {
				read = max(read, sizes[i])
				break
			}
		}
		written = max(written, sizes[at])
	}
	for _, at := range marks {
		if sizes[at] >= 1024 {
			b.kept[prefixes[at]] = true
		}
	}
	if written < 1024 {
		written = 0
	}
	written = max(0, written-read)
	b.price += float64(size-read-written) + 0.1*float64(read) + 1.25*float64(written)
	b.input, b.read, b.written = b.input+size, b.read+read, b.written+written
}

var look = handler.Define[string, string]("look")

// looking is an agent of the service with a tool of much to tell.
func (b *biller) looking() func(context.Context, *handler.Task, string) (string, error) {
	model, err := anthropic.New(anthropic.Config{Model: "test-model", APIKey: key, BaseURL: "http://anthropic.test",
		HTTPClient: &http.Client{Transport: b}})
	if err != nil {
		b.t.Fatal(err)
	}
	search := agent.NewTool("search", "looks things up", func(ctx context.Context, in struct {
		Text string `json:"text"`
		Deep bool   `json:"deep,omitempty"`
	}) (string, error) {
		call, _ := agent.CallFrom(ctx)
		return strings.Repeat(call.Step+" found: the tide comes & goes <twice> a day. ", 40), nil
	})
	return func(ctx context.Context, t *handler.Task, prompt string) (string, error) {
		r, err := agent.Run(ctx, t, agent.Config{Model: model, Tools: []agent.Tool{search}, Prompt: prompt,
			System: strings.Repeat("Be brief, and look things up before you say them. ", 80)})
		return r.Text, err
	}
}

func newBiller(t *testing.T, turns int, marks bool) *biller {
	return &biller{t: t, turns: turns, marks: marks, kept: map[string]bool{}}
}

// begins reports that each request begins with the bytes of any one before it that was shorter.
func (b *biller) begins() bool {
	for n := 1; n < len(b.asked); n++ {
		before, now := b.asked[n-1], b.asked[n]
		if len(before) > len(now) {
			before, now = now, before
		}
		for i := range before {
			if before[i] != now[i] {
				b.t.Errorf("block %d of request %d changed:\n%s\n%s", i, n+1, before[i], now[i])
				return false
			}
		}
	}
	return true
}

// A run of 20 turns costs less than a quarter of what it costs without marks, and all that was sent before is read from
// the cache.
func TestCacheSaves(t *testing.T) {
	var price [2]float64
	for i, marks := range []bool{false, true} {
		b := newBiller(t, 20, marks)
		fftest.Run(t, look, b.looking(), "hello").WantResult("done")
		if len(b.asked) != 20 || !b.begins() {
			t.Errorf("%d requests", len(b.asked))
		}
		t.Logf("marks %v: %d tokens sent, %d read from the cache, %d written: billed as %.0f", marks, b.input, b.read,
			b.written, b.price)
		price[i] = b.price
	}
	if price[1] > price[0]/4 {
		t.Errorf("with marks %.0f, without %.0f", price[1], price[0])
	}
}

// Marks, at most four, stand where the beginnings end, and not within them.
func TestRequestWithMarksAndASchema(t *testing.T) {
	req := conversation()
	req.Cache = agent.Cache{Key: "run", Marks: []int{0, 1, 2, 5, 12}}
	req.Schema = &jsonschema.Schema{Type: "object", Required: []string{"b", "a"}, PropertyOrder: []string{"b", "a"},
		Properties:           map[string]*jsonschema.Schema{"b": {Type: "string"}, "a": {Type: "integer"}},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	_, body := sent(t, anthropic.Config{}, req)
	golden(t, "request_cache.json", body)
	model := serve(t, anthropic.Config{}, nil)
	if !model.TakesSchema(req.Schema) || model.TakesSchema(&jsonschema.Schema{Type: "object"}) {
		t.Error("a closed schema is taken, an open one is not")
	}
}
