package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
)

// fold makes the events of a conversation from the events of a tail, one by one. It keeps the items that count. When
// some of them become void, it makes all events again, and compares them with the earlier ones.
type fold struct {
	begun   []agent.Message // shown before this link of the execution
	pending []agent.Message // of the input, and to be shown by frames
	shown   bool            // frames have shown them
	items   []item
	teller  *teller
	// trimmed says that frames of the newest attempts are gone, recorded has what their steps recorded.
	trimmed  bool
	recorded []agent.Message

	link     int // how often the execution had continued where the events are
	linked   int // and where begun and pending are from, link or later
	attempt  uint32
	frames   uint64          // sequence of the newest one of the attempt
	working  bool            // a worker runs the execution, or is to
	document json.RawMessage // the summary document
	version  uint64
	of       uint32 // attempt of the document
	lost     bool   // it is to be read
	at       stream.Position
}

// outcome is what follows from an event of a tail.
type outcome struct {
	told   []event
	anew   bool // all events must be made again: told is nil
	loose  bool // compare messages and calls only: other sources than frames lack the rest
	relink bool // another link begins: its input is to be read
	reread bool // recorded steps are to be read
	state  *stream.Frame
}

func newFold() *fold { return &fold{teller: &teller{doing: doingIdle}} }

// enter begins a link of the execution with the messages of its input. If it is a later one than the one that the
// events are of, those are passed over.
func (f *fold) enter(b begin) {
	n := 0
	for i, m := range b.messages {
		if m.Role == agent.Assistant && b.continues > 0 {
			n = i + 1
		}
	}
	f.begun, f.pending = b.messages[:n], b.messages[n:]
	f.shown, f.linked = slices.ContainsFunc(f.items, item.shows), b.continues
}

// shows says of an item that it is a message of the agent.
func (i item) shows() bool { return i.what == itemFrame && i.typ == agent.FrameMessage }

// read takes over what recorded steps have, where frames are gone.
func (f *fold) read(messages []agent.Message) { f.recorded = messages }

// add takes an event of a tail over.
func (f *fold) add(e stream.TailEvent) outcome {
	f.at = e.Position
	if f.link < f.linked && (e.Kind != stream.TailAttempt || e.Type != flowfabric.AttemptContinue || e.Child != nil) {
		return outcome{}
	}
	if e.Child != nil {
		if e.Kind != stream.TailFrame || e.Frame.Type != agent.FrameMessage || e.Frame.Encrypted {
			return outcome{}
		}
		return f.push(item{what: itemChild, at: e.Position, payload: e.Frame.Payload, name: e.Child.Path[0]})
	}
	switch e.Kind {
	case stream.TailAttempt, stream.TailResumed, stream.TailRetry:
		f.working = true
	case stream.TailSuspended, stream.TailEnd:
		f.working = false
	}
	switch e.Kind {
	case stream.TailAttempt:
		return f.begins(e)
	case stream.TailResumed:
		return f.resumes(e)
	case stream.TailFrame:
		return f.frame(e)
	case stream.TailGap:
		if e.Trimmed > 0 { // recorded steps have what was said
			f.trimmed, f.items = true, nil
		}
		o := f.push(item{what: itemGap, at: e.Position, attempt: e.Attempt})
		o.reread, o.anew = e.Trimmed > 0, e.Trimmed > 0
		return o
	case stream.TailSuspended:
		o := f.push(item{what: itemWaits, at: e.Position, attempt: e.Attempt, waits: e.Suspension})
		o.reread = f.teller.missing()
		return o
	case stream.TailRetry:
		if e.Type != flowfabric.AttemptRetry { // nothing has failed
			return outcome{}
		}
		return f.push(item{what: itemRetry, at: e.Position, attempt: e.Attempt, end: e})
	case stream.TailEnd:
		return f.push(item{what: itemEnd, at: e.Position, attempt: e.Attempt, end: e})
	}
	return outcome{}
}

