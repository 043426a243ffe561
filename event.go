package flowfabric

import (
	"time"
)

// Event is one entry of an execution's history. Which fields are set depends on its kind. It prints as one line.
type Event struct {
	At time.Time `json:"at,omitzero"` // the server's
	// Kind: created; claimed (an attempt began, or goes on after a pause); attempt_ended (Detail has its state and
	// category); ended (State says how); delayed by its holder; released by a worker that shut down; revoked;
	// cancelled; expired; priority (Detail: old and new); replayed (State and Until: how and when the run before had
	// ended); continued with another input (Detail: how often by then); forked (Detail: "<" and what it was made of, or
	// ">" and the fork, and behind it the step, if one was named); suspended (Detail: the reason; Reason: the
	// name under which the handler waits); resumed (Detail: the cause; Reason: the name of the signal, which is the
	// choice that a person made); escalated; suspension_timeout (Detail: what it led to); skipped; late_input;
	// token_reissued (Detail: the waitpoint's key); held; unheld; delay_changed by an operator (Until: the new time;
	// none: it may run at once); stopped, when somebody asked it to end what it says; tagged.
	Kind    string `json:"kind"`
	Attempt uint32 `json:"attempt,omitempty" jsonschema:"1 for the first"`
	Epoch   uint64 `json:"epoch,omitempty" see:"operator"`
	// Session is who held it: "<instance>~<random>", or "<gateway>~<worker>~<random>" over HTTP.
	Session string      `json:"session,omitempty" see:"operator"`
	Worker  string      `json:"worker,omitempty"` // its instance
	By      string      `json:"by,omitempty" jsonschema:"the person or token that asked for it"`
	Source  string      `json:"source,omitempty" jsonschema:"of a cancellation and an end what kind of source cancelled it, as in the result; of a resumption the type of the signal's source, message, operator or auto_resume"`
	From    string      `json:"from,omitempty" jsonschema:"from where, if that is known"` // such as "api 10.1.2.3"
	State   PublicState `json:"state,omitempty" jsonschema:"of an end how it ended, of a replay how the run before had"`
	Detail  string      `json:"detail,omitempty"`
	Reason  string      `json:"reason,omitempty" jsonschema:"of an end, a revocation, a cancellation, a hold or a replay; of a suspension the name under which the handler waits, and of its end the name of the signal, which is the choice that a person made"`
	Until   time.Time   `json:"until,omitzero"`
	// Text says all that in one line, with texts of users quoted where they are not plain.
	Text string `json:"text" jsonschema:"the same in a sentence"`
}

// String is Text.
func (e Event) String() string { return e.Text }

// FeedEvent is one thing that happened in the store; admin.Admin.Subscribe tells of them.
type FeedEvent struct {
	Kind      string      `json:"kind" jsonschema:"end, lease or signal; also the name of the event"`
	Execution ExecutionID `json:"execution"`
	At        time.Time   `json:"at,omitzero"` // server time

	// Of an end or a lease: the state it is in since, why no worker runs it then (as in [State]), and who held it last.
	State          PublicState `json:"state,omitempty"`
	BlockingReason string      `json:"blocking_reason,omitempty"`
	Attempt        int         `json:"attempt,omitempty" jsonschema:"1 for the first"` // 0 before it
	Route          uint64      `json:"-"`                                              // 0 when not known
	Epoch          uint64      `json:"epoch,omitempty" see:"operator"`                 // 0 before the first claim
	Session        string      `json:"session,omitempty" see:"operator"`               // "" before the first claim
	Worker         string      `json:"worker,omitempty"`                               // its instance

	// Of a signal.
	Waitpoint UUID   `json:"waitpoint_id,omitzero" see:"operator"`
	Signal    UUID   `json:"signal_id,omitzero" see:"operator"`
	Effect    string `json:"effect,omitempty"`
	Name      string `json:"signal,omitempty" jsonschema:"the name of a signal"`
}
