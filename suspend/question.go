package suspend

import (
	"encoding/json"
	"time"
)

// Question is shown to a person, and the answers to choose from. It is stored with the wait, as JSON of at most
// 8 KiB.
type Question struct {
	Title string `json:"title" jsonschema:"1..200 bytes, one line of plain text"`
	// Text may have Markdown, which the dashboard and the page for links show: paragraphs, lists, quotes, code,
	// emphasis, and links to web and mail addresses. All else, such as HTML and images, stays text.
	Text string `json:"text,omitempty" jsonschema:"at most 4 KiB; pages show simple Markdown, and no HTML"`
	// Choices are 2..8 answers with different names. Names have 1..128 bytes, labels up to 128. Default Approve and
	// Reject, which are named approve and reject.
	Choices []Choice `json:"choices,omitempty" jsonschema:"2..8; default approve and reject"`
	// ≤ 128 bytes: who should answer. It is for lists to filter by, and keeps nobody from answering
	Assignee string `json:"assignee,omitempty" jsonschema:"at most 128 bytes: who should answer, for lists"`
	// Arguments are what the question is about, an object as JSON, and an answer may change them ([Answer]). Default
	// none: nothing may be changed. Schema is the JSON Schema of what they may become; changes that do not fit are
	// refused before anything is written. Default none: any object.
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"an object, which the answer may change"`
	Schema    json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema that changed arguments must fit"`

	// Key and Within are for handler.Task.AskAll: the key of the waitpoint that takes the answers, and how long it
	// does, 1 ms to ten years. Default for ever. Readers of a question find the key in Waitpoint.Key.
	Key    string        `json:"-"`
	Within time.Duration `json:"-"`
}

// Choice is one answer to choose: the name of the signal that it sends (1..128 bytes, not beginning with "__") and
// what the button says.
type Choice struct {
	Name  string `json:"name" jsonschema:"1..128 bytes; an answer is a signal of this name"`
	Label string `json:"label,omitempty" jsonschema:"at most 128 bytes; default the name"`
}

// Answer is the choice of a person: the payload, as JSON, of a signal that is named like the choice. A handler gets it
// from handler.Task.Ask, or reads it with Await[Answer].
type Answer struct {
	Choice  string `json:"choice"`
	Comment string `json:"comment,omitempty"` // ≤ 8 KiB from the page for links
	By      string `json:"by,omitempty"`      // who they say they are, ≤ 256 bytes
	// Arguments are those of the question as the person has changed them, whole, at most 16 KiB; nil: as they were.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Cause is how the question ended, set by handler.Task.Ask and AskAll: CauseSignal; CauseTimeout when its time was
	// over; CauseOperator when somebody resumed the execution instead, By. Without an answer Choice is "".
	Cause Cause `json:"-"`
}

// Asked is the part of a waitpoint that the holder of its token may see.
type Asked struct {
	// Question of the wait that the waitpoint belongs to; nil without handler.Task.Ask, before anything waits for the
	// waitpoint, and once the execution waits for something else.
	Question *Question
	Open     bool // it takes signals
	// ExpiresAt is until when it takes them; zero: without end.
	ExpiresAt time.Time
	// Answer is the signal that stands as its answer, nil if there is none yet. While the waitpoint is open only a
	// decision on the page for links counts. The payload is missing where the store has forgotten it, for
	// example after a replay from scratch.
	Answer *StoredSignal
}
