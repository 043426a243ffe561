package chat

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// aguiWriter says what happens in a conversation in the words of AG-UI. A message of the assistant is told as one
// message for each answer, whose id is that of the whole, from the second on with its number, and beside it one for
// what the model thought, one for each result, and one activity for each file and source.
//
// It is used in two ways: the messages of a snapshot are what a writer without a client has collected; to a client
// only what is new is told, beginning behind a snapshot, whatever was open there.
type aguiWriter struct {
	link func(agent.Part) string // where the bytes of a file are
	show func(category flowfabric.Category, text string) string

	// Of the message of the assistant that is told.
	reply   string
	answers int               // that have begun
	things  int               // files, sources and data without an id
	results map[string]string // what results of calls said, by the call's id
	pieces  map[string]string // arguments that have come, of calls that are not whole
	partial []string          // ids of calls of this answer that are not whole
	carrier map[string]string // the id of the message that has a call

	collect  bool
	messages []aguiMessage

	live  bool
	out   []aguiEvent
	text  string // id of the message that is open
	think string
	calls []string // ids of calls that are open, in their order
	step  string
	// again: what was told is not what is; whoever writes goes on behind a new snapshot
	again bool

	document json.RawMessage // the state that the client has; nil if that is not known
	asked    []aguiInterrupt
	asking   bool // the last of the questions was told
	idle     bool
	stopped  bool
	over     bool // nothing follows
	failed   bool // and the run has ended with an error
	usage    map[string]agent.Usage
	models   []string
	heard    map[string]bool // messages of the user
	has      map[string]bool // those that the client has, though the conversation has not heard them yet
}

func newAGUIWriter(link func(agent.Part) string, show func(flowfabric.Category, string) string) *aguiWriter {
	w := &aguiWriter{link: link, show: show, usage: map[string]agent.Usage{}, heard: map[string]bool{}}
	w.begin("")
	return w
}

// begin is a message of the assistant.
func (w *aguiWriter) begin(id string) {
	w.reply, w.answers, w.things = id, 0, 0
	w.partial = nil
	w.results, w.pieces, w.carrier = map[string]string{}, map[string]string{}, map[string]string{}
}

// snapshot begins anew with a conversation as it stands. It returns the messages that a client should have, and whether
// has, what a client says that it has, is the beginning of them: then the rest of the snapshot is told, like what
// follows it. Else the client must be given the messages.
func (w *aguiWriter) snapshot(s snapshot, has func([]aguiMessage) bool) (messages []aguiMessage, beginning bool) {
	var events []event
	end := event{kind: kindEnded, state: s.state}
	for _, m := range s.messages {
		if m.role == agent.User && len(m.events) == 0 {
			m.events = []event{{kind: kindSaid, message: m.id, said: m.said}}
		}
		for _, e := range m.events {
			if e.kind == kindEnded { // it may have been brought back since
				end = e
				continue
			}
			events = append(events, e)
		}
	}
	known := w.collected(events, has)
	messages = w.messages
	if known >= 0 {
		w.collected(events[:known], nil)
		w.goOn()
		for _, e := range events[known:] {
			if e.kind != kindState { // the last one is in the snapshot
				w.write(e)
			}
		}
	}
	beginning = known >= 0 && !w.again
	if !beginning {
		w.collected(events, nil)
		w.goOn()
	}
	w.asked = slices.DeleteFunc(w.asked, func(a aguiInterrupt) bool {
		return !slices.ContainsFunc(s.asks, func(open asking) bool { return open.ID == a.ID })
	})
	w.asking = s.doing == doingAsk && len(w.asked) > 0
	w.idle = s.doing == doingIdle
	if s.doing == doingEnded {
		w.write(end)
	}
	return messages, beginning
}

// goOn begins to tell what follows what was collected.
func (w *aguiWriter) goOn() {
	w.collect, w.live, w.messages, w.again = false, true, nil, false
	w.out, w.text, w.think, w.calls, w.step = nil, "", "", nil, ""
	w.usage, w.models, w.stopped, w.over, w.failed = map[string]agent.Usage{}, nil, false, false, false
}

