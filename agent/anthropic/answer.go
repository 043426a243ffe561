package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// The kinds of blocks that are more than kept.
const (
	kindText     = "text"
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
	kindToolUse  = "tool_use"
)

// deltaError is an error of the caller's delta function.
type deltaError struct{ error }

// event is one event of the stream: the part of it that is used.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta piece           `json:"delta"`
	Usage usage           `json:"usage"`
}

// piece is the delta of an event.
type piece struct {
	Type       string          `json:"type"`
	Text       wire.String     `json:"text"`
	Thinking   wire.String     `json:"thinking"`
	Signature  wire.String     `json:"signature"`
	Partial    wire.String     `json:"partial_json"`
	Citation   json.RawMessage `json:"citation"`
	StopReason string          `json:"stop_reason"`
}

// usage is what the service reports so far. An event need not report all.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update takes over what u reports.
func (u *usage) update(v usage) {
	u.Input, u.Output = cmp.Or(v.Input, u.Input), cmp.Or(v.Output, u.Output)
	u.CacheRead, u.CacheWrite = cmp.Or(v.CacheRead, u.CacheRead), cmp.Or(v.CacheWrite, u.CacheWrite)
	u.Details.Thinking = cmp.Or(v.Details.Thinking, u.Details.Thinking)
}

// addTo adds what was reported, in which the input has no tokens of the cache.
func (u usage) addTo(sum *agent.Usage) {
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return max(0, *p)
	}
	sum.Input += n(u.Input) + n(u.CacheRead) + n(u.CacheWrite)
	sum.Output += n(u.Output)
	sum.CacheRead += n(u.CacheRead)
	sum.CacheWrite += n(u.CacheWrite)
	sum.Reasoning += n(u.Details.Thinking)
}

// answer puts the pieces of an answer together, over the requests that it takes.
type answer struct {
	delta func(agent.Delta) error

	whole agent.Usage // of the requests that ended
	id    string
	model string
	stop  string
	size  int // bytes of events

	blocks []*block // of all requests

	// of the request that runs
	events  int
	first   int // block of it
	usage   usage
	byIndex map[int]*block
}

// block is one content block.
type block struct {
	kind, id, name string
	started        json.RawMessage // as the service began it
	join           wire.Text
	text           strings.Builder // of a text, a thought, or the arguments of a call
	signature      strings.Builder
	citations      []json.RawMessage
}

func newAnswer(delta func(agent.Delta) error) *answer { return &answer{delta: delta} }

// begin starts the answer to another request.
func (a *answer) begin() {
	a.stop, a.usage, a.events, a.first, a.byIndex = "", usage{}, 0, len(a.blocks), map[int]*block{}
}

// event takes one event. It reports if that is the last one.
func (a *answer) event(name string, data []byte) (done bool, err error) {
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return false, nil
	}
	a.events++
	if a.size += len(data); a.size > wire.MostAnswer {
		return false, fmt.Errorf("the answer has more than %d bytes", wire.MostAnswer)
	}
	if name == "error" {
		return false, parseError(data)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("decode an event: %w", err)
	}
	switch e.Type {
	case "error":
		return false, parseError(data)
	case "message_start":
		a.id, a.model = e.Message.ID, e.Message.Model
		a.usage.update(e.Message.Usage)
	case "content_block_start":
		return false, a.start(e)
	case "content_block_delta":
		b := a.byIndex[e.Index]
		if b == nil {
			return false, fmt.Errorf("a piece of block %d comes before the block", e.Index)
		}
		return false, a.add(b, e.Delta)
	case "content_block_stop":
		if b := a.byIndex[e.Index]; b != nil {
			return false, a.end(b)
		}
	case "message_delta":
		a.stop = cmp.Or(e.Delta.StopReason, a.stop)
		a.usage.update(e.Usage)
	case "message_stop":
		return true, a.finish()
	}
	return false, nil // a ping, or an event that the service has added since
}

// start begins a block, which may have content.
func (a *answer) start(e event) error {
	var begun struct {
		Type      string            `json:"type"`
		ID        string            `json:"id"`
		Name      string            `json:"name"`
		Text      wire.String       `json:"text"`
		Thinking  wire.String       `json:"thinking"`
		Signature wire.String       `json:"signature"`
		Citations []json.RawMessage `json:"citations"`
	}
	if err := json.Unmarshal(e.Block, &begun); err != nil {
		return fmt.Errorf("decode an event: a block: %w", err)
	}
	if begun.Type == "" || a.byIndex[e.Index] != nil {
		return fmt.Errorf("block %d has no type, or begins twice", e.Index)
	}
	if begun.Type == kindToolUse && (begun.ID == "" || begun.Name == "" || a.hasCall(begun.ID)) {
		return errors.New("a tool call has no name, or no id of its own")
	}
	b := &block{kind: begun.Type, id: begun.ID, name: begun.Name, started: valid(e.Block)}
	a.byIndex[e.Index] = b
	a.blocks = append(a.blocks, b)
	for _, c := range begun.Citations {
		b.citations = append(b.citations, valid(c))
	}
	if b.kind == kindToolUse {
		if err := a.hand(agent.Delta{Call: &agent.CallDelta{ID: b.id, Name: b.name}}); err != nil {
			return err
		}
	}
	return a.add(b, piece{Text: begun.Text, Thinking: begun.Thinking, Signature: begun.Signature})
}

