// Package apiv1 has the answers of the HTTP API that are no word of a vocabulary: they are made by package httpapi and
// read by the command.
package apiv1

import (
	"encoding/json"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Problem is a problem document (RFC 9457), and the error that leads to it.
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail,omitempty"`
	Code    string `json:"code"`            // of our error
	Field   string `json:"field,omitempty"` // JSON pointer into the body, or the name of a parameter or header
	Request string `json:"request_id"`
	// Execution may still be created: the submission was not answered.
	Execution string `json:"execution,omitempty" jsonschema:"the id under which a submission that was not answered may still happen"`
	Failed    int    `json:"failed_partitions,omitempty" jsonschema:"of a change that each partition makes by itself: those that did not make it. Repeat the request"`
	Total     int    `json:"partitions,omitempty" jsonschema:"that were asked to make it"`

	Retry bool `json:"-"` // the same request may be made again after a pause
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Submitted is what became of a submission.
type Submitted struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate" jsonschema:"its key led to an execution that existed"`
	Replaced  bool   `json:"replaced,omitempty" jsonschema:"its debounce key replaced the input of that execution"`
}

// Result is how an execution ended.
type Result struct {
	State    string              `json:"state" jsonschema:"completed, failed, cancelled, expired or skipped"`
	Output   *flowfabric.Payload `json:"output,omitempty" jsonschema:"what the handler returned, if it completed"`
	Failure  *flowfabric.Failure `json:"failure,omitempty"`
	By       string              `json:"by,omitempty" jsonschema:"who cancelled it: a person or token, if one was named"`
	Source   string              `json:"source,omitempty" jsonschema:"what kind of source cancelled it: operator_override, owner (its worker), flow_cascade or system_timeout_policy"`
	Reason   string              `json:"reason,omitempty" jsonschema:"why it was cancelled"`
	Attempts uint32              `json:"attempts,omitempty"`
}

// Period is one of a gate that was begun.
type Period struct {
	Period uint64            `json:"period"`
	Left   flowfabric.Millis `json:"left_ms,omitzero" jsonschema:"of the period; absent: it does not end"`
}

// Used is what is used of a gate.
type Used struct {
	Used map[string]int64 `json:"used"`
}

// Raised is by how much limits of a gate are higher.
type Raised struct {
	Raised map[string]int64 `json:"raised" jsonschema:"by dimension: by how much limits are higher in this period, or what the execution may pass them by"`
}

// Returned tells whether there was something to give back.
type Returned struct {
	Returned bool `json:"returned"`
}

// Dead is a worker that was given up.
type Dead struct {
	Held int `json:"held" jsonschema:"executions that it held, which others take"`
}

// KindSchemas are what workers say of a kind of work.
type KindSchemas struct {
	Input  json.RawMessage `json:"input,omitempty" jsonschema:"JSON Schema (2020-12) of its input, at most 64 KiB"`
	Result json.RawMessage `json:"result,omitempty" jsonschema:"JSON Schema (2020-12) of its result, at most 64 KiB"`
}

// Schemas are those of the kinds of a namespace.
type Schemas struct {
	Namespace string                 `json:"namespace"`
	Kinds     map[string]KindSchemas `json:"kinds" jsonschema:"by kind, those of which workers say something"`
}

// Failures are groups of executions that failed for what looks like one reason.
type Failures struct {
	Items []FailureGroup `json:"items" jsonschema:"the largest group first"`
	More  bool           `json:"more,omitempty" jsonschema:"there are older failures, which are in no count: 10,000 were looked at"`
	From  time.Time      `json:"from,omitzero" jsonschema:"when the oldest failure ended that is counted"`
}

// FailureGroup is one of them.
type FailureGroup struct {
	Key      string                   `json:"key" jsonschema:"names the group where a filter wants a shape: it takes exactly this kind, category and shape"`
	Kind     string                   `json:"kind"`
	Category flowfabric.Category      `json:"category"`
	Shape    string                   `json:"shape" jsonschema:"the message with placeholders for what differs: <n>, <id>, <text>, <path>, <time>; at most 200 characters"`
	Count    int                      `json:"count"`
	FirstAt  time.Time                `json:"first_at" jsonschema:"when the first of them ended"`
	LastAt   time.Time                `json:"last_at" jsonschema:"when the last of them ended"`
	Examples []flowfabric.ExecutionID `json:"examples" jsonschema:"up to three, the newest first"`
}

// Versions are the versions of applications that have workers or work.
type Versions struct {
	Items []Version                `json:"items" jsonschema:"the version whose workers came last in front"`
	More  []flowfabric.PublicState `json:"more,omitempty" jsonschema:"states of which only 10,000 executions were looked at, so that counts may be too low"`
	// Missing says which partitions did not answer.
	Missing string `json:"missing,omitempty" jsonschema:"which partitions did not answer, so that what they have is not counted"`
}

