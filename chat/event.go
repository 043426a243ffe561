package chat

import (
	"encoding/json"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// kind says what an event tells.
type kind uint8

// The kinds of events, with the fields that they have beside kind, at, last and message. What is told of one message
// of the assistant comes between its began and the next said, began, dropped or ended.
const (
	kindSaid      kind = 1 + iota // a message of the user: said, message is its id
	kindBegan                     // a message of the assistant begins, message is its id
	kindStep                      // an answer begins: step
	kindText                      // a piece of text: part, first, text
	kindThought                   // a piece of what the model thinks: part, first, text
	kindPartEnd                   // the text or thought part has ended: part, thought
	kindCalling                   // a call begins: step, call (ID, Name)
	kindArguments                 // a piece of its arguments: call (ID, Name), text
	kindCalled                    // a call is whole: step, number, call
	kindResult                    // of a call: call, said (role tool, maybe Edited or Denied), preliminary
	kindAsked                     // people are asked about a call: call, ask
	kindQuestion                  // people are asked anything else: ask
	kindAnswered                  // what was asked is over: ask, call if it was about one
	kindFile                      // an image or a file of the assistant: file
	kindSource                    // a source that the application names: value
	kindData                      // a frame of the application: name, id, value, preliminary: it does not last
	kindAnswer                    // an answer is whole: step, said (role assistant), usage, total, stop, model
	kindStopped                   // an answer or what should have followed was broken off: halt
	kindState                     // the summary document: value, the whole one; patch, what changed it, or nil
	kindNotice                    // something to know: name, text, when
	kindDropped                   // message and all behind it are void; what stands of it follows, told again
	kindIdle                      // the turn is over, and it is the user's: stop, total, model
	kindEnded                     // the execution ended: state, text (not masked), halt.By, halt.Reason
)

// Names of notices.
const (
	noticeRetry   = "retry"   // an answer failed and is tried again, at when
	noticeLimit   = "limit"   // a limit is near; text
	noticeForm    = "form"    // the answer did not have its form and is asked for again; text
	noticeSummary = "summary" // the model sees a summary of the beginning from now on
	noticeGap     = "gap"     // a part of the stream was gone before it could be read
)

// event is an event of a conversation, independent of protocols. Many readers share it, and it never changes.
type event struct {
	kind kind
	// at is behind the event of the tail that made it; "" for what was told before the execution continued.
	at      stream.Position
	last    bool   // of the events from one event of the tail: a reader that has it may resume behind at
	message string // id of the message that it belongs to

	step    int    // number of the answer in this link of the execution, from 1; 0 if that is unknown
	number  int    // of the call in its answer, from 1
	part    string // id of a text or thought part, unique in its message
	first   bool   // the part begins
	thought bool   // of a kindPartEnd: the part is what the model thought
	text    string

	call        agent.ToolCall
	said        agent.Message
	preliminary bool
	ask         *asking
	file        agent.Part
	name, id    string
	value       json.RawMessage
	patch       json.RawMessage

	usage, total agent.Usage // of the answer, and of all answers of the message so far
	stop         agent.StopReason
	model        string
	halt         *halted
	state        flowfabric.PublicState
	category     flowfabric.Category // of a kindEnded that failed
	when         time.Time
}

// unmade says of an event that it is the end of a call that was never whole, because its answer was broken off.
func (e event) unmade() bool { return e.kind == kindResult && e.call.Arguments == nil }

// asking is a question that is open, or was.
type asking struct {
	ID       string // of the waitpoint: the id of an approval
	Key      string // of the waitpoint
	Question suspend.Question
}

// halted says what was stopped and by whom: the payload of a frame of type agent.FrameTurn.
type halted struct {
	Act     string   `json:"act"` // stop or interrupt
	By      string   `json:"by"`
	Reason  string   `json:"reason"`
	Done    []string `json:"done"`
	NotMade []string `json:"not_made"`
	Unknown []string `json:"unknown"`
}

// replyTo is the id of the message of the assistant that answers a message of the user.
func replyTo(id string) string { return "re-" + id }

// message is a message as it stands now: one of the user, or of the assistant with all answers up to the user's next
// one.
type message struct {
	id     string
	role   agent.Role
	said   agent.Message // of the user
	events []event       // of the assistant
}

// doing is what a conversation does.
type doing string

const (
	doingAnswer doing = "answering"
	doingAsk    doing = "asking" // people are asked
	doingIdle   doing = "idle"   // it is the user's turn
	doingEnded  doing = "ended"
)

// snapshot is a conversation as it stands.
type snapshot struct {
	messages []message
	doing    doing
	asks     []asking // open, if it is asking
	state    flowfabric.PublicState
	document json.RawMessage // the summary document; nil for none
	attempt  uint32          // the newest one that was heard of
	at       stream.Position
	changed  <-chan struct{} // closed when an event follows the snapshot
}