// missing says that people are asked, and that the result of another call of the same answer was not told.
func (t *teller) missing() bool {
	return len(t.asks) > 0 && slices.ContainsFunc(t.calls, func(c *call) bool {
		return c.done == "" && !slices.ContainsFunc(t.asks, func(a asking) bool { return t.asked(a.Key) == c })
	})
}

// begins drops the items that an attempt repeats.
func (f *fold) begins(e stream.TailEvent) outcome {
	f.attempt = e.Attempt
	if e.Type == flowfabric.AttemptContinue {
		f.items, f.trimmed, f.recorded, f.shown = nil, false, nil, false
		f.link++
		return outcome{relink: f.link > f.linked, anew: true, loose: true}
	}
	f.frames = 0
	dropped := f.keep(func(i item) bool {
		return slices.ContainsFunc(e.Reused, func(c stream.Covered) bool {
			return c.Attempt == i.attempt && i.sequence <= c.Recorded
		})
	})
	o := f.push(item{what: itemGoesOn, at: e.Position, attempt: e.Attempt})
	o.anew = dropped
	return o
}

// resumes drops the items that a run repeats, and ends a wait.
func (f *fold) resumes(e stream.TailEvent) outcome {
	dropped := f.keep(func(i item) bool {
		return i.what != itemFrame || i.fleeting || i.attempt != e.Attempt || i.sequence <= e.Resumed.Recorded
	})
	o := f.push(item{what: itemGoesOn, at: e.Position, attempt: e.Attempt})
	o.anew = o.anew || dropped
	return o
}

// keep drops items that do not stay. Messages of children stay: they are shown if their call is.
func (f *fold) keep(stays func(item) bool) (dropped bool) {
	f.items = slices.DeleteFunc(f.items, func(i item) bool {
		if i.what == itemChild || stays(i) {
			return false
		}
		dropped = true
		return true
	})
	return dropped
}

// frame takes a frame over. The pieces of an answer go when it is whole.
func (f *fold) frame(e stream.TailEvent) outcome {
	x := e.Frame
	switch {
	case x.Encrypted:
		return outcome{}
	case x.Mode == stream.ModeSummary:
		return outcome{state: &x}
	}
	i := item{what: itemFrame, at: e.Position, attempt: e.Attempt, sequence: x.Sequence, typ: x.Type,
		correlation: x.Correlation, payload: x.Payload, fleeting: x.Mode == stream.ModeBestEffort}
	f.frames = i.sequence
	switch {
	case !i.told():
		return outcome{}
	case i.fleeting && i.typ != agent.FrameResult: // it is never repeated
		f.teller.add(i)
		return outcome{told: f.teller.take()}
	}
	if i.shows() && !f.shown && len(f.pending) > 0 {
		f.shown = true
		f.items = append(f.items, i)
		return outcome{anew: true, loose: true}
	}
	aligned := slices.ContainsFunc(f.items, item.counts)
	steps := f.teller.steps
	o := f.push(i)
	if i.shows() && f.teller.steps > steps && f.teller.hasPieces() {
		f.items = slices.DeleteFunc(f.items, func(p item) bool { return p.piece() && p.attempt == i.attempt })
	}
	if f.trimmed && !aligned && i.counts() { // it says which answers are recorded, and which ones frames show

		o.anew, o.loose = true, true
	}
	return o
}

// hasPieces says that the answer that was told last has all that its pieces said: it was not cut for its frame.
func (t *teller) hasPieces() bool {
	text, thought := "", ""
	for _, p := range t.answer.Parts {
		switch p.Type {
		case agent.PartText:
			text += p.Text
		case agent.PartReasoning:
			thought += p.Text
		}
	}
	return text == t.text.String() && thought == t.thought.String()
}

// told says that a frame is for people.
func (i item) told() bool {
	return slices.Contains(framesTold, i.typ) || strings.HasPrefix(i.typ, dataPrefix)
}

var framesTold = []string{agent.FrameMessage, agent.FrameToken, agent.FrameReasoning, agent.FrameCall,
	agent.FrameArguments, agent.FrameResult, agent.FrameUsage, agent.FrameTurn, agent.FrameSummary, frameSource}

// counts says of an item that it has the number of an answer.
func (i item) counts() bool { return i.what == itemFrame && i.typ == agent.FrameUsage }