func (a *answer) hasCall(id string) bool {
	for _, b := range a.blocks {
		if b.kind == kindToolUse && b.id == id {
			return true
		}
	}
	return false
}

// valid is JSON that is kept as it is, without invalid bytes.
func valid(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.ToValidUTF8(string(raw), "\uFFFD"))
}

// add adds a piece to its block.
func (a *answer) add(b *block, p piece) error {
	if len(p.Citation) > 0 {
		b.citations = append(b.citations, valid(p.Citation))
	}
	b.signature.Write(p.Signature)
	switch b.kind {
	case kindText:
		return a.emit(b, b.join.Add(p.Text))
	case kindThinking:
		return a.emit(b, b.join.Add(p.Thinking))
	}
	return a.emit(b, b.join.Add(p.Partial))
}

// end ends a block: what is missing of a character does not come any more, nor pieces of arguments that came whole.
func (a *answer) end(b *block) error {
	rest := b.join.End()
	if whole := string(b.arguments()); b.kind == kindToolUse && rest == "" && b.text.Len() == 0 && whole != "{}" {
		rest = whole
	}
	return a.emit(b, rest)
}

// emit hands on text of a block.
func (a *answer) emit(b *block, text string) error {
	if text == "" {
		return nil
	}
	b.text.WriteString(text)
	switch b.kind {
	case kindText:
		return a.hand(agent.Delta{Text: text})
	case kindThinking:
		return a.hand(agent.Delta{Reasoning: text})
	case kindToolUse:
		return a.hand(agent.Delta{Call: &agent.CallDelta{ID: b.id, Arguments: text}})
	}
	return nil
}

func (a *answer) hand(d agent.Delta) error {
	if err := a.delta(d); err != nil {
		return deltaError{err}
	}
	return nil
}

// finish ends the answer to one request.
func (a *answer) finish() error {
	if a.stop == "" {
		return errors.New("the answer has no reason to stop")
	}
	for _, b := range a.blocks[a.first:] {
		if err := a.end(b); err != nil {
			return err
		}
	}
	a.usage.addTo(&a.whole)
	return nil
}

// paused reports that the service wants the answer so far back, to go on with it.
func (a *answer) paused() bool { return a.stop == "pause_turn" }

// soFar is what the last request brought, as it goes back.
func (a *answer) soFar() []sdk.ContentBlockParamUnion {
	message := message(a.blocks[a.first:])
	return answerBlocks(&message)
}

// response is the whole answer.
func (a *answer) response() agent.Response {
	message := message(a.blocks)
	return agent.Response{Message: message, Stop: a.stopReason(message), Usage: a.whole, Model: a.model, ID: a.id}
}

func (a *answer) stopReason(m agent.Message) agent.StopReason {
	switch a.stop {
	case "refusal":
		return agent.StopRefusal
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return agent.StopLength
	}
	if len(m.Calls) > 0 {
		return agent.StopTools
	}
	return agent.StopEnd
}

// message is the message of blocks. Its private part is there if text and calls do not say all.
func message(blocks []*block) agent.Message {
	m := agent.Message{Role: agent.Assistant}
	var kept private
	keep := false
	for _, b := range blocks {
		switch b.kind {
		case kindText:
			m.Parts = add(m.Parts, agent.Part{Type: agent.PartText, Text: b.text.String()})
			keep = keep || len(b.citations) > 0
		case kindToolUse:
			m.Calls = append(m.Calls, agent.ToolCall{ID: b.id, Name: b.name, Arguments: b.arguments()})
		case kindThinking:
			m.Parts = add(m.Parts, agent.Part{Type: agent.PartReasoning, Text: b.text.String()})
			keep = true
		default:
			keep = true
		}
		kept.Blocks = append(kept.Blocks, b.kept())
	}
	if keep {
		m.Private = encode(kept)
	}
	return m
}

// add appends a text or a thought to the one before it, or as a part of its own.
func add(parts []agent.Part, p agent.Part) []agent.Part {
	if n := len(parts); n > 0 && parts[n-1].Type == p.Type {
		parts[n-1].Text += p.Text
	} else if p.Text != "" {
		parts = append(parts, p)
	}
	return parts
}

// arguments are those of a call, from the pieces or, if there are none, from its beginning.
func (b *block) arguments() json.RawMessage {
	var begun struct{ Input json.RawMessage }
	if b.text.Len() == 0 && json.Unmarshal(b.started, &begun) == nil && string(begun.Input) != "null" {
		return wire.Arguments(string(begun.Input))
	}
	return wire.Arguments(b.text.String())
}

// kept is the block as it goes into Message.Private.
func (b *block) kept() json.RawMessage {
	switch b.kind {
	case kindText:
		return encode(struct {
			Type      string            `json:"type"`
			Text      string            `json:"text"`
			Citations []json.RawMessage `json:"citations,omitempty"`
		}{b.kind, b.text.String(), b.citations})
	case kindThinking:
		return encode(struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{b.kind, b.text.String(), b.signature.String()})
	case kindToolUse:
		return encode(struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}{b.kind, b.id})
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.started, &fields) == nil && b.text.Len() > 0 {
		fields["input"] = wire.Object(wire.Arguments(b.text.String()))
		return encode(fields)
	}
	return b.started
}

// encode encodes what always encodes: strings, and JSON that was decoded.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