// collected collects the messages of events. It returns behind how many of them, at most, a client has what there was,
// -1 for none.
func (w *aguiWriter) collected(events []event, has func([]aguiMessage) bool) (known int) {
	w.collect, w.live, w.messages, w.asked, w.over = true, false, []aguiMessage{}, nil, false
	w.begin("")
	known = -1
	for i, e := range events {
		if has != nil && has(w.messages) {
			known = i
		}
		w.write(e)
	}
	if has != nil && has(w.messages) {
		known = len(events)
	}
	for known > 0 && slices.Contains([]kind{kindBegan, kindStep, kindStopped}, events[known-1].kind) {
		known--
	}
	return known
}

func (w *aguiWriter) tell(e aguiEvent) {
	if w.live {
		w.out = append(w.out, e)
	}
}

// taken are the events that are to be sent.
func (w *aguiWriter) taken() []aguiEvent {
	out := w.out
	w.out = nil
	return out
}

// write tells an event.
func (w *aguiWriter) write(e event) {
	switch e.kind {
	case kindSaid:
		w.close()
		w.idle = false
		w.say(e.message, e.said)
	case kindBegan:
		w.close()
		w.begin(e.message)
		w.idle, w.stopped = false, false
	case kindStep:
		w.answer()
	case kindText:
		w.textPiece(e.text)
	case kindThought:
		w.thoughtPiece(e.text)
	case kindPartEnd:
		w.closeText()
		w.closeThought()
	case kindCalling:
		w.call(e.call)
	case kindArguments:
		w.arguments(e.call, e.text)
	case kindCalled:
		w.called(e.call)
	case kindResult:
		w.result(e)
	case kindAsked, kindQuestion:
		w.ask(e)
	case kindAnswered:
		w.asked = slices.DeleteFunc(w.asked, func(a aguiInterrupt) bool { return e.ask != nil && a.ID == e.ask.ID })
	case kindFile, kindSource, kindData:
		w.thing(e)
	case kindAnswer:
		w.spent(e)
	case kindStopped:
		w.stopped = true
	case kindState:
		w.state(e.value)
	case kindNotice:
		w.notice(e)
	case kindDropped:
		w.again = true
	case kindIdle:
		w.close()
		w.idle = true
	case kindEnded:
		w.close()
		w.over = true
		w.ended(e)
	}
	if len(w.asked) > 0 && e.last {
		w.asking = true
	}
}

// say tells a message of the user. What a text cannot say, a snapshot does.
func (w *aguiWriter) say(id string, m agent.Message) {
	w.heard[id] = true
	said := aguiMessage{ID: id, Role: agent.User, Content: w.content(m.Parts)}
	w.add(said)
	text, plain := said.Content.(string)
	switch {
	case w.has[id]:
		return
	case !plain:
		w.again = w.again || w.live
		return
	}
	w.tell(aguiEvent{Type: aguiTextStart, MessageID: id, Role: agent.User})
	if text != "" {
		w.tell(aguiEvent{Type: aguiText, MessageID: id, Delta: text})
	}
	w.tell(aguiEvent{Type: aguiTextEnd, MessageID: id})
}

// answerID is the id of the message of the answer that is told.
func (w *aguiWriter) answerID() string {
	if w.answers <= 1 {
		return w.reply
	}
	return fmt.Sprintf("%s.%d", w.reply, w.answers)
}

// answer begins one.
func (w *aguiWriter) answer() {
	w.close()
	w.answers++
	w.idle, w.stopped = false, false
	if w.live {
		w.step = fmt.Sprintf("answer %d", w.answers)
		w.tell(aguiEvent{Type: aguiStepStart, StepName: w.step})
	}
}

func (w *aguiWriter) textPiece(text string) {
	w.closeThought()
	id := w.answerID()
	if w.collect {
		w.message(id).append(text)
	}
	if w.live && w.text != id {
		w.closeText()
		w.text = id
		w.tell(aguiEvent{Type: aguiTextStart, MessageID: id, Role: agent.Assistant})
	}
	if text != "" {
		w.tell(aguiEvent{Type: aguiText, MessageID: id, Delta: text})
	}
}

