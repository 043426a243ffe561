package chat

import (
	"cmp"
	"encoding/json"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
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

// close ends whatever is open.
func (w *aguiWriter) close() {
	w.closeText()
	w.closeThought()
	for _, id := range slices.Clone(w.calls) {
		w.closeCall(id)
	}
	w.closeStep()
}
