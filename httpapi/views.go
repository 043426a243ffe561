package httpapi

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// utc is a time in an answer, nil when there is none.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

type executionPage struct {
	Items      []admin.Listed `json:"items"`
	NextCursor string         `json:"next_cursor,omitempty" jsonschema:"absent after the last page"`
}

// instance is the worker of a session.
func instance(session string) string {
	return ids.Worker(session)
}

// payload is what a program stored.
type payload = flowfabric.Payload

// event is one of a stream; which members are there depends on its kind.
type event struct {
	Kind     string     `json:"kind" jsonschema:"attempt, resumed, frame, gap, suspended, attempt_end, retry or end; also the name of the event"`
	Attempt  uint32     `json:"attempt,omitempty" jsonschema:"1 for the first; absent if none began"`
	Type     string     `json:"attempt_type,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	Reused   []covered  `json:"reused,omitempty" jsonschema:"frames of earlier attempts that stay"`
	Frame    *frame     `json:"frame,omitempty"`
	Run      uint32     `json:"run,omitempty"`
	Recorded *uint64    `json:"recorded,omitempty" jsonschema:"sequence of the last recorded frame: those after it are repeated"`
	Wait     *waiting   `json:"suspension,omitempty"`
	Trimmed  uint64     `json:"trimmed,omitempty"`
	Missed   uint64     `json:"missed,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Category string     `json:"category,omitempty"`
	Message  string     `json:"message,omitempty"`
	By       string     `json:"by,omitempty" jsonschema:"of the end: the person or token that cancelled it, if one was named"`
	Source   string     `json:"source,omitempty" jsonschema:"of the end: what kind of source cancelled it"`
	State    string     `json:"state,omitempty"`
}

type covered struct {
	Attempt  uint32 `json:"attempt"`
	Recorded uint64 `json:"recorded"`
}

type waiting struct {
	Name       string     `json:"name"`
	Reason     string     `json:"reason,omitempty"`
	TimeoutAt  *time.Time `json:"timeout_at,omitempty"`
	Waitpoints []string   `json:"waitpoints" jsonschema:"keys of those that are open"`
}

// frame has its payload in text, value or base64, by its encoding.
type frame struct {
	Cursor      string          `json:"cursor"`
	Sequence    uint64          `json:"sequence"`
	Mode        string          `json:"mode" jsonschema:"durable, summary or best_effort"`
	Type        string          `json:"type,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	ProducedAt  *time.Time      `json:"produced_at,omitempty"`
	Text        *string         `json:"text,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	Base64      []byte          `json:"base64,omitempty"`
	Version     uint64          `json:"summary_version,omitempty"`
}

func newFrame(f stream.Frame) frame {
	v := frame{Cursor: f.ID.String(), Sequence: f.Sequence, Mode: f.Mode.String(), Type: f.Type,
		Correlation: f.Correlation, ProducedAt: utc(f.ProducedAt), Version: f.SummaryVersion}
	switch {
	case f.Encoding == stream.JSON && utf8.Valid(f.Payload) && json.Valid(f.Payload):
		v.Value = f.Payload
	case f.Encoding != stream.Bytes && utf8.Valid(f.Payload):
		text := string(f.Payload)
		v.Text = &text
	default:
		v.Base64 = f.Payload
	}
	return v
}

func newEvent(e stream.TailEvent) event {
	v := event{Kind: e.Kind.String(), Attempt: e.Attempt, Type: string(e.Type), At: utc(e.At), Trimmed: e.Trimmed,
		Missed: e.Missed, Reason: e.Reason, Category: e.Category, Message: e.Message, By: e.By, Source: e.Source,
		State: string(e.State)}
	for _, c := range e.Reused {
		v.Reused = append(v.Reused, covered{c.Attempt, c.Recorded})
	}
	switch e.Kind {
	case stream.TailFrame:
		f := newFrame(e.Frame)
		v.Frame, v.Run = &f, e.Frame.Run
	case stream.TailResumed:
		v.Run, v.Reason, v.Recorded = e.Resumed.Run, e.Resumed.Reason, &e.Resumed.Recorded
	case stream.TailAttemptEnd:
		v.Recorded = &e.Recorded
	case stream.TailSuspended:
		v.Wait = newWaiting(e.Suspension)
	}
	return v
}

func newWaiting(r *suspend.Record) *waiting {
	w := &waiting{Name: r.Name, Reason: r.Reason, TimeoutAt: utc(r.TimeoutAt), Waitpoints: []string{}}
	for _, p := range r.Waitpoints {
		if p.Open() {
			w.Waitpoints = append(w.Waitpoints, p.Key)
		}
	}
	return w
}