// piece says of an item that an answer has it, once it is whole.
func (i item) piece() bool {
	return i.what == itemFrame && (i.typ == agent.FrameToken || i.typ == agent.FrameReasoning ||
		i.typ == agent.FrameCall || i.typ == agent.FrameArguments)
}

func (f *fold) push(i item) outcome {
	i.sequence = f.frames // what is no frame counts as long as the one before it
	f.items = append(f.items, i)
	f.teller.add(i)
	return outcome{told: f.teller.take()}
}

// again makes all events that count.
func (f *fold) again() []event {
	t := &teller{doing: doingIdle, elsewhere: true}
	f.teller = t
	before, items := f.begun, f.items
	if !f.shown {
		before = slices.Concat(before, f.pending)
	}
	for _, m := range before {
		t.add(item{what: itemSaid, said: m})
	}
	t.steps, t.elsewhere = 0, false
	if f.trimmed {
		items = f.behind(t)
	}
	for _, i := range items {
		t.add(i)
	}
	f.missed(t)
	return t.take()
}

// behind makes events from recorded steps in the place of missing frames, and returns the items behind those.
func (f *fold) behind(t *teller) []item {
	known := 0 // answers that are recorded
	for _, m := range f.recorded {
		if m.Role == agent.Assistant {
			known++
		}
	}
	first, whole := known+1, -1 // the answer that frames show first, and the item that has it
	for n, i := range f.items {
		if i.shows() && i.role() == agent.Assistant && whole < 0 {
			whole = n
		}
		var c cost
		if i.counts() && json.Unmarshal(i.payload, &c) == nil {
			first = c.Turn
			break
		}
	}
	answers := 0
	var said []agent.Message
	for _, m := range f.recorded {
		if m.Role == agent.Assistant {
			if answers++; answers >= first {
				break
			}
		}
		said = append(said, m)
	}
	for _, m := range said {
		t.add(item{what: itemSaid, said: m})
	}
	t.headless = true
	var items []item
	for n, i := range f.items {
		if n < whole && i.shows() && within(said, i) { // a recorded step has it
			continue
		}
		items = append(items, i)
	}
	return items
}

func (i item) role() agent.Role {
	var m struct {
		Role agent.Role `json:"role"`
	}
	_ = json.Unmarshal(i.payload, &m)
	return m.Role
}

// within says that messages have the one of a frame.
func within(said []agent.Message, i item) bool {
	var m agent.Message
	if json.Unmarshal(i.payload, &m) != nil {
		return false
	}
	return slices.ContainsFunc(said, func(s agent.Message) bool {
		return s.Role == m.Role && s.ID == m.ID && s.Call == m.Call && (m.ID != "" || s.Text() == m.Text())
	})
}

// missed adds results of the last answer that only recorded steps have yet.
func (f *fold) missed(t *teller) {
	if !t.missing() {
		return
	}
	for n, m := range slices.Backward(f.recorded) {
		if m.Role != agent.Assistant {
			continue
		}
		for _, r := range f.recorded[n+1:] {
			if c := t.called(r.Call); r.Role == agent.ToolRole && c != nil && c.done == "" {
				t.add(item{what: itemFound, at: f.at, said: r})
			}
		}
		return
	}
}

// summary takes a change of the summary document over; false says that the document itself must be read.
func (f *fold) summary(attempt uint32, x stream.Frame) (event, bool) {
	if attempt != f.of {
		f.of, f.version, f.document = attempt, 0, nil
	}
	if x.SummaryVersion != f.version+1 {
		return event{}, x.SummaryVersion <= f.version
	}
	document, err := stream.MergeSummary(f.document, x.Payload)
	if err != nil {
		return event{}, true
	}
	f.document, f.version = document, x.SummaryVersion
	return event{kind: kindState, at: f.at, last: true, message: f.teller.open, value: document, patch: x.Payload}, true
}

// whole takes over a summary document that was read.
func (f *fold) whole(s stream.Summary) event {
	f.of, f.version, f.document = s.Attempt, s.Version, s.Document
	return event{kind: kindState, at: f.at, last: true, message: f.teller.open, value: s.Document}
}