func (w *aguiWriter) closeText() {
	if w.text != "" {
		w.tell(aguiEvent{Type: aguiTextEnd, MessageID: w.text})
		w.text = ""
	}
}

func (w *aguiWriter) thoughtPiece(text string) {
	w.closeText()
	id := w.answerID() + ".reasoning"
	if w.collect {
		m := w.message(id)
		m.Role = aguiRoleReasoning
		m.append(text)
	}
	if w.live && w.think != id {
		w.closeThought()
		w.think = id
		w.tell(aguiEvent{Type: aguiReasoning, MessageID: id})
		w.tell(aguiEvent{Type: aguiThoughtStart, MessageID: id, Role: aguiRoleReasoning})
	}
	if text != "" {
		w.tell(aguiEvent{Type: aguiThought, MessageID: id, Delta: text})
	}
}

func (w *aguiWriter) closeThought() {
	if w.think != "" {
		w.tell(aguiEvent{Type: aguiThoughtEnd, MessageID: w.think})
		w.tell(aguiEvent{Type: aguiReasoningEnd, MessageID: w.think})
		w.think = ""
	}
}

// call tells that a call begins.
func (w *aguiWriter) call(c agent.ToolCall) {
	w.closeText()
	w.closeThought()
	if w.carrier[c.ID] == "" {
		w.carrier[c.ID], w.partial = w.answerID(), append(w.partial, c.ID)
		if w.collect {
			m := w.message(w.answerID())
			m.ToolCalls = append(m.ToolCalls, aguiCall{c.ID, "function", aguiFunction{Name: c.Name}})
		}
	}
	if w.live && !slices.Contains(w.calls, c.ID) {
		w.calls = append(w.calls, c.ID)
		w.tell(aguiEvent{Type: aguiCallStart, ToolCallID: c.ID, ToolCallName: c.Name,
			ParentMessageID: w.carrier[c.ID]})
	}
}

func (w *aguiWriter) arguments(c agent.ToolCall, piece string) {
	w.call(c)
	w.pieces[c.ID] += piece
	w.setArguments(c.ID, w.pieces[c.ID])
	if piece != "" {
		w.tell(aguiEvent{Type: aguiCallArguments, ToolCallID: c.ID, Delta: piece})
	}
}

func (w *aguiWriter) setArguments(id, text string) {
	if !w.collect {
		return
	}
	m := w.message(w.carrier[id])
	for i := range m.ToolCalls {
		if m.ToolCalls[i].ID == id {
			m.ToolCalls[i].Function.Arguments = text
		}
	}
}

// called tells that a call is whole. If other arguments came piece by piece, the client is told anew.
func (w *aguiWriter) called(c agent.ToolCall) {
	came := w.pieces[c.ID]
	whole := string(c.Arguments)
	if came == "" {
		w.arguments(c, whole)
	} else if compacted(came) != compacted(whole) {
		w.again = w.again || w.live
		w.call(c)
		w.setArguments(c.ID, whole)
	}
	delete(w.pieces, c.ID)
	w.partial = slices.DeleteFunc(w.partial, func(id string) bool { return id == c.ID })
	w.closeCall(c.ID)
}