// Version is one of them.
type Version struct {
	Version   string    `json:"version" jsonschema:"as workers say it; empty: those that say none, or a version that was forgotten"`
	Workers   int       `json:"workers" jsonschema:"live ones"`
	Kinds     []string  `json:"kinds,omitempty" jsonschema:"kinds that these claim"`
	Since     time.Time `json:"since,omitzero" jsonschema:"when the first of these registered"`
	SeenAt    time.Time `json:"seen_at,omitzero" jsonschema:"when a worker of it was last heard of"`
	Active    int       `json:"active" jsonschema:"executions that its workers hold"`
	Suspended int       `json:"suspended" jsonschema:"suspended executions that it claimed last, like the counts that follow"`
	Delayed   int       `json:"delayed"`
	Waiting   int       `json:"waiting" jsonschema:"waiting or held ones: they go on, on a worker of any version unless they require one"`
	OldestAt  time.Time `json:"oldest_claimed_at,omitzero" jsonschema:"when it claimed the first of those that are suspended, delayed or waiting"`
}

// ScheduleRun is what became of an instant of a schedule.
type ScheduleRun struct {
	Due       time.Time              `json:"due_at" jsonschema:"the instant; of a run now, when it was asked for"`
	Execution flowfabric.ExecutionID `json:"execution,omitzero"`
	Flow      flowfabric.FlowID      `json:"flow,omitzero" jsonschema:"instead of an execution"`
	Existed   bool                   `json:"existed,omitempty" jsonschema:"it was submitted before, and nothing was done"`
	Error     string                 `json:"error,omitempty" jsonschema:"why it was refused"`
}

// Backfilled is what became of a range of instants of a schedule.
type Backfilled struct {
	Created int           `json:"created" jsonschema:"instants that were submitted now"`
	Existed int           `json:"existed" jsonschema:"instants that had been submitted before"`
	Refused int           `json:"refused" jsonschema:"instants that could not be submitted; their items say why"`
	Items   []ScheduleRun `json:"items" jsonschema:"in their order"`
}

// Trigger is what starts because of published events, and what has become of it.
type Trigger struct {
	Name             string         `json:"name"`
	Subject          string         `json:"subject"`
	Where            map[string]any `json:"where,omitempty" jsonschema:"values of fields of the data, all of which an event must have"`
	flowfabric.Start `for:"schedule word"`
	UpdatedAt        time.Time `json:"updated_at"`
	By               string    `json:"updated_by,omitempty"`
	Matched          int       `json:"matched" jsonschema:"how many events matched it"`
	LastAt           time.Time `json:"last_at,omitzero" jsonschema:"when the last of them was published"`
	LastEvent        string    `json:"last_event,omitempty" jsonschema:"its id"`
	Refused          string    `json:"refused,omitempty" jsonschema:"the code of the last refusal to start something"`
	RefusedAt        time.Time `json:"refused_at,omitzero"`
	RefusedEvent     string    `json:"refused_event,omitempty"`
	Error            string    `json:"error,omitempty" jsonschema:"why the definition cannot be read; then it starts nothing"`
}

// Times is how long attempts waited and ran.
type Times struct {
	Namespace string            `json:"namespace" jsonschema:"* for all"`
	Kind      string            `json:"kind,omitempty" jsonschema:"absent: all kinds together"`
	Since     time.Time         `json:"since" jsonschema:"the begin of the first step, a whole minute of the store's clock"`
	Step      flowfabric.Millis `json:"step_ms" jsonschema:"how long a step is: whole minutes"`
	Steps     []TimesStep       `json:"steps" jsonschema:"all of them, oldest first, also those in which nothing ended"`
	Total     TimesSum          `json:"total" jsonschema:"of all steps together"`
	Kinds     []KindTimes       `json:"kinds,omitempty" jsonschema:"with by_kind: of each kind, what ran most often first"`
}

// TimesSum is how attempts ended, and percentiles of their times, which are at most 5 % off.
type TimesSum struct {
	Completed uint64      `json:"completed" jsonschema:"executions"`
	Failed    uint64      `json:"failed" jsonschema:"executions whose attempt failed, and that are not tried again"`
	Retried   uint64      `json:"retried" jsonschema:"attempts that failed and are tried again"`
	Other     uint64      `json:"other" jsonschema:"runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler"`
	Waited    Percentiles `json:"waited" jsonschema:"of first attempts, but of members of flows: from the creation, a requested delay included, until the handler began"`
	Ran       Percentiles `json:"ran" jsonschema:"of what completed, failed or is tried again: its last run"`
}

// TimesStep is a part of the time.
type TimesStep struct {
	At time.Time `json:"at" jsonschema:"when it begins"`
	TimesSum
}

// KindTimes is the sum of a kind.
type KindTimes struct {
	Kind string `json:"kind" jsonschema:"empty: those above the 256 kinds of a namespace that are told apart"`
	TimesSum
}

// Percentiles are of durations from 1 ms to 30 days.
type Percentiles struct {
	Count uint64            `json:"count" jsonschema:"of how many; 0: there are no percentiles"`
	P50   flowfabric.Millis `json:"p50_ms"`
	P90   flowfabric.Millis `json:"p90_ms"`
	P99   flowfabric.Millis `json:"p99_ms"`
}
