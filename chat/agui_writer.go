package chat

import (
	"cmp"
	"encoding/json"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
)

// aguiWriter makes events of AG-UI from the events of a conversation. A message of the assistant becomes one message
// for each answer: the first has the id of the whole, and the others add their number. Reasoning and each result are
// messages of their own, and each file and source is an activity.
//
// A writer works in two modes. It collects the messages of a snapshot, or it writes events for a client that has the
// snapshot.
type aguiWriter struct {
	link func(agent.Part) string // where the bytes of a file are
	show func(category flowfabric.Category, text string) string

	// Of the current message of the assistant.
	reply   string
	answers int               // that have begun
	things  int               // files, sources and data without an id
	results map[string]string // contents of results, by the call's id
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
	// again: earlier events are void, so the client needs a new snapshot
	again bool

	document json.RawMessage // the state that the client has; nil if that is not known
	asked    []aguiInterrupt
	asking   bool // all questions of the wait are known
	idle     bool
	stopped  bool
	over     bool // nothing follows
	failed   bool // and the run has ended with an error
	usage    map[string]agent.Usage
	models   []string
	heard    map[string]bool // messages of the user that the agent has got
	has      map[string]bool // messages of the user that the client shows already
}

func newAGUIWriter(link func(agent.Part) string, show func(flowfabric.Category, string) string) *aguiWriter {
	w := &aguiWriter{link: link, show: show, usage: map[string]agent.Usage{}, heard: map[string]bool{}}
	w.begin("")
	return w
}

// begin begins a message of the assistant.
func (w *aguiWriter) begin(id string) {
	w.reply, w.answers, w.things = id, 0, 0
	w.partial = nil
	w.results, w.pieces, w.carrier = map[string]string{}, map[string]string{}, map[string]string{}
}

// snapshot starts again from the current conversation, and returns its messages. has says whether the client has
// exactly some messages. If the client has the beginning of the snapshot, beginning is true, and the writer has the
// rest of it as events. Otherwise the client needs the messages.
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

// goOn switches from collecting to writing.
func (w *aguiWriter) goOn() {
	w.collect, w.live, w.messages, w.again = false, true, nil, false
	w.out, w.text, w.think, w.calls, w.step = nil, "", "", nil, ""
	w.usage, w.models, w.stopped, w.over, w.failed = map[string]agent.Usage{}, nil, false, false, false
}

// collected collects the messages of events. It returns the largest number of events after which the client has all
// messages, or -1.
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

// taken returns the events to send, and forgets them.
func (w *aguiWriter) taken() []aguiEvent {
	out := w.out
	w.out = nil
	return out
}

// write takes over an event.
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

// ended writes the failure of an execution. If it completed or was cancelled, the end of the run is enough.
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