// compacted is JSON without spaces; another text stays as it is.
func compacted(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

func (w *aguiWriter) closeCall(id string) {
	if i := slices.Index(w.calls, id); i >= 0 {
		w.calls = slices.Delete(w.calls, i, i+1)
		w.tell(aguiEvent{Type: aguiCallEnd, ToolCallID: id})
	}
}

// result tells what a call came to, once: what was told early is what is recorded, else the client is told anew.
func (w *aguiWriter) result(e event) {
	id := cmp.Or(e.call.ID, e.said.Call)
	if e.preliminary {
		if slices.Contains(w.partial, id) { // it is none, because its answer was broken off
			w.drop()
			return
		}
		w.progress(id, w.content(e.said.Parts))
		return
	}
	m := aguiMessage{ID: "result-" + id, Role: agent.ToolRole, ToolCallID: id, Content: w.content(e.said.Parts)}
	if e.said.Failed || e.said.Edited != nil {
		m.Metadata = &aguiResultMetadata{Failed: e.said.Failed, Edited: e.said.Edited}
	}
	if e.said.Failed {
		m.Error = e.said.Text()
	}
	text := fmt.Sprint(m.Error, "\x00", textOf(m.Content))
	before, told := w.results[id]
	w.results[id] = text
	if told {
		if before != text {
			w.again = w.again || w.live
			w.replace(m)
		}
		return
	}
	w.closeCall(id)
	w.insert(m)
	w.tell(aguiEvent{Type: aguiCallResult, MessageID: m.ID, ToolCallID: id, Role: agent.ToolRole, Content: m.Content,
		Metadata: m.Metadata})
}

// drop takes calls back that their answer does not have.
func (w *aguiWriter) drop() {
	if len(w.partial) == 0 {
		return
	}
	w.again = w.again || w.live
	for i := range w.messages {
		m := &w.messages[i]
		m.ToolCalls = slices.DeleteFunc(m.ToolCalls, func(c aguiCall) bool { return slices.Contains(w.partial, c.ID) })
	}
	w.messages = slices.DeleteFunc(w.messages, func(m aguiMessage) bool {
		return m.Role == agent.Assistant && m.Content == nil && len(m.ToolCalls) == 0
	})
	for _, id := range w.partial {
		delete(w.carrier, id)
	}
	w.partial = nil
}

// progress tells what a call has come to so far. It is not kept: the result is.
func (w *aguiWriter) progress(id string, content any) {
	value, err := json.Marshal(struct {
		ToolCallID string `json:"toolCallId"`
		Content    any    `json:"content"`
	}{id, content})
	if err == nil {
		w.tell(aguiEvent{Type: aguiCustom, Name: aguiProgress, Value: value})
	}
}

func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	data, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	return string(data)
}

// thing tells a file, a source, or what the application sends. What is not to be kept is an event of its own.
func (w *aguiWriter) thing(e event) {
	name, value := e.name, any(e.value)
	switch {
	case e.kind == kindData && e.preliminary:
		w.tell(aguiEvent{Type: aguiCustom, Name: e.name, Value: orNull(e.value)})
		return
	case e.kind == kindFile:
		name = "file"
		value = map[string]string{"url": w.link(e.file), "mediaType": e.file.Media, "filename": e.file.Name}
	case e.kind == kindSource:
		name = "source"
	}
	id := e.id
	if id == "" {
		w.things++
		id = fmt.Sprint(w.things)
	}
	m := aguiMessage{ID: w.reply + "." + name + "." + id, Role: aguiRoleActivity, ActivityType: name,
		Content: objectOf(value)}
	w.replace(m)
	w.tell(aguiEvent{Type: aguiActivity, MessageID: m.ID, ActivityType: name, Content: m.Content})
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// objectOf is a value as the content of an activity, which must be an object.
func objectOf(value any) any {
	raw, ok := value.(json.RawMessage)
	if !ok {
		return value
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		return raw
	}
	return map[string]json.RawMessage{"value": orNull(raw)}
}

// ask tells people's question when the run ends.
func (w *aguiWriter) ask(e event) {
	if e.ask == nil {
		return
	}
	i := aguiInterrupt{ID: e.ask.ID, Reason: "tool_call", Message: e.ask.Question.Title, ToolCallID: e.call.ID,
		ResponseSchema: approvalSchema(e.ask.Question), Metadata: map[string]any{"key": e.ask.Key}}
	if e.kind == kindQuestion {
		i.Reason, i.ToolCallID, i.ResponseSchema = "input_required", "", choiceSchema(e.ask.Question)
	}
	if text := e.ask.Question.Text; text != "" {
		i.Metadata["text"] = text
	}
	if to := e.ask.Question.Assignee; to != "" {
		i.Metadata["assignee"] = to
	}
	w.asked = append(slices.DeleteFunc(w.asked, func(a aguiInterrupt) bool { return a.ID == i.ID }), i)
}

// approvalSchema is what an answer to an approval looks like. With editedArgs, which are the whole arguments, people
// may change them.
func approvalSchema(q suspend.Question) map[string]any {
	properties := map[string]any{"approved": map[string]any{"type": "boolean"},
		"reason": map[string]any{"type": "string"}}
	for _, c := range choicesOf(q) {
		if c.Name != "approve" && c.Name != "reject" {
			properties["choice"] = choiceSchema(q)["properties"].(map[string]any)["choice"]
		}
	}
	if q.Arguments != nil {
		edited := any(map[string]any{"type": "object"})
		if q.Schema != nil {
			edited = q.Schema
		}
		properties["editedArgs"] = edited
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"approved"}}
}

