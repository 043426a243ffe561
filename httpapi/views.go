package httpapi

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// execution is a snapshot. Times are RFC 3339 in UTC, absent when there is none.
type execution struct {
	ID           string            `json:"id"`
	State        string            `json:"state" jsonschema:"waiting, waiting_budget, waiting_quota, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or skipped"`
	Reason       string            `json:"blocking_reason,omitempty"`
	Namespace    string            `json:"namespace"`
	Lane         string            `json:"lane"`
	Kind         string            `json:"kind"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Priority     int               `json:"priority"`
	Creator      string            `json:"creator,omitempty"`
	Attempts     uint32            `json:"attempts" jsonschema:"attempts started so far"`
	AttemptType  string            `json:"attempt_type,omitempty" jsonschema:"initial, retry, reclaim or replay"`
	Worker       string            `json:"worker,omitempty" jsonschema:"the instance that has it, or had it last"`
	LeaseUntil   *time.Time        `json:"lease_expires_at,omitempty"`
	Retries      int               `json:"retries"`
	MaxRetries   int               `json:"max_retries"`
	Reclaims     int               `json:"reclaims"`
	Replays      int               `json:"replays"`
	Continues    int               `json:"continues" jsonschema:"how often it went on with another input"`
	CreatedAt    *time.Time        `json:"created_at,omitempty"`
	StartedAt    *time.Time        `json:"started_at,omitempty"`
	ClaimedAt    *time.Time        `json:"claimed_at,omitempty"`
	EndedAt      *time.Time        `json:"ended_at,omitempty"`
	ChangedAt    *time.Time        `json:"changed_at,omitempty"`
	DelayUntil   *time.Time        `json:"delay_until,omitempty"`
	DeadlineAt   *time.Time        `json:"deadline_at,omitempty"`
	Failure      *failure          `json:"failure,omitempty" jsonschema:"of the last attempt that failed"`
	CancelledBy  string            `json:"cancelled_by,omitempty" jsonschema:"the person or token that asked for it, if one was named"`
	CancelSource string            `json:"cancel_source,omitempty" jsonschema:"operator_override, owner (its worker), flow_cascade or system_timeout_policy"`
	CancelReason string            `json:"cancel_reason,omitempty"`
	InputBytes   int               `json:"input_bytes"`
	Steps        int               `json:"steps" jsonschema:"recorded steps"`
	Tags         map[string]string `json:"tags,omitempty"`
	Progress     *progress         `json:"progress,omitempty"`
	Flow         string            `json:"flow,omitempty"`
	Node         string            `json:"node,omitempty"`
	Wait         *wait             `json:"wait,omitempty" jsonschema:"what it waits for while it is suspended"`
	KeyHeld      string            `json:"key_held,omitempty" jsonschema:"how long it has the key that it was submitted with: until_ended, retained, until_time or until_claimed (a debounce key)"`
	Replaced     int               `json:"replaced,omitempty" jsonschema:"how many further submissions under its debounce key it took in"`
	KeyUntil     *time.Time        `json:"key_until,omitempty"`
	AttemptLog   []attempt         `json:"attempt_log,omitempty" jsonschema:"attempts that ended without success"`
}

type failure struct {
	Category string `json:"category" jsonschema:"the reference page of categories lists them"`
	Message  string `json:"message,omitempty"`
}

type progress struct {
	Percent *int       `json:"percent,omitempty"`
	Message string     `json:"message,omitempty"`
	At      *time.Time `json:"at,omitempty"`
}

type wait struct {
	Name      string     `json:"name"`
	Since     *time.Time `json:"since,omitempty"`
	TimeoutAt *time.Time `json:"timeout_at,omitempty"`
}

type attempt struct {
	Index     uint32     `json:"index" jsonschema:"number of the attempt, 1 for the first"`
	Type      string     `json:"type"`
	State     string     `json:"state"`
	Worker    string     `json:"worker,omitempty"`
	ClaimedAt *time.Time `json:"claimed_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Category  string     `json:"category,omitempty"`
	Message   string     `json:"message,omitempty"`
}

