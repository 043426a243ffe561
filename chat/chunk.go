package chat

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"mime"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// chunk is one part of a UI message stream of the AI SDK.
type chunk struct {
	Type            string          `json:"type"`
	ID              string          `json:"id,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	Delta           string          `json:"delta,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolName        string          `json:"toolName,omitempty"`
	InputTextDelta  string          `json:"inputTextDelta,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	Preliminary     bool            `json:"preliminary,omitempty"`
	ErrorText       string          `json:"errorText,omitempty"`
	ApprovalID      string          `json:"approvalId,omitempty"`
	Descriptor      *shownQuestion  `json:"approvalDescriptor,omitempty"`
	SourceID        string          `json:"sourceId,omitempty"`
	URL             string          `json:"url,omitempty"`
	MediaType       string          `json:"mediaType,omitempty"`
	Title           string          `json:"title,omitempty"`
	Filename        string          `json:"filename,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	Transient       bool            `json:"transient,omitempty"`
	MessageMetadata *metadata       `json:"messageMetadata,omitempty"`
	FinishReason    string          `json:"finishReason,omitempty"`
	Reason          string          `json:"reason,omitempty"`
}

// metadata is the metadata of a message. That of a message of the user has By alone.
type metadata struct {
	By      string   `json:"by,omitempty"`
	Model   string   `json:"model,omitempty"`
	Usage   *usage   `json:"usage,omitempty"`
	Stopped *stopped `json:"stopped,omitempty"`
}

// usage is the cost of all answers of a message, named as in the AI SDK.
type usage struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Total  int64 `json:"totalTokens"`
	Thinks int64 `json:"reasoningTokens,omitempty"`
	Cached int64 `json:"cachedInputTokens,omitempty"`
}

// stopped says that an answer was broken off.
type stopped struct {
	Act    string `json:"act"` // stop or interrupt
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// shownQuestion is a question as a front end gets it: of an approval beside its call, of any other question as data.
type shownQuestion struct {
	ID        string           `json:"id"`
	Key       string           `json:"key"`
	Title     string           `json:"title"`
	Text      string           `json:"text,omitempty"`
	Assignee  string           `json:"assignee,omitempty"`
	Choices   []suspend.Choice `json:"choices,omitempty"`
	Arguments json.RawMessage  `json:"arguments,omitempty"` // that may be changed
	Schema    json.RawMessage  `json:"schema,omitempty"`    // that they must fit
	State     string           `json:"state,omitempty"`     // of a question that is no approval: open or over
}

func (a asking) asked(state string) *shownQuestion {
	q := a.Question
	return &shownQuestion{a.ID, a.Key, q.Title, q.Text, q.Assignee, q.Choices, q.Arguments, q.Schema, state}
}

// source is the payload of a frame of type source.
type source struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Title    string `json:"title"`
	Media    string `json:"media_type"`
	Filename string `json:"filename"`
}

// The names of data that is not the application's.
const (
	dataQuestion = "question"
	dataNotice   = "notice"
	dataState    = "state"
)

// chunker makes chunks from events. They depend on the event alone, so that all readers share them.
type chunker struct {
	link func(agent.Part) string // where the bytes of a file are
	show func(category flowfabric.Category, message string) string
}

// chunks are the chunks of the AI SDK for an event, maybe none. The beginning and the end of a stream are not here.
func (c chunker) chunks(e event) []chunk {
	switch e.kind {
	case kindStep:
		return []chunk{{Type: "start-step"}}
	case kindText:
		return pieceOf("text", e)
	case kindThought:
		return pieceOf("reasoning", e)
	case kindPartEnd:
		if e.thought {
			return []chunk{{Type: "reasoning-end", ID: e.part}}
		}
		return []chunk{{Type: "text-end", ID: e.part}}
	case kindCalling:
		return []chunk{{Type: "tool-input-start", ToolCallID: e.call.ID, ToolName: e.call.Name}}
	case kindArguments:
		return []chunk{{Type: "tool-input-delta", ToolCallID: e.call.ID, InputTextDelta: e.text}}
	case kindCalled:
		return []chunk{input(e.call, e.call.Arguments)}
	case kindResult:
		return c.result(e)
	case kindAsked:
		return []chunk{{Type: "tool-approval-request", ToolCallID: e.call.ID, ApprovalID: e.ask.ID,
			Descriptor: e.ask.asked("")}}
	case kindQuestion:
		return []chunk{data(dataQuestion, e.ask.ID, e.ask.asked("open"))}
	case kindAnswered:
		if e.call.ID != "" { // the question is over, in all tabs
			return []chunk{input(e.call, e.call.Arguments)}
		}
		return []chunk{data(dataQuestion, e.ask.ID, e.ask.asked("over"))}
	case kindFile:
		return []chunk{{Type: "file", URL: c.link(e.file), MediaType: mediaOf(e.file)}}
	case kindSource:
		return sourceOf(e)
	}
	return c.rest(e)
}