// choiceSchema is what an answer to any other question looks like.
func choiceSchema(q suspend.Question) map[string]any {
	var names []string
	var labels []map[string]string
	for _, c := range choicesOf(q) {
		names = append(names, c.Name)
		labels = append(labels, map[string]string{"const": c.Name, "title": cmp.Or(c.Label, c.Name)})
	}
	return map[string]any{"type": "object", "required": []string{"choice"}, "properties": map[string]any{
		"choice":  map[string]any{"type": "string", "enum": names, "oneOf": labels},
		"comment": map[string]any{"type": "string"}}}
}

func choicesOf(q suspend.Question) []suspend.Choice {
	if len(q.Choices) > 0 {
		return q.Choices
	}
	return []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}
}

// spent counts what an answer cost.
func (w *aguiWriter) spent(e event) {
	w.drop()
	w.closeText()
	w.closeThought()
	for _, id := range slices.Clone(w.calls) {
		w.closeCall(id)
	}
	w.closeStep()
	if _, known := w.usage[e.model]; !known {
		w.models = append(w.models, e.model)
	}
	u := w.usage[e.model]
	u.Input += e.usage.Input
	u.Output += e.usage.Output
	u.CacheRead += e.usage.CacheRead
	u.CacheWrite += e.usage.CacheWrite
	u.Reasoning += e.usage.Reasoning
	w.usage[e.model] = u
}