// utc is a time in an answer, nil when there is none.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func newExecution(s flowfabric.Snapshot) execution {
	x := execution{
		ID: s.ID.String(), State: string(s.State.Public), Namespace: s.Route.Namespace, Lane: s.Route.Lane,
		Kind: s.Route.Kind, Capabilities: s.Route.Capabilities, Priority: s.Priority, Creator: s.Creator,
		Attempts: s.Attempts, AttemptType: string(s.AttemptType), Worker: s.Worker(), LeaseUntil: utc(s.LeaseExpiresAt),
		Retries: s.Retries, MaxRetries: s.Policy.Retry.MaxRetries, Reclaims: s.Reclaims, Replays: s.Replays,
		Continues: s.Continues, CreatedAt: utc(s.CreatedAt), StartedAt: utc(s.StartedAt),
		ClaimedAt: utc(s.ClaimedAt), EndedAt: utc(s.CompletedAt), ChangedAt: utc(s.ChangedAt),
		DelayUntil: utc(s.DelayUntil), DeadlineAt: utc(s.DeadlineAt), CancelledBy: s.CancelledBy,
		CancelSource: s.CancelSource,
		CancelReason: s.CancelReason, InputBytes: s.InputBytes, Steps: s.Steps, Tags: s.Tags, Node: s.Node,
		KeyUntil: utc(s.Key.Until), Replaced: s.Key.Replaced,
	}
	if s.State.BlockingReason != "none" {
		x.Reason = s.State.BlockingReason
	}
	if s.FailureCategory != "" {
		x.Failure = &failure{s.FailureCategory, s.FailureReason}
	}
	if !s.Progress.At.IsZero() {
		x.Progress = &progress{Message: s.Progress.Message, At: utc(s.Progress.At)}
		if s.Progress.Percent >= 0 {
			x.Progress.Percent = &s.Progress.Percent
		}
	}
	if !s.Flow.IsZero() {
		x.Flow = s.Flow.String()
	}
	if !s.Wait.Since.IsZero() {
		x.Wait = &wait{s.Wait.Name, utc(s.Wait.Since), utc(s.Wait.TimeoutAt)}
	}
	switch {
	case s.Key.Debounced:
		x.KeyHeld = "until_claimed"
	case s.Key.Retained:
		x.KeyHeld = "retained"
	case !s.Key.Until.IsZero():
		x.KeyHeld = "until_time"
	case s.Key.Keyed:
		x.KeyHeld = "until_ended"
	}
	for _, a := range s.AttemptLog {
		x.AttemptLog = append(x.AttemptLog,
			attempt{a.Index, string(a.Type), a.State, a.Worker, utc(a.ClaimedAt), utc(a.EndedAt), a.Category, a.Reason})
	}
	return x
}

// listed is an execution of a page: fewer fields, of one read.
type listed struct {
	ID         string            `json:"id"`
	Drift      string            `json:"drift,omitempty" jsonschema:"what is wrong with the entry; then the rest may be empty"`
	State      string            `json:"state"`
	Namespace  string            `json:"namespace"`
	Lane       string            `json:"lane"`
	Kind       string            `json:"kind"`
	Priority   int               `json:"priority"`
	Attempts   uint32            `json:"attempts"`
	Retries    int               `json:"retries"`
	Worker     string            `json:"worker,omitempty"`
	CreatedAt  *time.Time        `json:"created_at,omitempty"`
	StartedAt  *time.Time        `json:"started_at,omitempty"`
	EndedAt    *time.Time        `json:"ended_at,omitempty"`
	DelayUntil *time.Time        `json:"delay_until,omitempty"`
	Since      *time.Time        `json:"since,omitempty" jsonschema:"when it was suspended or held"`
	PurgeAt    *time.Time        `json:"purge_at,omitempty"`
	Failure    *failure          `json:"failure,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
}

type executionPage struct {
	Items      []listed `json:"items"`
	NextCursor string   `json:"next_cursor,omitempty" jsonschema:"absent after the last page"`
}

func newListed(x admin.Listed) listed {
	l := listed{Drift: x.Drift, State: string(x.State.Public), Namespace: x.Route.Namespace, Lane: x.Route.Lane,
		Kind: x.Route.Kind, Priority: x.Priority, Attempts: x.Attempts, Retries: x.Retries, Worker: instance(x.Session),
		CreatedAt: utc(x.CreatedAt), StartedAt: utc(x.StartedAt), EndedAt: utc(x.EndedAt),
		DelayUntil: utc(x.DelayUntil), Since: utc(x.Since), PurgeAt: utc(x.PurgeAt), Tags: x.Tags}
	if !x.ID.IsZero() {
		l.ID = x.ID.String()
	}
	if x.FailureCategory != "" {
		l.Failure = &failure{x.FailureCategory, x.FailureReason}
	}
	return l
}

// instance is the worker of a session.
func instance(session string) string {
	s := flowfabric.Snapshot{Session: session}
	return s.Worker()
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