// lasts says that readers get an event also after its message is complete.
func (e event) lasts() bool {
	return e.kind != kindState && e.kind != kindNotice && (e.kind != kindData || !e.preliminary)
}

// compact joins the pieces of events that have ended.
func compact(events []event) (short []event) {
	for _, e := range events {
		if n := len(short) - 1; n >= 0 && !e.first && short[n].kind == e.kind && short[n].part == e.part &&
			short[n].call.ID == e.call.ID && (e.kind == kindText || e.kind == kindThought || e.kind == kindArguments) {
			short[n].text += e.text
			short[n].at, short[n].last = e.at, e.last
			continue
		}
		short = append(short, e)
	}
	return short
}

// counts says that an event is compared: loosely it is what was said and done, else all that is to be kept.
func (e event) counts(loose bool) bool {
	switch e.kind {
	case kindSaid, kindBegan, kindText, kindCalled, kindFile:
		return true
	case kindResult:
		return !e.preliminary
	case kindThought, kindSource, kindAnswer, kindStopped:
		return !loose
	case kindData:
		return !loose && !e.preliminary
	}
	return false
}

// same says that two events tell the same.
func (e event) same(o event) bool {
	return e.kind == o.kind && e.message == o.message && e.text == o.text && e.call.ID == o.call.ID &&
		e.said.Text() == o.said.Text() && bytes.Equal(e.value, o.value) && e.id == o.id && e.name == o.name &&
		e.file.Blob == o.file.Blob && bytes.Equal(e.file.Data, o.file.Data) && len(e.said.Parts) == len(o.said.Parts) &&
		e.said.Failed == o.said.Failed
}

// beyond compares the events that count now with earlier ones. If from is "", rest are the new events. Otherwise the
// earlier events of the message from and all behind it are void, and rest begins there.
func beyond(old, now []event, loose bool) (rest []event, from string) {
	was, is := compact(old), compact(now)
	if loose {
		was = cutFront(was, is)
	}
	at := 0 // in is
	for n, e := range was {
		if !e.counts(loose) {
			continue
		}
		for at < len(is) && !is[at].counts(loose) {
			at++
		}
		switch {
		case at < len(is) && e.same(is[at]):
			at++
		case at < len(is) && e.begins(is[at]) && !slices.ContainsFunc(was[n+1:], func(e event) bool {
			return e.counts(loose) || e.kind == kindPartEnd
		}):
			more := is[at]
			more.text, more.first = strings.TrimPrefix(more.text, e.text), false
			return append([]event{more}, is[at+1:]...), ""
		default:
			return is[start(is, at, e.message):], e.message
		}
	}
	return is[settled(is, at, old, loose):], ""
}

// begins says that a piece of text is the beginning of another one.
func (e event) begins(o event) bool {
	return e.kind == kindText && o.kind == kindText && e.message == o.message && e.part == o.part &&
		strings.HasPrefix(o.text, e.text)
}

// settled skips events that were sent behind the last event that counts.
func settled(is []event, at int, old []event, loose bool) int {
	var last []kind
	for _, e := range slices.Backward(old) {
		if e.counts(loose) {
			break
		}
		last = append(last, e.kind)
	}
	slices.Reverse(last)
	for _, k := range last {
		if at < len(is) && is[at].kind == k {
			at++
		}
	}
	return at
}

// cutFront leaves out earlier events in front of the current beginning of the conversation.
func cutFront(was, is []event) []event {
	if len(is) == 0 {
		return was
	}
	for n, e := range was {
		if e.message == is[0].message && e.kind == is[0].kind {
			return was[n:]
		}
	}
	return was
}

// start is where a message begins; if there is none of that id any more, the next one behind at.
func start(events []event, at int, id string) int {
	n := slices.IndexFunc(events, func(e event) bool { return e.message == id })
	for n < 0 && at < len(events) && events[at].kind != kindSaid && events[at].kind != kindBegan {
		at++
	}
	if n < 0 {
		return at
	}
	return n
}