// rest are the chunks of events that are not parts of a message.
func (c chunker) rest(e event) []chunk {
	switch e.kind {
	case kindData:
		return []chunk{{Type: dataPrefix + e.name, ID: e.id, Data: e.value, Transient: e.preliminary}}
	case kindAnswer:
		end := []chunk{{Type: "finish-step"}}
		if m := spent(e); m != nil {
			end = []chunk{{Type: "message-metadata", MessageMetadata: m}, end[0]}
		}
		return end
	case kindStopped:
		m := &metadata{Stopped: &stopped{e.halt.Act, e.halt.By, e.halt.Reason}}
		out := []chunk{{Type: "message-metadata", MessageMetadata: m}}
		if e.halt.Act == "stop" {
			out = append(out, chunk{Type: "abort", Reason: e.halt.Reason})
		}
		return out
	case kindState:
		state := data(dataState, dataState, nil)
		state.Data, state.Transient = e.value, true
		return []chunk{state}
	case kindNotice:
		at := ""
		if !e.when.IsZero() {
			at = e.when.UTC().Format(time.RFC3339Nano)
		}
		text := e.text
		if e.name == noticeRetry {
			text = "" // an error, not for people
		}
		notice := data(dataNotice, "", struct {
			Notice string `json:"notice"`
			Text   string `json:"text,omitempty"`
			At     string `json:"at,omitempty"`
		}{e.name, text, at})
		notice.Transient = true
		return []chunk{notice}
	case kindDropped:
		return []chunk{{Type: "abort", Reason: "the answer is made again"}}
	case kindIdle:
		return []chunk{finish(e.stop)}
	case kindEnded:
		return c.ended(e)
	}
	return nil
}

func pieceOf(what string, e event) []chunk {
	delta := chunk{Type: what + "-delta", ID: e.part, Delta: e.text}
	if e.first {
		return []chunk{{Type: what + "-start", ID: e.part}, delta}
	}
	return []chunk{delta}
}

// input is a whole call. Arguments that are no JSON are a text.
func input(c agent.ToolCall, arguments json.RawMessage) chunk {
	return chunk{Type: "tool-input-available", ToolCallID: c.ID, ToolName: c.Name, Input: jsonOf(arguments)}
}

// result is the result of a call: an error, or its output in the form that the tool gave it.
func (c chunker) result(e event) []chunk {
	id, text := e.call.ID, e.said.Text()
	switch {
	case e.unmade():
		return []chunk{{Type: "tool-input-error", ToolCallID: id, ToolName: e.call.Name,
			Input: json.RawMessage("null"), ErrorText: text}}
	case e.said.Denied:
		return []chunk{{Type: "tool-output-denied", ToolCallID: id}}
	case e.said.Failed:
		return []chunk{{Type: "tool-output-error", ToolCallID: id, ErrorText: cmp.Or(text, "the call failed")}}
	}
	out := chunk{Type: "tool-output-available", ToolCallID: id, Preliminary: e.preliminary}
	parts := e.said.Parts
	if e.said.Edited == nil {
		out.Output = c.output(parts)
		return []chunk{out}
	}
	if len(parts) > 0 { // the first one tells the model
		parts = parts[1:]
	}
	out.Output = c.output(parts)
	return []chunk{input(e.call, e.said.Edited.Arguments), out}
}

// output is the output of a tool: a JSON object or array as it is, a text, or a list of texts and files.
func (c chunker) output(parts []agent.Part) json.RawMessage {
	text, files := "", false
	for _, p := range parts {
		files = files || p.Type != agent.PartText
		text += p.Text
	}
	if trimmed := strings.TrimSpace(text); !files && (strings.HasPrefix(trimmed, "{") ||
		strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	if !files {
		return encoded(text)
	}
	list := []shownPart{}
	for _, p := range parts {
		list = append(list, c.part(p))
	}
	return encoded(list)
}

// part is a part of a message of the user, or of a result.
func (c chunker) part(p agent.Part) shownPart {
	if p.Type == agent.PartImage || p.Type == agent.PartFile {
		return shownPart{Type: "file", MediaType: mediaOf(p), URL: c.link(p), Filename: p.Name}
	}
	return shownPart{Type: "text", Text: &p.Text}
}

// encoded is a value of ours as JSON, which always encodes.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func data(name, id string, v any) chunk {
	return chunk{Type: dataPrefix + name, ID: id, Data: encoded(v)}
}

func mediaOf(p agent.Part) string { return cmp.Or(p.Media, "application/octet-stream") }

// inline is a URL that has the bytes of a file in it.
func inline(p agent.Part) string {
	media := mediaOf(p)
	if _, _, err := mime.ParseMediaType(media); err != nil {
		media = "application/octet-stream"
	}
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

func sourceOf(e event) []chunk {
	var s source
	if json.Unmarshal(e.value, &s) != nil || s.URL == "" && s.Media == "" {
		return nil
	}
	if s.URL != "" {
		return []chunk{{Type: "source-url", SourceID: cmp.Or(s.ID, s.URL), URL: s.URL, Title: s.Title}}
	}
	title := cmp.Or(s.Title, s.Filename, "source")
	return []chunk{{Type: "source-document", SourceID: cmp.Or(s.ID, title), MediaType: s.Media, Title: title,
		Filename: s.Filename}}
}

// spent is the cost of a message's answers so far; nil if it is not known.
func spent(e event) *metadata {
	t := e.total
	if e.model == "" && t == (agent.Usage{}) {
		return nil
	}
	m := &metadata{Model: e.model}
	if t != (agent.Usage{}) {
		m.Usage = &usage{t.Input, t.Output, t.Total(), t.Reasoning, t.CacheRead}
	}
	return m
}

// finish ends a message.
func finish(stop agent.StopReason) chunk {
	reason := "other"
	switch stop {
	case agent.StopEnd:
		reason = "stop"
	case agent.StopLength:
		reason = "length"
	case agent.StopRefusal:
		reason = "content-filter"
	case agent.StopTools:
		reason = "tool-calls"
	}
	return chunk{Type: "finish", FinishReason: reason}
}

func (c chunker) ended(e event) []chunk {
	switch e.state {
	case flowfabric.Completed:
		return []chunk{finish(e.stop)}
	case flowfabric.Cancelled, flowfabric.Skipped:
		return []chunk{{Type: "abort", Reason: "the conversation has ended"}, finish(agent.StopStopped)}
	}
	return []chunk{{Type: "error", ErrorText: cmp.Or(c.show(e.category, e.text), masked)}}
}