// used is what the answers of the run cost, by model.
func (w *aguiWriter) used() (out []aguiUsage) {
	for _, model := range w.models {
		u := w.usage[model]
		out = append(out, aguiUsage{Model: model, Input: u.Input, Output: u.Output, Total: u.Total(),
			Reasoning: u.Reasoning, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	}
	return out
}

// state tells a new summary document, as a difference where that is shorter.
func (w *aguiWriter) state(now json.RawMessage) {
	if !w.live {
		return
	}
	before := w.document
	w.document = now
	if before != nil {
		if patch, err := patchBetween(before, now); err == nil && patch != nil {
			w.tell(aguiEvent{Type: aguiStateDelta, Delta: patch})
			return
		}
		if sameJSON(before, now) {
			return
		}
	}
	w.tell(aguiEvent{Type: aguiState, Snapshot: orEmpty(now)})
}

func orEmpty(document json.RawMessage) json.RawMessage {
	if len(document) == 0 {
		return json.RawMessage("{}")
	}
	return document
}

// sameJSON says that two documents say the same; an empty one is {}.
func sameJSON(a, b json.RawMessage) bool {
	x, err := documentOf(a)
	y, bad := documentOf(b)
	return err == nil && bad == nil && same(x, y)
}

func (w *aguiWriter) notice(e event) {
	value := map[string]any{"text": e.text}
	if !e.when.IsZero() {
		value["when"] = e.when.UTC()
	}
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	w.tell(aguiEvent{Type: aguiCustom, Name: "notice." + e.name, Value: data})
}

// ended tells that the execution is over: a failure, or that somebody cancelled it. One that has completed has nothing
// more to say.
func (w *aguiWriter) ended(e event) {
	switch e.state {
	case flowfabric.Completed, flowfabric.Cancelled, flowfabric.Skipped:
		w.stopped = e.state != flowfabric.Completed
		return
	}
	w.tell(aguiEvent{Type: aguiRunError, Message: cmp.Or(w.show(e.category, e.text), masked), Code: string(e.state),
		Usage: w.used()})
	w.failed = true
}

func (w *aguiWriter) closeStep() {
	if w.step != "" {
		w.tell(aguiEvent{Type: aguiStepEnd, StepName: w.step})
		w.step = ""
	}
}

// close ends whatever is open.
func (w *aguiWriter) close() {
	w.closeText()
	w.closeThought()
	for _, id := range slices.Clone(w.calls) {
		w.closeCall(id)
	}
	w.closeStep()
}

// add collects a message.
func (w *aguiWriter) add(m aguiMessage) {
	if w.collect {
		w.messages = append(w.messages, m)
	}
}

// insert collects a result behind its call and the results that are there, as clients do.
func (w *aguiWriter) insert(m aguiMessage) {
	if !w.collect {
		return
	}
	at := len(w.messages)
	for i, has := range slices.Backward(w.messages) {
		if has.ID == w.carrier[m.ToolCallID] {
			for at = i + 1; at < len(w.messages) && w.messages[at].Role == agent.ToolRole; at++ {
			}
			break
		}
	}
	w.messages = slices.Insert(w.messages, at, m)
}

// replace collects a message in the place of the one with its id, or as a new one.
func (w *aguiWriter) replace(m aguiMessage) {
	if !w.collect {
		return
	}
	for i := range w.messages {
		if w.messages[i].ID == m.ID {
			w.messages[i] = m
			return
		}
	}
	w.add(m)
}

// message is the message of an answer that is collected.
func (w *aguiWriter) message(id string) *aguiMessage {
	for i := range slices.Backward(w.messages) {
		if w.messages[i].ID == id {
			return &w.messages[i]
		}
	}
	w.messages = append(w.messages, aguiMessage{ID: id, Role: agent.Assistant})
	return &w.messages[len(w.messages)-1]
}

func (m *aguiMessage) append(text string) {
	before, _ := m.Content.(string)
	m.Content = before + text
}

// content is what parts say: a text if they are nothing else. What the model thought is not among it.
func (w *aguiWriter) content(parts []agent.Part) any {
	var text strings.Builder
	var out []aguiPart
	plain := true
	for _, p := range parts {
		switch p.Type {
		case agent.PartText:
			text.WriteString(p.Text)
			said := p.Text
			out = append(out, aguiPart{Type: "text", Text: &said})
		case agent.PartImage, agent.PartFile:
			plain = false
			out = append(out, w.filePart(p))
		}
	}
	if plain {
		return text.String()
	}
	return out
}

func (w *aguiWriter) filePart(p agent.Part) aguiPart {
	kind, _, _ := strings.Cut(p.Media, "/")
	if !slices.Contains([]string{"image", "audio", "video"}, kind) {
		kind = "document"
	}
	out := aguiPart{Type: kind}
	if p.Name != "" {
		out.Metadata = &aguiFileName{p.Name}
	}
	out.Source = &aguiSource{Type: "url", Value: w.link(p), Media: p.Media}
	if p.Blob == "" {
		out.Source = &aguiSource{"data", base64.StdEncoding.EncodeToString(p.Data), p.Media}
	}
	return out
}

// reasoningIDs are the messages of a snapshot that say what the model thought.
func reasoningIDs(messages []aguiMessage) map[string]bool {
	out := map[string]bool{}
	for _, m := range messages {
		if m.Role == aguiRoleReasoning {
			out[m.ID] = true
		}
	}
	return out
}

// emptied are messages with which a client forgets what the model thought of answers that are dropped. A client keeps
// its own of them when a snapshot has none at all.
func emptied(messages []aguiMessage, had map[string]bool) []aguiMessage {
	now := reasoningIDs(messages)
	if len(now) > 0 {
		return messages
	}
	for _, id := range slices.Sorted(maps.Keys(had)) {
		messages = append(messages, aguiMessage{ID: id, Role: aguiRoleReasoning, Content: ""})
	}
	return messages
}
